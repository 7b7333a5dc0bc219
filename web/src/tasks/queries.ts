/** What the pages of tasks ask the gateway for. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { call, fetchBytes, Refused } from "../api/http";
import { type Known, knownFrom, lastContact, useHeard, useKnown } from "../api/known";
import { byId, changeLists, type List, type Listing, type Order, PAGE, placed, useList } from "../api/pagedList";
import { POLL_MS, queryClient } from "../api/queryClient";
import type { OutputHit, TaskView } from "../api/types.gen";
import { isOpen } from "./taskWords";

export const taskOrder: Order<TaskView> = (a, b) => b.started_at - a.started_at || byId(a, b);

export function useTasks(state = "", kind = "", text = ""): List<TaskView> {
  const ask = useCallback(
    async (before: string): Promise<Listing<TaskView>> => {
      const { tasks, next } = await call("GET /v1/tasks", { query: { state, kind, text, limit: PAGE, before } });
      return { rows: tasks, next };
    },
    [state, kind, text],
  );
  return useList(["tasks", state, kind, text], ask, taskOrder);
}

/** Everything that runs in the background, with what it is doing. */
export const useRunning = (): Known<readonly TaskView[]> =>
  useKnown({
    queryKey: ["running"],
    queryFn: async () => (await call("GET /v1/tasks", { query: { state: "running", limit: 500 } })).tasks,
    refetchInterval: (query) => (query.state.data?.length ? POLL_MS : false),
  });

const NO_HITS: Known<readonly OutputHit[]> = { state: "known", value: [], asOf: 0, current: true };
const SHORTEST = 3;

/** The tasks whose output has the text; of a shorter one the outputs are not asked. */
export function useOutputHits(q: string): Known<readonly OutputHit[]> {
  const asked = useKnown({
    queryKey: ["output", q],
    enabled: q.length >= SHORTEST,
    queryFn: async () => (await call("GET /v1/tasks/search", { query: { q, limit: 100 } })).hits,
  });
  return q.length >= SHORTEST ? asked : NO_HITS;
}

/** What ended since a moment, however long ago it began. */
export const useEnded = (since: number): Known<readonly TaskView[]> =>
  useKnown({
    queryKey: ["ended", since],
    queryFn: async () => (await call("GET /v1/tasks", { query: { ended: since + 1, limit: 200 } })).tasks,
  });

/** A task, and whether it is still as it was when it was last heard of. */
export function useTask(id: string): { readonly query: UseQueryResult<TaskView>; readonly known: Known<TaskView> } {
  const query = useQuery({
    queryKey: ["task", id],
    queryFn: () => call("GET /v1/tasks/{id}", { path: { id } }),
    initialData: () => listed(id),
    initialDataUpdatedAt: 0, // it is asked for all the same
    refetchInterval: (asked) => (asked.state.data !== undefined && isOpen(asked.state.data) ? POLL_MS : false),
  });
  return { query, known: knownFrom(query, useHeard(), lastContact()) };
}

/** As a list has it, so that its page can be opened while the gateway does not answer. */
function listed(id: string): TaskView | undefined {
  const lists = queryClient.getQueriesData<Listing<TaskView>>({ queryKey: ["tasks"] });
  return lists.flatMap(([, list]) => list?.rows ?? []).find((task) => task.id === id);
}

/** Commands that run, are at no work and outlived what they were for. */
export const useStale = (): Known<readonly TaskView[]> =>
  useKnown({
    queryKey: ["stale"],
    queryFn: async () => (await call("GET /v1/tasks/stale")).tasks,
    refetchInterval: 12 * POLL_MS,
  });

/** Bytes of an output as they were written: those before `start` were dropped if there is a gap. */
export interface OutputPiece {
  readonly start: number;
  readonly bytes: Uint8Array;
  readonly next: number;
  readonly size: number;
  readonly state: string;
  readonly gap: { readonly start: number; readonly end: number } | null;
}

export async function readOutput(
  task: string,
  query: { readonly offset: number; readonly limit: number; readonly wait?: number },
  signal: AbortSignal,
): Promise<OutputPiece> {
  const answer = await fetchBytes("GET /v1/tasks/{id}/output", {
    path: { id: task },
    query: { ...query, raw: true },
    signal,
  });
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const next = Number(answer.headers.get("holdfast-next"));
  const start = next - bytes.length;
  return {
    start,
    bytes,
    next,
    size: Number(answer.headers.get("holdfast-size")),
    state: answer.headers.get("holdfast-state") ?? "",
    gap: start > query.offset ? { start: query.offset, end: start } : null,
  };
}

/** Tasks do not move in the list, so each is asked for alone. */
export async function refreshTask(id: string): Promise<void> {
  try {
    const task = await call("GET /v1/tasks/{id}", { path: { id } });
    changeLists<TaskView>("tasks", (known, [, state, kind, text]) => {
      const here = known.rows.some((row) => row.id === id);
      const fits = !task.foreground && (state === "" || state === task.state) && (kind === "" || kind === task.kind);
      return placed(known, task, fits && (text === "" || here), taskOrder);
    });
  } catch (error) {
    if (error instanceof Refused) dropTask(id);
  }
}

export function dropTask(id: string): void {
  changeLists<TaskView>("tasks", (known) => ({ ...known, rows: known.rows.filter((row) => row.id !== id) }));
}
