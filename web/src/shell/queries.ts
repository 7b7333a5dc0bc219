/** What every page shows: the inbox, the totals, the gateway itself. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { status } from "../api/endpoints";
import { call } from "../api/http";
import type { Inbox, Overview, Status } from "../api/types.gen";

export const useInbox = (): UseQueryResult<Inbox> =>
  useQuery({ queryKey: ["inbox"], queryFn: () => call("GET /v1/inbox") });
export const useOverview = (): UseQueryResult<Overview> =>
  useQuery({ queryKey: ["overview"], queryFn: () => call("GET /v1/overview") });
export const useStatus = (): UseQueryResult<Status> => useQuery({ queryKey: ["status"], queryFn: status });
