import type { ReactNode } from "react";
import { useStatus } from "../shell/queries";
import { moment, plural } from "../text";
import { Chip } from "../ui/Chip";
import { AsOf, Show } from "../ui/Known";
import styles from "./home.module.css";

export function HealthPanel(): ReactNode {
  const known = useStatus();
  return (
    <section className="panel" aria-label="Health">
      <header>
        <h2>Health</h2>
        <AsOf known={known} />
        <span className="grow" />
        {known.state === "known" && known.current && (
          <Chip
            state={
              known.value.writable && !known.value.problem
                ? { look: "done", icon: "done", word: "All well" }
                : { look: "failed", icon: "failed", word: "Read-only" }
            }
          />
        )}
      </header>
      <Show known={known}>
        {(status) => (
          <>
            {status.problem && <p>{status.problem}</p>}
            <dl className={styles.health}>
              <div>
                <dt>Gateway</dt>
                <dd>since {moment(status.started_at)}</dd>
              </div>
              <div>
                <dt>Version</dt>
                <dd>{status.version}</dd>
              </div>
              <div>
                <dt>Sessions</dt>
                <dd>{plural(status.sessions, "open one", "open")}</dd>
              </div>
              <div>
                <dt>Log</dt>
                <dd>{plural(status.events, "event")}</dd>
              </div>
            </dl>
          </>
        )}
      </Show>
    </section>
  );
}
