/** Signing in, devices, read cursors: what a browser needs beside the log. */
import { learn } from "./clock";
import { call } from "./http";
import type {
  Accepted,
  AwaySummary,
  Build,
  DeviceList,
  LoggedIn,
  OwnDevice,
  QueueEdit,
  ReadPosition,
  Reviewed,
  SignInCode,
  Status,
} from "./types.gen";

/** The gateway about itself; it tells the time too. */
export async function status(): Promise<Status> {
  const asked = Date.now();
  const found = await call("GET /v1/status");
  learn(found.started_at + found.uptime_ms, asked, Date.now());
  return found;
}

export const login = (code: string, name: string): Promise<LoggedIn> =>
  call("POST /v1/login", { body: { code, name } });
export const logout = (): Promise<LoggedIn> => call("POST /v1/logout");
export const newCode = (): Promise<SignInCode> => call("POST /v1/codes");
export const build = (): Promise<Build> => call("GET /v1/build");
export const devices = (): Promise<DeviceList> => call("GET /v1/devices");
export const renameDevice = (id: string, name: string): Promise<LoggedIn> =>
  call("PATCH /v1/devices/{id}", { path: { id }, body: { name } });
export const revoke = (id: string): Promise<LoggedIn> => call("DELETE /v1/devices/{id}", { path: { id } });
export const me = (): Promise<OwnDevice> => call("GET /v1/devices/me");
export const looked = (): Promise<Reviewed> => call("POST /v1/looked");
export const seen = (session: string, version: number): Promise<ReadPosition> =>
  call("POST /v1/seen", { body: { session, version }, keepalive: true });
export const away = (session: string, after: number): Promise<AwaySummary> =>
  call("GET /v1/sessions/{id}/away", { path: { id: session }, query: { after } });
export const pinSession = (id: string, pinned: boolean): Promise<Accepted> =>
  call("POST /v1/sessions/{id}/pin", { path: { id }, body: { pinned } });
export const undoReset = (id: string): Promise<Accepted> => call("POST /v1/sessions/{id}/reset/undo", { path: { id } });
export const changeQueued = (id: string, input: string, change: QueueEdit): Promise<Accepted> =>
  call("PATCH /v1/sessions/{id}/queue/{input}", { path: { id, input }, body: change });
export const removeQueued = (id: string, input: string): Promise<Accepted> =>
  call("DELETE /v1/sessions/{id}/queue/{input}", { path: { id, input } });
