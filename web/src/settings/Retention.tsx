/** What is deleted by itself: the rules, what they would take now, and the word to do it now. */
import { type ReactNode, useState } from "react";
import { call } from "../api/http";
import { queryClient } from "../api/queryClient";
import type { RetentionChoice, RetentionView } from "../api/types.gen";
import { plural, size } from "../text";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Confirm";
import { AsOf, Show } from "../ui/Known";
import shared from "../ui/shared.module.css";
import { toast, toastError } from "../ui/toasts";
import { NumberField } from "./NumberField";
import { changeSettings, useRetention, useSettings } from "./queries";
import styles from "./Retention.module.css";
import { Saved, useSaved } from "./Saved";
import common from "./settings.module.css";

const FIELDS: readonly (readonly [keyof RetentionChoice, string, string])[] = [
  ["tasks_days", "Delete ended tasks after this many days", "0 keeps them."],
  ["tasks_count", "Keep at most this many ended tasks", "The oldest go first; 0 is no limit."],
  ["tasks_megabytes", "Keep at most this much output, in MiB", "The oldest go first; 0 is no limit."],
  ["sessions_archive_days", "Archive sessions after this many days without use", "0 archives none."],
  ["sessions_delete_days", "Delete archived sessions after this many days", "0 keeps them."],
];
const MOST = 36_500;

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

export function Retention(): ReactNode {
  const settings = useSettings();
  const [saved, save] = useSaved();
  const change = (retention: RetentionChoice): void => void save(changeSettings({ retention })).catch(toastError);
  return (
    <div className={common.sections} role="group" aria-label="Retention">
      <section className={shared.panel} aria-label="Retention rules">
        <header>
          <h2>Retention</h2>
          <AsOf known={settings} />
          <span className={shared.grow} />
          <Saved at={saved} />
        </header>
        <Show known={settings} rows={5}>
          {({ retention, path }) => (
            <div className={common.form}>
              {FIELDS.map(([name, label, hint]) => (
                <NumberField
                  key={name}
                  label={label}
                  hint={hint}
                  value={retention[name]}
                  least={0}
                  most={MOST}
                  onSave={(value) => change({ ...retention, [name]: value })}
                />
              ))}
              <p className={shared.faint}>
                Written into <code>{path}</code>. Pinned ones and what runs stay. The rules are applied every hour.
              </p>
            </div>
          )}
        </Show>
      </section>
      <Effect />
    </div>
  );
}

function Effect(): ReactNode {
  const known = useRetention();
  const [asking, setAsking] = useState(false);
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
  return (
    <section className={shared.panel} aria-label="Apply the rules">
      <header>
        <h2>What the rules would delete now</h2>
        <AsOf known={known} />
      </header>
      <Show known={known}>
        {(found) => (
          <>
            <p>{going(found) === "" ? "The rules delete nothing now." : `${going(found)} would go now.`}</p>
            {found.rules.map((rule) => (
              <Taken key={rule.rule} rule={rule.rule} what={`${plural(rule.count, "task")}, ${size(rule.bytes)}`}>
                {rule.tasks.map((task) => ({ id: task.id, title: task.title }))}
              </Taken>
            ))}
            {found.sessions.map((rule) => (
              <Taken key={rule.rule} rule={rule.rule} what={plural(rule.count, "session")}>
                {rule.titles.map((title, index) => ({ id: `${index}`, title: title || "New session" }))}
              </Taken>
            ))}
            <p>
              <Button danger disabled={going(found) === ""} onClick={() => setAsking(true)}>
                Prune now…
              </Button>
            </p>
            {asking && (
              <Confirm
                title="Apply the retention rules now?"
                verb={
                  found.count > 0
                    ? `Delete ${plural(found.count, "task")}`
                    : `Apply to ${plural(inAll(found), "session")}`
                }
                onNo={() => setAsking(false)}
                onYes={apply}
              >
                <p>{going(found)}. Deletions are permanent. Pinned ones are kept.</p>
              </Confirm>
            )}
          </>
        )}
      </Show>
    </section>
  );
}

function Taken({
  rule,
  what,
  children,
}: {
  readonly rule: string;
  readonly what: string;
  readonly children: readonly { readonly id: string; readonly title: string }[];
}): ReactNode {
  return (
    <details className={styles.taken}>
      <summary>
        <code>{rule}</code> takes {what}
      </summary>
      <ul>
        {children.map((one) => (
          <li key={one.id} className={shared.cut}>
            {one.title}
          </li>
        ))}
      </ul>
    </details>
  );
}
