/** Signing in, devices, read cursors: what a browser needs beside the log. */
import type { Session } from "../api.gen";
import { request } from "./http";

export interface Device {
  readonly id: string;
  readonly name: string;
  readonly created_at: number;
  readonly seen_at: number;
  readonly current: boolean;
  readonly connected: boolean | number;
}

export interface Me {
  readonly device: Device | string | null;
  readonly last_session: string | null;
  readonly cursors: Readonly<Record<string, number>>;
}

export interface Away {
  readonly after: number;
  readonly version: number;
  readonly messages: number;
  readonly first: number | null;
  readonly since: number | null;
  readonly tool_calls: number;
  readonly tasks: { readonly done: number; readonly failed: number; readonly stopped: number; readonly lost: number };
  readonly questions: number;
  readonly failures: number;
}

export type SessionRow = Session & { readonly unread?: number; readonly pinned?: boolean };

export const login = (code: string, name: string): Promise<unknown> => request("POST /v1/login", { body: { code, name } });
export const logout = (): Promise<unknown> => request("POST /v1/logout");
export const newCode = (): Promise<{ code: string; expires_at: number }> => request("POST /v1/codes");
export const build = (): Promise<{ version: string; build: string }> => request("GET /v1/build");
export const devices = (): Promise<{ devices: readonly Device[] }> => request("GET /v1/devices");
export const revoke = (id: string): Promise<unknown> => request("DELETE /v1/devices/{id}", { path: { id } });
export const me = (): Promise<Me> => request("GET /v1/devices/me");
export const seen = (session: string, version: number): Promise<unknown> =>
  request("POST /v1/seen", { body: { session, version }, keepalive: true });
export const away = (session: string, after: number): Promise<Away> =>
  request("GET /v1/sessions/{id}/away", { path: { id: session }, query: { after } });
export const pinSession = (id: string, pinned: boolean): Promise<unknown> =>
  request("POST /v1/sessions/{id}/pin", { path: { id }, body: { pinned } });
export const changeQueued = (
  id: string, input: string, change: { text?: string; mode?: string; place?: number },
): Promise<unknown> => request("PATCH /v1/sessions/{id}/queue/{input}", { path: { id, input }, body: change });
export const removeQueued = (id: string, input: string): Promise<unknown> =>
  request("DELETE /v1/sessions/{id}/queue/{input}", { path: { id, input } });
