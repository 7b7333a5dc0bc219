import type { ReactNode } from "react";
import { duration, elapsed, full, moment } from "../text";
import { useNow } from "./hooks";

export function Time({ at }: { readonly at: number }): ReactNode {
  return (
    <time dateTime={new Date(at).toISOString()} title={full(at)}>
      {moment(at)}
    </time>
  );
}

/** How long it has been; counted on while it goes on. */
export function Since({ at, until }: { readonly at: number; readonly until?: number | null }): ReactNode {
  const now = useNow(until == null);
  return <>{until == null ? elapsed(now - at) : duration(until - at)}</>;
}
