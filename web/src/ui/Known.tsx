/** What stands where a value would: loading, unknown, or "as of 10:42, offline" beside an old one. */
import type { ReactNode } from "react";
import type { Known } from "../api/known";
import { clock } from "../text";
import { Loading } from "./Empty";
import styles from "./Known.module.css";

/** Render the value, or what is known instead of it. */
export function Show<T>({
  known,
  rows = 2,
  children,
}: {
  readonly known: Known<T>;
  /** How many blocks stand for it while it loads. */
  readonly rows?: number;
  readonly children: (value: T, current: boolean) => ReactNode;
}): ReactNode {
  if (known.state === "loading") return <Loading rows={rows} />;
  if (known.state === "unknown") return <Unknown reason={known.reason} />;
  return children(known.value, known.current);
}

export function Unknown({ reason }: { readonly reason: string }): ReactNode {
  return <p className={styles.unknown}>Not known right now: {reason}</p>;
}

/** Nothing while it is current. */
export function AsOf({ known }: { readonly known: Known<unknown> }): ReactNode {
  if (known.state !== "known" || known.current) return null;
  return <AsOfTime at={known.asOf} />;
}

export const AsOfTime = ({ at }: { readonly at: number }): ReactNode => (
  <span className={styles.asOf}>{asOfText(at)}</span>
);

export const asOfText = (at: number): string => `as of ${clock(at)}, offline`;
