/** What an external agent wants to do, and how far it is. */
import type { ReactNode } from "react";
import type { AgentPlanned } from "../api/types.gen";
import { visible } from "../ui/blocks";
import shared from "../ui/shared.module.css";
import { Time } from "../ui/Time";
import styles from "./Plan.module.css";

const PLANNED = { pending: ["○", "to do"], in_progress: ["◐", "in progress"], completed: ["✓", "done"] } as const;

export function Plan({ entries, at }: { readonly entries: AgentPlanned["entries"]; readonly at: number }): ReactNode {
  return (
    <span className={styles.plan}>
      <span>
        <b>Plan</b> <Time at={at} />
      </span>
      {entries.map((entry, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a plan is shown as it was stated
        <span key={index} data-plan={entry.state}>
          <span aria-hidden="true">{PLANNED[entry.state][0]}</span>
          <span dir="auto">{visible(entry.text)}</span>
          <span className={shared.srOnly}>, {PLANNED[entry.state][1]}</span>
        </span>
      ))}
    </span>
  );
}
