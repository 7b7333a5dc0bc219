import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import type { RetentionView } from "../api.gen";
import { call } from "../net/http";
import { queries } from "../net/queries";
import { Confirm } from "../parts/Confirm";
import { Loading } from "../parts/Empty";
import { complain, toast } from "../parts/toasts";
import { plural, size } from "../words";

const limits = (rules: RetentionView): readonly (readonly [string, string])[] => [
  ["Age", rules.tasks_days ? `they go ${plural(rules.tasks_days, "day")} after their end` : "no limit"],
  ["Number", rules.tasks_count ? `at most ${plural(rules.tasks_count, "ended task")}, the oldest go first` : "no limit"],
  ["Output", rules.tasks_megabytes ? `at most ${rules.tasks_megabytes} MB, the oldest go first` : "no limit"],
];

/** What the rules in config.toml say, what they would take now, and the word to do it now. */
export function Retention(): ReactNode {
  const rules = useQuery({ queryKey: ["retention"], queryFn: () => call("GET /v1/retention"), staleTime: 0 });
  const [asking, setAsking] = useState(false);
  const found = rules.data;
  const apply = (): void => {
    setAsking(false);
    void call("POST /v1/retention").then((gone) => {
      toast("done", `${plural(gone.count, "task")} deleted`, `${size(gone.bytes)} of output, by the retention rules`);
      void queries.invalidateQueries({ queryKey: ["retention"] });
    }, complain);
  };
  const none = found && !found.tasks_days && !found.tasks_count && !found.tasks_megabytes;
  return (
    <section className="panel" aria-label="Retention">
      <header><h2>Retention of ended tasks</h2></header>
      {rules.isLoading && <Loading rows={3} />}
      {rules.isError && <p className="muted">{rules.error.message}</p>}
      {found && <dl className="pairs">{limits(found).map(([name, words]) => [<dt key={name}>{name}</dt>, <dd key={`d${name}`}>{words}</dd>])}</dl>}
      {none && <p className="muted">Without a rule everything stays until somebody prunes it. Rules stand in <code>[retention]</code> of config.toml: <code>tasks_days</code>, <code>tasks_count</code>, <code>tasks_megabytes</code>.</p>}
      {found && !none && (
        <>
          <p>{found.count === 0 ? "The rules take nothing now." : `${plural(found.count, "task")} and ${size(found.bytes)} of output would go now.`} Pinned ones and what runs stay. The rules are applied every hour.</p>
          {found.rules.map((rule) => (
            <details key={rule.rule} className="taken">
              <summary><code>{rule.rule}</code> takes {plural(rule.count, "task")}, {size(rule.bytes)}</summary>
              <ul className="mono">{rule.tasks.map((task) => <li key={task.id} className="cut">{task.title}</li>)}{rule.count > rule.tasks.length && <li>and {rule.count - rule.tasks.length} more</li>}</ul>
            </details>
          ))}
          <p><button type="button" className="btn danger" disabled={found.count === 0} onClick={() => setAsking(true)}>Prune now…</button></p>
        </>
      )}
      {asking && found && (
        <Confirm title="Apply the retention rules now?" verb={`Delete ${plural(found.count, "task")}`} onNo={() => setAsking(false)} onYes={apply}>
          <p>{plural(found.count, "task")} and {size(found.bytes)} of output will be deleted for good. Pinned ones stay.</p>
        </Confirm>
      )}
    </section>
  );
}
