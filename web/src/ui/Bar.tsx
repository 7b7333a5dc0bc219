import type { ReactNode } from "react";
import styles from "./Bar.module.css";

/** The upper edge of a page: what it is, and what can be done with it. */
export function Bar({
  className = "",
  children,
}: {
  readonly className?: string | undefined;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <div className={`${styles.bar} ${className}`} data-bar>
      {children}
    </div>
  );
}
