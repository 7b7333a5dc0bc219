/** What the chat asks the gateway for. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { call, Refused } from "../api/http";
import { type Known, useKnown } from "../api/known";
import { byId, changeLists, type List, type Listing, type Order, PAGE, placed, useList } from "../api/pagedList";
import { POLL_MS, queryClient } from "../api/queryClient";
import type { ModelList, ResetOutlook, SearchPage, SessionView, TaskView, Unread } from "../api/types.gen";

export const sessionOrder: Order<SessionView> = (a, b) =>
  Number(b.pinned) - Number(a.pinned) || b.updated_at - a.updated_at || byId(a, b);

/** Which sessions: all, or those of a person, of workers on the board, of agents in the background. */
export type Kind = "" | "mine" | "worker" | "background";
export const KINDS: readonly (readonly [Kind, string])[] = [
  ["mine", "Mine"],
  ["worker", "Workers"],
  ["background", "Background"],
  ["", "All"],
];

export function useSessions(archived: boolean, text = "", kind: Kind = ""): List<SessionView> {
  const ask = useCallback(
    async (before: string): Promise<Listing<SessionView>> => {
      const query = { archived, text, kind, limit: PAGE, before };
      const { sessions, next } = await call("GET /v1/sessions", { query });
      return { rows: sessions, next };
    },
    [archived, text, kind],
  );
  return useList(["sessions", archived, text, kind], ask, sessionOrder);
}

/** The other kinds of which the same list has a session. */
export const useOtherKinds = (kind: Kind, archived: boolean, text: string): Known<readonly Kind[]> =>
  useKnown({
    queryKey: ["at-work", "kinds", archived, text, kind], // asked again with everything that is at work
    enabled: kind !== "",
    queryFn: async () => {
      const others = (["mine", "worker", "background"] as const).filter((one) => one !== kind);
      const found = await Promise.all(
        others.map((one) => call("GET /v1/sessions", { query: { archived, text, kind: one, limit: 1 } })),
      );
      return others.filter((_, index) => (found[index]?.sessions.length ?? 0) > 0);
    },
  });

const UNREAD = ["at-work", "unread"] as const; // asked again with everything that is at work

/** What this device has not read, in all sessions: the gateway counts it. */
export const useUnread = (): Known<Unread> => useKnown({ queryKey: UNREAD, queryFn: () => call("GET /v1/unread") });

/** Everything of a session that runs or ran as a task, newest first; also what a turn waits for now. */
export const useSessionTasks = (session: string): Known<readonly TaskView[]> =>
  useKnown({
    queryKey: ["running", "of-session", session], // asked again with everything that runs
    queryFn: async () => {
      const of = { session, limit: 100 };
      const [background, running] = await Promise.all([
        call("GET /v1/tasks", { query: of }),
        call("GET /v1/tasks", { query: { ...of, all: true, state: "running" } }),
      ]);
      const known = new Set(background.tasks.map((task) => task.id));
      return [...running.tasks.filter((task) => !known.has(task.id)), ...background.tasks];
    },
  });

export const useModels = (): Known<ModelList> =>
  useKnown({ queryKey: ["models"], staleTime: 60_000, queryFn: () => call("GET /v1/models") });

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

export const useSearch = (q: string): Known<SearchPage> =>
  useKnown({
    queryKey: ["search", q],
    enabled: q.length > 0,
    queryFn: () => call("GET /v1/search", { query: { q, limit: 50 } }),
  });

/** A session's row changed where it stands: another title, pinned, archived. */
export async function refreshSession(id: string): Promise<void> {
  try {
    const { session } = await call("GET /v1/sessions/{id}", { path: { id } });
    changeLists<SessionView>("sessions", (known, [, archived, text, kind]) => {
      const here = known.rows.some((row) => row.id === id);
      const fits = session.archived === archived && (kind === "" || kind === session.kind) && (text === "" || here);
      return placed(known, session, fits, sessionOrder);
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
  void queryClient.invalidateQueries({ queryKey: UNREAD });
}
