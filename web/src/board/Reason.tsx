import type { ReactNode } from "react";
import { lookClass } from "../ui/looks";
import styles from "./Reason.module.css";

/** Why a card stands where it stands, with the colour of that state beside it. */
export function Reason({
  look,
  short = false,
  children,
}: {
  readonly look: string;
  /** At most three lines of it. */
  readonly short?: boolean;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <p className={`${styles.reason} ${short ? styles.short : ""} ${lookClass(look)}`} data-reason>
      {children}
    </p>
  );
}
