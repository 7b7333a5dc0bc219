/**
 * What is known of something that the gateway was asked for. Unknown is not zero: a component that has no value says
 * that it loads, or that it does not know, and never a number.
 */
import { type QueryKey, type UseQueryOptions, type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { connection } from "./connection";
import { Refused } from "./http";

export type Known<T> =
  | { readonly state: "loading" }
  /** `current: false`: it was so at `asOf` (this browser's clock), and nothing was heard since. */
  | { readonly state: "known"; readonly value: T; readonly asOf: number; readonly current: boolean }
  /** `missing`: the gateway answered that there is no such thing; else it did not answer, or could not. */
  | { readonly state: "unknown"; readonly reason: string; readonly missing: boolean };

export const LOADING = { state: "loading" } as const;

/** Whether news would arrive; while reconnecting for a few seconds, what is shown still counts as current. */
const heard = (): boolean => connection.get().state !== "offline";

export function useHeard(): boolean {
  return useSyncExternalStore(connection.subscribe, heard);
}

/** The state of a query. While the connection lasts the log keeps a value current, so it is as of the last contact. */
export function knownFrom<T>(
  query: Pick<UseQueryResult<T>, "data" | "dataUpdatedAt" | "isError" | "error">,
  listening: boolean,
  lastContact: number,
): Known<T> {
  if (query.data !== undefined) {
    const asOf = Math.max(query.dataUpdatedAt, Math.min(lastContact, Date.now()));
    return { state: "known", value: query.data, asOf, current: listening && !query.isError };
  }
  if (query.isError) {
    const reason = query.error?.message ?? "The gateway does not answer.";
    const missing = query.error instanceof Refused && [404, 410].includes(query.error.status);
    return { state: "unknown", reason, missing };
  }
  return LOADING;
}

export function useKnown<T, K extends QueryKey = QueryKey>(options: UseQueryOptions<T, Error, T, K>): Known<T> {
  const query = useQuery(options);
  return knownFrom(query, useHeard(), lastContact());
}

/** When the connection was last live, or 0 if this page never had one. */
export function lastContact(): number {
  const now = connection.get();
  return now.state === "live" ? Date.now() : "lastLive" in now ? now.lastLive : 0;
}

export function mapKnown<T, U>(known: Known<T>, change: (value: T) => U): Known<U> {
  return known.state === "known" ? { ...known, value: change(known.value) } : known;
}

/** Both, when both are known; as old as the older. */
export function bothKnown<T, U>(a: Known<T>, b: Known<U>): Known<readonly [T, U]> {
  if (a.state === "unknown") return a;
  if (b.state === "unknown") return b;
  if (a.state === "loading" || b.state === "loading") return LOADING;
  return {
    state: "known",
    value: [a.value, b.value],
    asOf: Math.min(a.asOf, b.asOf),
    current: a.current && b.current,
  };
}

/** The value where nothing is stated by its absence: a count in a badge, a row to highlight. */
export const knownValue = <T>(known: Known<T>): T | undefined => (known.state === "known" ? known.value : undefined);
