/** What is asked for as a whole; lists that are paged are in `lists.ts`. */
import { QueryClient, type UseQueryResult, useQuery } from "@tanstack/react-query";
import type { Inbox, Overview, ProfileList, ResetOutlook, SearchPage, SessionView, Status, TaskView } from "../api.gen";
import { status } from "./doors";
import { call, Unreachable } from "./http";

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      networkMode: "always",
      retry: (failures, error) => error instanceof Unreachable && failures < 2,
    },
    mutations: { networkMode: "always" },
  },
});

const LOOK_MS = 5_000;

/** Every session that is not at rest, however old. */
export const useAtWork = (): readonly SessionView[] =>
  useQuery({
    queryKey: ["at-work"],
    queryFn: async () => (await call("GET /v1/sessions", { query: { at_work: true } })).sessions,
  }).data ?? [];

/** Everything that runs in the background, with what it is doing. */
export const useRunning = (): readonly TaskView[] =>
  useQuery({
    queryKey: ["running"],
    queryFn: async () => (await call("GET /v1/tasks", { query: { state: "running", limit: 500 } })).tasks,
    refetchInterval: (query) => (query.state.data?.length ? LOOK_MS : false),
  }).data ?? [];

/** What ended since a moment, however long ago it began. */
export const useEnded = (since: number): readonly TaskView[] =>
  useQuery({
    queryKey: ["ended", since],
    queryFn: async () => (await call("GET /v1/tasks", { query: { ended: since + 1, limit: 200 } })).tasks,
  }).data ?? [];

export const useTask = (id: string): UseQueryResult<TaskView> =>
  useQuery({
    queryKey: ["task", id],
    queryFn: () => call("GET /v1/tasks/{id}", { path: { id } }),
    refetchInterval: (query) => (query.state.data?.state === "running" ? LOOK_MS : false),
  });

/** When a session is reset, what stands in the way, what runs for it. */
export const useOutlook = (id: string, staleTime = 30_000): UseQueryResult<ResetOutlook> =>
  useQuery({
    queryKey: ["outlook", id],
    staleTime,
    queryFn: () => call("GET /v1/sessions/{id}/reset", { path: { id } }),
    refetchInterval: (query) =>
      query.state.data?.next_at != null || query.state.data?.postponed ? 6 * LOOK_MS : false,
  });

/** Commands that run, are at no work and outlived what they were for. */
export const useStale = (): readonly TaskView[] =>
  useQuery({
    queryKey: ["stale"],
    queryFn: async () => (await call("GET /v1/tasks/stale")).tasks,
    refetchInterval: 12 * LOOK_MS,
  }).data ?? [];

export const useInbox = (): UseQueryResult<Inbox> =>
  useQuery({ queryKey: ["inbox"], queryFn: () => call("GET /v1/inbox") });
export const useOverview = (): UseQueryResult<Overview> =>
  useQuery({ queryKey: ["overview"], queryFn: () => call("GET /v1/overview") });
export const useStatus = (): UseQueryResult<Status> => useQuery({ queryKey: ["status"], queryFn: status });
export const useProfiles = (): UseQueryResult<ProfileList> =>
  useQuery({ queryKey: ["profiles"], queryFn: () => call("GET /v1/profiles") });

export const useSearch = (q: string): UseQueryResult<SearchPage> =>
  useQuery({
    queryKey: ["search", q],
    enabled: q.length > 0,
    queryFn: () => call("GET /v1/search", { query: { q, limit: 50 } }),
  });
