import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { call } from "../api/http";
import { knownValue } from "../api/known";
import { useStatus } from "../shell/queries";
import { duration, plural } from "../text";
import { Button } from "../ui/Button";
import { Chip } from "../ui/Chip";
import { Loading } from "../ui/Empty";
import shared from "../ui/shared.module.css";
import type { State } from "../ui/states";
import { Time } from "../ui/Time";
import styles from "./Health.module.css";

export const WELL: State = { look: "done", icon: "done", word: "All well" };
const UNWELL: State = { look: "failed", icon: "failed", word: "Needs a hand" };

/** What runs here, and what the doctor found. */
export function Health(): ReactNode {
  const status = knownValue(useStatus());
  const found = useQuery({ queryKey: ["doctor"], queryFn: () => call("GET /v1/doctor"), staleTime: 0 });
  if (!status) return <Loading />;
  return (
    <>
      <section className={shared.panel} aria-label="Health">
        <header>
          <h2>Health</h2>
          <span className={shared.grow} />
          <Chip state={status.writable ? WELL : { look: "failed", icon: "failed", word: "Read-only" }} />
        </header>
        <dl className={shared.pairs}>
          <dt>Problem</dt>
          <dd>{status.problem || "none"}</dd>
          <dt>Up for</dt>
          <dd>{duration(status.uptime_ms)}</dd>
          <dt>Home</dt>
          <dd className={shared.mono}>{status.home}</dd>
          <dt>Address</dt>
          <dd className={shared.mono}>{status.url}</dd>
          <dt>Sessions</dt>
          <dd>
            {status.sessions} and {status.archived} archived
          </dd>
          <dt>Log</dt>
          <dd>
            {plural(status.events, "event")}, {plural(status.messages, "message")}
          </dd>
          <dt>In the background</dt>
          <dd>{plural(status.tasks, "task")}</dd>
        </dl>
      </section>
      <section className={shared.panel} aria-label="Doctor">
        <header>
          <h2>What the doctor finds</h2>
          {found.data && (
            <span className={`${shared.faint} ${shared.notOnPhone}`}>
              <Time at={found.data.at} />
            </span>
          )}
          <span className={shared.grow} />
          {found.data && <Chip state={found.data.ok ? WELL : UNWELL} />}
          <Button small disabled={found.isFetching} onClick={() => void found.refetch()}>
            {found.isFetching ? "Looking" : "Look again"}
          </Button>
        </header>
        {found.isLoading && <Loading rows={4} />}
        {found.isError && <p className={shared.muted}>{found.error.message}</p>}
        {found.data?.findings.map((one) => (
          <div key={one.name} className={styles.finding}>
            <Chip
              state={
                one.ok
                  ? { look: "done", icon: "done", word: "Well" }
                  : { look: "failed", icon: "failed", word: "Not well" }
              }
            />
            <b>{one.name}</b>
            <span className={`${shared.muted} ${styles.detail}`}>{one.detail}</span>
            {one.hint && <span className={`${styles.hint} ${one.ok ? "" : styles.problem}`}>{one.hint}</span>}
          </div>
        ))}
        <p className={shared.faint}>
          It changes nothing. In a terminal: <code className={styles.command}>holdfast doctor</code>
        </p>
      </section>
    </>
  );
}
