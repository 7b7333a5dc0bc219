import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { call } from "../api/http";
import { knownFrom, lastContact, useHeard } from "../api/known";
import type { NodeView } from "../api/types.gen";
import { NODES } from "../nodes/queries";
import { duration, plural } from "../text";
import { Chip } from "../ui/Chip";
import { AsOf } from "../ui/Known";
import shared from "../ui/shared.module.css";
import type { State } from "../ui/states";
import { Time } from "../ui/Time";
import styles from "./Health.module.css";

const STATES: Readonly<Record<string, State>> = {
  alive: { look: "done", icon: "done", word: "Alive" },
  draining: { look: "waiting", icon: "waiting", word: "Draining" },
  ended: { look: "stopped", icon: "stopped", word: "Ended" },
};
const LOOK_MS = 5000;

/** The gateways that work on one database; nothing where the log is in a file of this one. */
export function Nodes(): ReactNode {
  const asked = useQuery({ queryKey: NODES, queryFn: () => call("GET /v1/nodes"), refetchInterval: LOOK_MS });
  const known = knownFrom(asked, useHeard(), lastContact());
  if (known.state !== "known") return null;
  const { nodes } = known.value;
  if (nodes.every((node) => node.name === "local")) return null;
  return (
    <section className={shared.panel} aria-label="Nodes">
      <header>
        <h2>Nodes</h2>
        <AsOf known={known} />
      </header>
      {nodes.map((node) => (
        <div className={styles.finding} key={node.name}>
          <Chip state={STATES[node.state] ?? { look: "unknown", icon: "unknown", word: node.state }} />
          <b>
            {node.name}
            {node.here && " (this one)"}
          </b>
          <span className={`${shared.muted} ${styles.detail}`}>
            {(node.labels ?? []).length > 0 && `${(node.labels ?? []).join(", ")}; `}
            {node.version}, since <Time at={node.started_at} />
            {node.state === "ended" ? `, ended: ${node.ended_reason}` : `, heard ${duration(node.silent_ms)} ago`}
          </span>
          <span className={styles.hint}>{work(node)}</span>
        </div>
      ))}
    </section>
  );
}

function work(node: NodeView): string {
  const parts = [
    node.sessions.length > 0 ? `works on ${plural(node.sessions.length, "session")}` : "",
    node.tasks.length > 0 ? `${plural(node.tasks.length, "command")} there` : "",
    node.duties.length > 0 ? `does for all: ${node.duties.join(", ")}` : "",
  ].filter(Boolean);
  return parts.join("; ") || (node.state === "ended" ? "" : "Nothing to do");
}
