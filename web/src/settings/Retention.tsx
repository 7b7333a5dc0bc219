import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { call } from "../api/http";
import { queryClient } from "../api/queryClient";
import type { RetentionView } from "../api/types.gen";
import { plural, size } from "../text";
import { Confirm } from "../ui/Confirm";
import { Loading } from "../ui/Empty";
import { toast, toastError } from "../ui/toasts";

const ofTasks = (rules: RetentionView): readonly (readonly [string, string])[] => [
  ["Age", rules.tasks_days ? `they go ${plural(rules.tasks_days, "day")} after their end` : "no limit"],
  [
    "Number",
    rules.tasks_count ? `at most ${plural(rules.tasks_count, "ended task")}, the oldest go first` : "no limit",
  ],
  ["Output", rules.tasks_megabytes ? `at most ${rules.tasks_megabytes} MB, the oldest go first` : "no limit"],
];

const ofSessions = (rules: RetentionView): readonly (readonly [string, string])[] => [
  [
    "Archived",
    rules.sessions_archive_days
      ? `${plural(rules.sessions_archive_days, "day")} after the last word`
      : "never by itself",
  ],
  [
    "Deleted",
    rules.sessions_delete_days
      ? `${plural(rules.sessions_delete_days, "day")} after they were archived`
      : "never by itself",
  ],
];

const inAll = (rules: RetentionView): number => rules.sessions.reduce((sum, rule) => sum + rule.count, 0);

/** What goes, in words: tasks with their output, and sessions. */
function going(rules: RetentionView): string {
  const sessions = rules.sessions
    .filter((rule) => rule.count > 0)
    .map((rule) => `${plural(rule.count, "session")} by ${rule.rule}`);
  return [
    ...(rules.count > 0 ? [`${plural(rules.count, "task")} and ${size(rules.bytes)} of output`] : []),
    ...sessions,
  ].join(", ");
}

/** What the rules in config.toml say, what they would take now, and the word to do it now. */
export function Retention(): ReactNode {
  const rules = useQuery({ queryKey: ["retention"], queryFn: () => call("GET /v1/retention"), staleTime: 0 });
  const [asking, setAsking] = useState(false);
  const found = rules.data;
  const apply = (): void => {
    setAsking(false);
    void call("POST /v1/retention").then((gone) => {
      toast(
        "done",
        `${plural(gone.count, "task")} deleted`,
        [
          `${size(gone.bytes)} of output, by the retention rules`,
          ...(inAll(gone) > 0 ? [`${plural(inAll(gone), "session")} archived or deleted`] : []),
        ].join("; "),
      );
      void queryClient.invalidateQueries({ queryKey: ["retention"] });
    }, toastError);
  };
  const noTasks = found && !found.tasks_days && !found.tasks_count && !found.tasks_megabytes;
  const noSessions = found && !found.sessions_archive_days && !found.sessions_delete_days;
  const words = found ? going(found) : "";
  return (
    <div className="stack-v" role="group" aria-label="Retention">
      <section className="panel" aria-label="Retention of ended tasks">
        <header>
          <h2>Retention of ended tasks</h2>
        </header>
        {rules.isLoading && <Loading rows={3} />}
        {rules.isError && <p className="muted">{rules.error.message}</p>}
        {found && (
          <dl className="pairs">
            {ofTasks(found).map(([name, said]) => [<dt key={name}>{name}</dt>, <dd key={`d${name}`}>{said}</dd>])}
          </dl>
        )}
        {noTasks && (
          <p className="muted">
            Without a rule, tasks are kept until you prune them. Set rules in <code>[retention]</code> of config.toml:{" "}
            <code>tasks_days</code>, <code>tasks_count</code>, <code>tasks_megabytes</code>.
          </p>
        )}
        {found?.rules.map((rule) => (
          <details key={rule.rule} className="taken">
            <summary>
              <code>{rule.rule}</code> takes {plural(rule.count, "task")}, {size(rule.bytes)}
            </summary>
            <ul className="mono">
              {rule.tasks.map((task) => (
                <li key={task.id} className="cut">
                  {task.title}
                </li>
              ))}
              {rule.count > rule.tasks.length && <li>and {rule.count - rule.tasks.length} more</li>}
            </ul>
          </details>
        ))}
      </section>
      {found && (
        <section className="panel" aria-label="Retention of sessions">
          <header>
            <h2>Retention of sessions</h2>
          </header>
          <dl className="pairs">
            {ofSessions(found).map(([name, said]) => [<dt key={name}>{name}</dt>, <dd key={`d${name}`}>{said}</dd>])}
          </dl>
          {noSessions && (
            <p className="muted">
              Without a rule, sessions are neither archived nor deleted. Set rules in <code>[retention]</code>:{" "}
              <code>sessions_archive_days</code>, <code>sessions_delete_days</code>.
            </p>
          )}
          {found.sessions.map((rule) => (
            <details key={rule.rule} className="taken">
              <summary>
                <code>{rule.rule}</code> takes {plural(rule.count, "session")}
              </summary>
              <ul>
                {rule.titles.map((title, index) => (
                  <li key={index} className="cut">
                    {title || "New session"}
                  </li>
                ))}
                {rule.count > rule.titles.length && <li>and {rule.count - rule.titles.length} more</li>}
              </ul>
            </details>
          ))}
        </section>
      )}
      {found && !(noTasks && noSessions) && (
        <section className="panel" aria-label="Apply the rules">
          <p>
            {words === "" ? "The rules delete nothing now." : `${words} would go now.`} Pinned ones and what runs stay.
            The rules are applied every hour.
          </p>
          <p>
            <button type="button" className="btn danger" disabled={words === ""} onClick={() => setAsking(true)}>
              Prune now…
            </button>
          </p>
        </section>
      )}
      {asking && found && (
        <Confirm
          title="Apply the retention rules now?"
          verb={
            found.count > 0 ? `Delete ${plural(found.count, "task")}` : `Apply to ${plural(inAll(found), "session")}`
          }
          onNo={() => setAsking(false)}
          onYes={apply}
        >
          <p>{words}. Deletions are permanent. Pinned ones are kept.</p>
        </Confirm>
      )}
    </div>
  );
}
