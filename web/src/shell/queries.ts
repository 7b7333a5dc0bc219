/** What every page shows: the inbox, the totals, the gateway itself. */
import { useMemo } from "react";
import { status } from "../api/endpoints";
import { call } from "../api/http";
import { type Known, knownValue, useKnown } from "../api/known";
import type { Inbox, Overview, Status } from "../api/types.gen";

export const useInbox = (): Known<Inbox> => useKnown({ queryKey: ["inbox"], queryFn: () => call("GET /v1/inbox") });

/** The sessions that wait for a person: what works there does not go on. */
export function useWaiting(): ReadonlySet<string> {
  const waits = knownValue(useInbox())?.waits;
  return useMemo(() => new Set(waits?.map((wait) => wait.session)), [waits]);
}

export const useOverview = (): Known<Overview> =>
  useKnown({ queryKey: ["overview"], queryFn: () => call("GET /v1/overview") });
export const useStatus = (): Known<Status> => useKnown({ queryKey: ["status"], queryFn: status });
