import type { ReactNode } from "react";
import styles from "./Banner.module.css";
import { Icon } from "./Icon";
import { lookClass } from "./looks";

/** What stands above a page until it is over or dismissed: one sentence, what it means, what can be done. */
export function Banner({
  kind,
  look,
  icon,
  title,
  actions,
  children,
}: {
  readonly kind: "offline" | "read-only" | "build" | "away" | "reset";
  readonly look: string;
  readonly icon: string;
  readonly title: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}): ReactNode {
  const urgent = kind === "offline" || kind === "read-only";
  return (
    <div className={`${styles.banner} ${lookClass(look)}`} role={urgent ? "alert" : "status"} data-banner={kind}>
      <Icon name={icon} />
      <div className={styles.words}>
        <p>
          <strong>{title}</strong>
        </p>
        <p className={styles.detail}>{children}</p>
      </div>
      {actions && <div className={styles.actions}>{actions}</div>}
    </div>
  );
}
