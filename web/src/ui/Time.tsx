import type { ReactNode } from "react";
import { useHeard } from "../api/known";
import { duration, elapsed, full, moment } from "../text";
import { useNow } from "./hooks";

export function Time({ at }: { readonly at: number }): ReactNode {
  return (
    <time dateTime={new Date(at).toISOString()} title={full(at)}>
      {moment(at)}
    </time>
  );
}

/** How long it has been; counted on while it goes on, and while the gateway would say if it ended. */
export function Since({ at, until }: { readonly at: number; readonly until?: number | null }): ReactNode {
  const now = useNow(useHeard() && until == null);
  return <>{until == null ? (now - at < 1000 ? "< 1 s" : elapsed(now - at)) : duration(until - at)}</>;
}
