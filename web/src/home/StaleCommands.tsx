/** Commands that nothing waits for any more: each with its reason, and a button that stops it. */
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { call } from "../api/http";
import { knownValue } from "../api/known";
import { queryClient } from "../api/queryClient";
import type { TaskView } from "../api/types.gen";
import { useStale } from "../tasks/queries";
import { plural } from "../text";
import { Button } from "../ui/Button";
import { Chip } from "../ui/Chip";
import { Confirm } from "../ui/Confirm";
import form from "../ui/form.module.css";
import { Icon } from "../ui/Icon";
import shared from "../ui/shared.module.css";
import { STALE } from "../ui/states";
import { Since } from "../ui/Time";
import { toastError } from "../ui/toasts";
import styles from "./request.module.css";

export async function stopTasks(tasks: readonly TaskView[]): Promise<void> {
  const asked = await Promise.allSettled(tasks.map(({ id }) => call("POST /v1/tasks/{id}/stop", { path: { id } })));
  const refused = asked.find((one) => one.status === "rejected");
  if (refused) toastError(refused.reason);
  for (const name of ["stale", "running"]) void queryClient.invalidateQueries({ queryKey: [name] });
}

export function StaleCommands(): ReactNode {
  const stale = knownValue(useStale()) ?? [];
  const [asking, setAsking] = useState(false);
  if (stale.length === 0) return null;
  return (
    <section className={shared.panel} aria-label="Stale commands">
      <header>
        <h2>Stale commands</h2>
        <span className={shared.faint}>{stale.length}</span>
        <span className={shared.grow} />
        {stale.length > 1 && (
          <Button small onClick={() => setAsking(true)}>
            Stop all {stale.length}
          </Button>
        )}
      </header>
      {stale.map((task) => (
        <div key={task.id} className={styles.need} data-why={`task/${task.id}`}>
          <Chip state={STALE} />
          <span className={`${styles.command} ${shared.mono}`}>
            <Link href={`/tasks/${task.id}`}>{task.title}</Link>
          </span>
          <span className={styles.where}>
            {task.stale} · for <Since at={task.started_at} />
          </span>
          <span className={styles.answers}>
            <Button small aria-label={`Stop ${task.title}`} onClick={() => void stopTasks([task])}>
              <Icon name="stop" />
              Stop
            </Button>
          </span>
        </div>
      ))}
      {asking && (
        <Confirm
          title={`Stop ${plural(stale.length, "stale command")}?`}
          verb={`Stop ${stale.length}`}
          onNo={() => setAsking(false)}
          onYes={() => {
            setAsking(false);
            void stopTasks(stale);
          }}
        >
          <ul className={form.list}>
            {stale.map((task) => (
              <li key={task.id}>
                <span className={`${shared.cut} ${shared.grow} ${shared.mono}`}>{task.title}</span>
                <span className={shared.faint}>{task.stale}</span>
              </li>
            ))}
          </ul>
        </Confirm>
      )}
    </section>
  );
}
