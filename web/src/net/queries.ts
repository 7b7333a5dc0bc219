/** The lists: the gateway's projections of the log, asked again when the log says that they changed. */
import { QueryClient, useQuery, type UseQueryResult } from "@tanstack/react-query";
import type { Inbox, ProfileList, SearchPage, SessionDetail, Status, TaskPage, TaskView } from "../api.gen";
import type { SessionRow } from "./doors";
import { Unreachable, call, request } from "./http";

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000, refetchOnWindowFocus: false, networkMode: "always",
      retry: (failures, error) => error instanceof Unreachable && failures < 2,
    },
    mutations: { networkMode: "always" },
  },
});

export interface SessionsPage { readonly sessions: readonly SessionRow[]; readonly next: string | null }

export const useSessions = (archived: boolean): UseQueryResult<SessionsPage> =>
  useQuery({ queryKey: ["sessions", archived], queryFn: () => request<SessionsPage>("GET /v1/sessions", { query: { archived, limit: 200 } }) });

export const useSession = (id: string): UseQueryResult<SessionDetail> =>
  useQuery({ queryKey: ["session", id], queryFn: () => call("GET /v1/sessions/{id}", { path: { id } }), enabled: id !== "" });

export const useTasks = (): UseQueryResult<TaskPage> =>
  useQuery({
    queryKey: ["tasks"], queryFn: () => call("GET /v1/tasks", { query: { limit: 200 } }),
    refetchInterval: (query) => (query.state.data?.tasks.some((task) => task.state === "running") ? 5_000 : false),
  });

export const useTask = (id: string): UseQueryResult<TaskView> =>
  useQuery({
    queryKey: ["task", id], queryFn: () => call("GET /v1/tasks/{id}", { path: { id } }),
    refetchInterval: (query) => (query.state.data?.state === "running" ? 3_000 : false),
  });

export const useInbox = (): UseQueryResult<Inbox> => useQuery({ queryKey: ["inbox"], queryFn: () => call("GET /v1/inbox") });
export const useStatus = (): UseQueryResult<Status> => useQuery({ queryKey: ["status"], queryFn: () => call("GET /v1/status") });
export const useProfiles = (): UseQueryResult<ProfileList> =>
  useQuery({ queryKey: ["profiles"], queryFn: () => call("GET /v1/profiles") });

export const useSearch = (q: string): UseQueryResult<SearchPage> =>
  useQuery({ queryKey: ["search", q], enabled: q.length > 0, queryFn: () => call("GET /v1/search", { query: { q, limit: 30 } }) });
