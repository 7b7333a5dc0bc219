import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { call } from "../api/http";
import { knownFrom, lastContact, useHeard } from "../api/known";
import type { Findings, Status } from "../api/types.gen";
import { useStatus } from "../shell/queries";
import { duration, plural } from "../text";
import { Button } from "../ui/Button";
import { Chip } from "../ui/Chip";
import { AsOf, Show } from "../ui/Known";
import shared from "../ui/shared.module.css";
import { gatewayState, type State, WELL } from "../ui/states";
import { Time } from "../ui/Time";
import { WithCode } from "../ui/WithCode";
import styles from "./Health.module.css";
import { Nodes } from "./Nodes";

const UNWELL: State = { look: "failed", icon: "failed", word: "Needs a hand" };

/** What runs here, and what the doctor found. */
export function Health(): ReactNode {
  const known = useStatus();
  return (
    <>
      <section className={shared.panel} aria-label="Health">
        <header>
          <h2>Health</h2>
          <AsOf known={known} />
          <span className={shared.grow} />
          {known.state === "known" && known.current && <Chip state={gatewayState(known.value)} />}
        </header>
        <Show known={known} rows={4}>
          {(status) => <Facts status={status} />}
        </Show>
      </section>
      <Nodes />
      <Doctor />
    </>
  );
}

function Facts({ status }: { readonly status: Status }): ReactNode {
  return (
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
  );
}

function Doctor(): ReactNode {
  const asked = useQuery({ queryKey: ["doctor"], queryFn: () => call("GET /v1/doctor"), staleTime: 0 });
  const known = knownFrom(asked, useHeard(), lastContact());
  return (
    <section className={shared.panel} aria-label="Doctor">
      <header>
        <h2>What the doctor finds</h2>
        {known.state === "known" && (
          <span className={`${shared.faint} ${shared.notOnPhone}`}>
            <Time at={known.value.at} />
          </span>
        )}
        <span className={shared.grow} />
        {known.state === "known" && known.current && <Chip state={known.value.ok ? WELL : UNWELL} />}
        <Button small disabled={asked.isFetching} onClick={() => void asked.refetch()}>
          {asked.isFetching ? "Looking" : "Look again"}
        </Button>
      </header>
      <Show known={known} rows={4}>
        {({ findings }) => findings.map((one) => <Finding key={one.name} one={one} />)}
      </Show>
      <p className={shared.faint}>
        It changes nothing. In a terminal: <code className={styles.command}>holdfast doctor</code>
      </p>
    </section>
  );
}

function Finding({ one }: { readonly one: Findings["findings"][number] }): ReactNode {
  return (
    <div className={styles.finding}>
      <Chip
        state={
          one.ok ? { look: "done", icon: "done", word: "Well" } : { look: "failed", icon: "failed", word: "Not well" }
        }
      />
      <b>{one.name}</b>
      <span className={`${shared.muted} ${styles.detail}`}>{one.detail}</span>
      {one.hint && (
        <span className={`${styles.hint} ${one.ok ? "" : styles.problem}`}>
          <WithCode text={one.hint} />
        </span>
      )}
    </div>
  );
}
