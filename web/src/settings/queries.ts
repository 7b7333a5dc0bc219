import { call } from "../api/http";
import { type Known, useKnown } from "../api/known";
import type { ProfileList } from "../api/types.gen";

export const useProfiles = (): Known<ProfileList> =>
  useKnown({ queryKey: ["profiles"], queryFn: () => call("GET /v1/profiles") });
