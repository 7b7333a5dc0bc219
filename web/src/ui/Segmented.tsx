import type { ReactNode } from "react";
import styles from "./Segmented.module.css";

/** Buttons in one frame: of what they stand for, one is chosen, or some are on. */
export function Segmented({
  name,
  small = false,
  className = "",
  children,
}: {
  readonly name: string;
  readonly small?: boolean;
  readonly className?: string | undefined;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <div className={`${styles.segmented} ${small ? styles.small : ""} ${className}`} role="group" aria-label={name}>
      {children}
    </div>
  );
}
