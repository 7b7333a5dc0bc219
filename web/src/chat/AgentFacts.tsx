/** Who works, with which model, and where: before the first message and beside every approval. */
import type { ReactNode } from "react";
import type { SessionMode } from "../log/model";
import { Icon } from "../ui/Icon";
import shared from "../ui/shared.module.css";
import styles from "./AgentFacts.module.css";
import { MODE_WORDS, modeInForce } from "./modes";

export interface Agent {
  readonly profile: string;
  readonly model: string;
  readonly cwd: string;
  readonly mode?: SessionMode;
  readonly inheritedMode?: SessionMode;
  /** Where there are several: the one that works on it or did so last. */
  readonly host?: string;
}

/** The end of a path says most; the whole of it is in the title. */
export const shortPath = (path: string): string => {
  const parts = path.split("/").filter(Boolean);
  return parts.length <= 2 ? path : `…/${parts.slice(-2).join("/")}`;
};

export function AgentFacts({
  agent,
  short = false,
  permission = "",
}: {
  readonly agent: Agent;
  readonly short?: boolean;
  /** Whether it asks before it acts. */
  readonly permission?: string;
}): ReactNode {
  const mode = modeInForce(agent);
  const words = [agent.profile, agent.model, mode === "profile" ? permission : MODE_WORDS[mode]];
  const who = words.filter((word, at, all) => word && all.indexOf(word) === at).join(" · ");
  return (
    <span className={`${styles.facts} ${short ? styles.short : ""}`}>
      <span className={styles.fact} title={`Profile ${agent.profile}, model ${agent.model || "of the profile"}`}>
        <Icon name="agent" />
        <span className={styles.text}>{who}</span>
      </span>
      {agent.host && (
        <span className={`${styles.fact} ${styles.host}`} title={`On node ${agent.host}`}>
          <Icon name="node" />
          <span className={styles.text}>{agent.host}</span>
        </span>
      )}
      {agent.cwd && (
        <span className={styles.fact} title={agent.cwd}>
          <Icon name="folder" />
          <span className={`${shared.mono} ${styles.text}`} dir="ltr">
            {short ? shortPath(agent.cwd) : agent.cwd}
          </span>
        </span>
      )}
    </span>
  );
}
