/** A task's history on the line, from its own events. */
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { call } from "../api/http";
import type { LogRecord, TaskView } from "../api/types.gen";
import { history } from "../log/history";
import line from "../ui/line.module.css";
import { lookClass } from "../ui/looks";
import shared from "../ui/shared.module.css";
import { taskState } from "../ui/states";
import { Since, Time } from "../ui/Time";
import styles from "./History.module.css";
import { isOpen } from "./taskWords";

async function allOf(id: string): Promise<readonly LogRecord[]> {
  const found: LogRecord[] = [];
  for (let after = 0, more = true; more; ) {
    const page = await call("GET /v1/tasks/{id}/events", { path: { id }, query: { after } });
    found.push(...page.events);
    ({ cursor: after, more } = page);
  }
  return found;
}

export function History({ task }: { readonly task: TaskView }): ReactNode {
  const events = useQuery({ queryKey: ["history", task.id], queryFn: () => allOf(task.id) });
  const steps = history(events.data ?? []);
  const running = isOpen(task);
  return (
    <section>
      <h2>History</h2>
      {events.isError && <p className={shared.muted}>{events.error.message}</p>}
      <ol className={styles.steps} aria-label="History">
        {steps.map((step, index) => {
          const end = step.look === "end" ? `${styles.end} ${lookClass(taskState(task).look)}` : "";
          const last = !running && index === steps.length - 1;
          return (
            <li key={step.version} className={`${line.line} ${index === 0 ? line.first : ""} ${last ? line.last : ""}`}>
              <span className={`${line.knot} ${styles.knot} ${end}`} />
              {step.text}{" "}
              <span className={shared.faint}>
                <Time at={step.at} />
              </span>
              {step.more && (
                <>
                  <br />
                  <span className={shared.muted}>{step.more}</span>
                </>
              )}
            </li>
          );
        })}
        {running && (
          <li className={`${line.line} ${line.last} ${line.live}`}>
            <span className={`${line.knot} ${styles.knot}`} />
            Has run for <Since at={task.started_at} />
          </li>
        )}
      </ol>
    </section>
  );
}
