/**
 * The lists: the gateway's projections of the log, loaded page by page. When the log says that something changed, the
 * first page is asked for again and laid over what is known; a row that changed in its place is asked for alone.
 */

import { useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { type Known, knownFrom, LOADING, lastContact, mapKnown, useHeard } from "./known";
import { queryClient } from "./queryClient";

export interface Listing<T> {
  readonly rows: readonly T[];
  /** The cursor of what is not loaded yet. */
  readonly next: string | null;
}

export interface Row {
  readonly id: string;
}
export type Order<T> = (a: T, b: T) => number;

export const byId = (a: Row, b: Row): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

/** A first page laid over what was known: what is behind it stays, what it should have shown and did not is gone. */
export function overlaid<T extends Row>(known: Listing<T> | undefined, page: Listing<T>, order: Order<T>): Listing<T> {
  const last = page.rows.at(-1);
  if (!known || page.next === null || last === undefined) return page;
  const ids = new Set(page.rows.map((row) => row.id));
  if (!known.rows.some((row) => ids.has(row.id))) return page; // so much is new that something may lie between
  const behind = known.rows.filter((row) => !ids.has(row.id) && order(row, last) > 0);
  return behind.length === 0 ? page : { rows: [...page.rows, ...behind], next: known.next };
}

/** The following page at the end of what is known. */
export function grown<T extends Row>(known: Listing<T>, page: Listing<T>): Listing<T> {
  const ids = new Set(known.rows.map((row) => row.id));
  return { rows: [...known.rows, ...page.rows.filter((row) => !ids.has(row.id))], next: page.next };
}

/** One row in its right place, or out of the list. Behind what is loaded there is nothing to put it into. */
export function placed<T extends Row>(known: Listing<T>, row: T, fits: boolean, order: Order<T>): Listing<T> {
  const rows = known.rows.filter((one) => one.id !== row.id);
  if (!fits) return rows.length === known.rows.length ? known : { ...known, rows };
  const last = known.rows.at(-1);
  if (known.next !== null && (last === undefined || order(row, last) > 0)) return { ...known, rows };
  const at = rows.findIndex((one) => order(row, one) < 0);
  rows.splice(at < 0 ? rows.length : at, 0, row);
  return { ...known, rows };
}

export interface List<T> {
  /** What is known of it. Nothing is said of a list by anything else: that it is empty, or how long. */
  readonly known: Known<readonly T[]>;
  /** What to draw: the rows that are known, and while another list is on its way those of the one before. */
  readonly rows: readonly T[];
  /** There is more than is loaded. */
  readonly more: boolean;
  readonly loadMore: () => void;
}

/** Rows per page. */
export const PAGE = 200;
const asking = new Set<string>();

export function useList<T extends Row>(
  key: readonly (string | boolean)[],
  ask: (before: string) => Promise<Listing<T>>,
  order: Order<T>,
): List<T> {
  const query = useQuery({
    queryKey: key,
    queryFn: async () => {
      const page = await ask("");
      // As it is now: rows may have changed meanwhile.
      return overlaid(queryClient.getQueryData<Listing<T>>(key), page, order);
    },
    placeholderData: (before) => before, // what was there stays until the answer comes
  });
  const next = query.isPlaceholderData ? null : (query.data?.next ?? null);
  const name = JSON.stringify(key);
  const loadMore = useCallback(() => {
    if (next === null || asking.has(name)) return;
    asking.add(name);
    void ask(next)
      .then(
        (page) => {
          queryClient.setQueryData<Listing<T>>(JSON.parse(name) as unknown[], (known) =>
            known?.next === next ? grown(known, page) : known,
          );
        },
        () => undefined,
      )
      .finally(() => asking.delete(name));
  }, [next, name, ask]);
  const known = knownFrom(query, useHeard(), lastContact());
  return {
    known: query.isPlaceholderData ? LOADING : mapKnown(known, (listing) => listing.rows),
    rows: query.data?.rows ?? [],
    more: next !== null,
    loadMore,
  };
}

/** Change every loaded list of this name. */
export function changeLists<T>(name: string, next: (known: Listing<T>, key: readonly unknown[]) => Listing<T>): void {
  for (const [key, known] of queryClient.getQueriesData<Listing<T>>({ queryKey: [name] })) {
    if (known) queryClient.setQueryData(key, next(known, key));
  }
}
