import type { ReactNode } from "react";
import styles from "./Empty.module.css";
import { Logo } from "./Icon";

export function Empty({
  title,
  children,
  action,
}: {
  readonly title: string;
  readonly children: ReactNode;
  readonly action?: ReactNode;
}): ReactNode {
  return (
    <div className={styles.empty}>
      <Logo stone={false} />
      <strong>{title}</strong>
      <p>{children}</p>
      {action && <div className={styles.action}>{action}</div>}
    </div>
  );
}

export function Loading({ rows = 5 }: { readonly rows?: number }): ReactNode {
  return (
    <div className={styles.loading} data-loading aria-hidden="true">
      {Array.from({ length: rows }, (_, row) => row).map((row) => (
        <i key={row} />
      ))}
    </div>
  );
}
