/** What every page shows: the inbox, the totals, the gateway itself. */
import { status } from "../api/endpoints";
import { call } from "../api/http";
import { type Known, useKnown } from "../api/known";
import type { Inbox, Overview, Status } from "../api/types.gen";

export const useInbox = (): Known<Inbox> => useKnown({ queryKey: ["inbox"], queryFn: () => call("GET /v1/inbox") });
export const useOverview = (): Known<Overview> =>
  useKnown({ queryKey: ["overview"], queryFn: () => call("GET /v1/overview") });
export const useStatus = (): Known<Status> => useKnown({ queryKey: ["status"], queryFn: status });
