import { devices } from "../api/endpoints";
import { call } from "../api/http";
import { type Known, knownValue, useKnown } from "../api/known";
import { queryClient } from "../api/queryClient";
import type {
  AgentList,
  DeliveryList,
  DestinationList,
  DeviceList,
  EditSettings,
  ModelList,
  ProfileList,
  PushState,
  RetentionView,
  SettingsView,
} from "../api/types.gen";

export const useProfiles = (): Known<ProfileList> =>
  useKnown({ queryKey: ["profiles"], queryFn: () => call("GET /v1/profiles") });
/** Whether an external agent works with this profile: its context is its own, and its turns cannot be repeated. */
export const useIsExternal = (profile: string): boolean =>
  (knownValue(useProfiles())?.profiles.find((one) => one.name === profile)?.agent ?? "") !== "";
export const useModels = (): Known<ModelList> =>
  useKnown({ queryKey: ["models"], queryFn: () => call("GET /v1/models") });
export const useAgents = (): Known<AgentList> =>
  useKnown({ queryKey: ["agents"], queryFn: () => call("GET /v1/agents") });
export const useDevices = (): Known<DeviceList> =>
  useKnown({ queryKey: ["devices"], queryFn: devices, staleTime: 5_000 });
export const useRetention = (): Known<RetentionView> =>
  useKnown({ queryKey: ["retention"], queryFn: () => call("GET /v1/retention"), staleTime: 0 });
export const useSettings = (): Known<SettingsView> =>
  useKnown({ queryKey: ["settings"], queryFn: () => call("GET /v1/settings") });
export const usePush = (): Known<PushState> =>
  useKnown({ queryKey: ["push"], queryFn: () => call("GET /v1/push"), staleTime: 0 });
export const useDestinations = (): Known<DestinationList> =>
  useKnown({ queryKey: ["notify", "destinations"], queryFn: () => call("GET /v1/notify"), staleTime: 0 });
export const useDeliveries = (): Known<DeliveryList> =>
  useKnown({
    queryKey: ["notify", "log"],
    queryFn: () => call("GET /v1/notify/log", { query: { limit: 500 } }),
    staleTime: 0,
  });

/** Write them into config.toml. What was chosen is shown at once; if it is refused, what holds is asked for again. */
export async function changeSettings(change: EditSettings): Promise<void> {
  const { default_profile: chosen, session_reset, retention } = change;
  queryClient.setQueryData<SettingsView>(
    ["settings"],
    (known) => known && { ...known, ...(session_reset && { session_reset }), ...(retention && { retention }) },
  );
  if (chosen)
    queryClient.setQueryData<ProfileList>(
      ["profiles"],
      (known) =>
        known && { ...known, profiles: known.profiles.map((one) => ({ ...one, default: one.name === chosen })) },
    );
  try {
    queryClient.setQueryData(["settings"], await call("PATCH /v1/settings", { body: change }));
  } catch (error) {
    void queryClient.invalidateQueries({ queryKey: ["settings"] });
    void queryClient.invalidateQueries({ queryKey: ["profiles"] });
    throw error;
  }
  for (const name of ["profiles", "retention", "outlook"]) void queryClient.invalidateQueries({ queryKey: [name] });
}
