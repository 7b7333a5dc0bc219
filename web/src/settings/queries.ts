import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { call } from "../api/http";
import type { ProfileList } from "../api/types.gen";

export const useProfiles = (): UseQueryResult<ProfileList> =>
  useQuery({ queryKey: ["profiles"], queryFn: () => call("GET /v1/profiles") });
