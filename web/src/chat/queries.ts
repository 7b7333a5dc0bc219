/** What the chat asks the gateway for. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { call, Refused } from "../api/http";
import { type Known, useKnown } from "../api/known";
import { byId, changeLists, type List, type Listing, type Order, PAGE, placed, useList } from "../api/pagedList";
import { POLL_MS } from "../api/queryClient";
import type { ResetOutlook, SearchPage, SessionView } from "../api/types.gen";

export const sessionOrder: Order<SessionView> = (a, b) =>
  Number(b.pinned) - Number(a.pinned) || b.updated_at - a.updated_at || byId(a, b);

export function useSessions(archived: boolean, text = ""): List<SessionView> {
  const ask = useCallback(
    async (before: string): Promise<Listing<SessionView>> => {
      const { sessions, next } = await call("GET /v1/sessions", { query: { archived, text, limit: PAGE, before } });
      return { rows: sessions, next };
    },
    [archived, text],
  );
  return useList(["sessions", archived, text], ask, sessionOrder);
}

/** Every session that is not at rest, however old. */
export const useAtWork = (): Known<readonly SessionView[]> =>
  useKnown({
    queryKey: ["at-work"],
    queryFn: async () => (await call("GET /v1/sessions", { query: { at_work: true } })).sessions,
  });

/** When a session is reset, what stands in the way, what runs for it. */
export const useOutlook = (id: string, staleTime = 30_000): UseQueryResult<ResetOutlook> =>
  useQuery({
    queryKey: ["outlook", id],
    staleTime,
    queryFn: () => call("GET /v1/sessions/{id}/reset", { path: { id } }),
    refetchInterval: (query) =>
      query.state.data?.next_at != null || query.state.data?.postponed ? 6 * POLL_MS : false,
  });

export const useSearch = (q: string): UseQueryResult<SearchPage> =>
  useQuery({
    queryKey: ["search", q],
    enabled: q.length > 0,
    queryFn: () => call("GET /v1/search", { query: { q, limit: 50 } }),
  });

/** A session's row changed where it stands: another title, pinned, archived. */
export async function refreshSession(id: string): Promise<void> {
  try {
    const { session } = await call("GET /v1/sessions/{id}", { path: { id } });
    changeLists<SessionView>("sessions", (known, [, archived, text]) => {
      const here = known.rows.some((row) => row.id === id);
      return placed(known, session, session.archived === archived && (text === "" || here), sessionOrder);
    });
  } catch (error) {
    if (error instanceof Refused) dropSession(id);
  }
}

export function dropSession(id: string): void {
  changeLists<SessionView>("sessions", (known) => ({ ...known, rows: known.rows.filter((row) => row.id !== id) }));
}

/** Read up to a version: when that is all, nothing is unread any more. */
export function readHere(id: string, version: number): void {
  changeLists<SessionView>("sessions", (known) => {
    const row = known.rows.find((one) => one.id === id);
    if (!row || row.unread === 0 || row.version > version) return known;
    return { ...known, rows: known.rows.map((one) => (one === row ? { ...row, unread: 0 } : one)) };
  });
}
