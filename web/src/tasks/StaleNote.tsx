import type { ReactNode } from "react";
import { Link } from "wouter";
import { knownValue } from "../api/known";
import { buttonClass } from "../ui/Button";
import { Icon } from "../ui/Icon";
import { useStale } from "./queries";
import styles from "./StaleNote.module.css";

/** Above the table: commands that nothing waits for any more. */
export function StaleNote(): ReactNode {
  const stale = knownValue(useStale()) ?? [];
  if (stale.length === 0) return null;
  return (
    <div className={styles.note} role="note">
      <Icon name="clock" />
      <span className={styles.words}>
        {stale.length === 1
          ? "1 command is still running, although nothing waits for it."
          : `${stale.length} commands are still running, although nothing waits for them.`}
      </span>
      <Link className={buttonClass({ small: true })} href="/home">
        Look at {stale.length === 1 ? "it" : "them"}
      </Link>
    </div>
  );
}
