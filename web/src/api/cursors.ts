/** How far this device has read: kept by the gateway, so that it is true after any absence and in any tab. */
import { readHere } from "../chat/queries";
import { connection } from "./connection";
import { looked, me, seen } from "./endpoints";
import { Refused } from "./http";
import { Store } from "./store";
import { onTabMessage, postToTabs } from "./tabs";
import type { OwnDevice } from "./types.gen";

const cursors = new Map<string, number>();
export const lastSession = new Store("");
/** When somebody last looked through what happened, by the gateway's clock. */
export const lookedAt = new Store(0);

export type DeviceCursors = Pick<OwnDevice, "cursors" | "last_session" | "looked_at">;

/** Ask once, before anything is shown. */
export async function loadCursors(): Promise<void> {
  restoreCursors(await me());
}

export function restoreCursors(mine: DeviceCursors): void {
  cursors.clear();
  for (const [session, version] of Object.entries(mine.cursors)) cursors.set(session, version);
  lastSession.set(mine.last_session);
  lookedAt.set(mine.looked_at);
}

export const storedCursors = (): DeviceCursors => ({
  cursors: Object.fromEntries(cursors),
  last_session: lastSession.get(),
  looked_at: lookedAt.get(),
});

export async function markLooked(): Promise<void> {
  const { looked_at: at } = await looked();
  lookedAt.set(at);
  postToTabs({ looked: at });
}

/** Up to where it was read; undefined when this device never opened it. */
export const cursorOf = (session: string): number | undefined => cursors.get(session);

const waiting = new Map<string, number>();
let timer: ReturnType<typeof setTimeout> | undefined;

export function markSeen(session: string, version: number): void {
  lastSession.set(session);
  if (version <= (cursors.get(session) ?? -1)) return;
  cursors.set(session, version);
  waiting.set(session, version);
  postToTabs({ seen: { session, version } });
  timer ??= setTimeout(flushSeen, 400);
}

export function flushSeen(): void {
  clearTimeout(timer);
  timer = undefined;
  for (const [session, version] of [...waiting]) {
    waiting.delete(session);
    void seen(session, version).then(
      () => readHere(session, version),
      (error: unknown) => {
        const gone = error instanceof Refused && [404, 410].includes(error.status);
        if (!gone && !waiting.has(session)) waiting.set(session, version); // said when the line is back
      },
    );
  }
}

/** Somebody stops looking at a session: the gateway keeps when that was. */
export function leaveSession(session: string): void {
  const version = cursors.get(session);
  if (version === undefined) return;
  if (waiting.has(session)) flushSeen();
  else void seen(session, version).catch(() => undefined);
}

connection.subscribe(() => {
  if (connection.get().state === "live") flushSeen();
});

onTabMessage(({ seen: read, looked: at }) => {
  if (at !== undefined) lookedAt.set(Math.max(at, lookedAt.get()));
  if (read === undefined || read.version <= (cursors.get(read.session) ?? -1)) return;
  cursors.set(read.session, read.version);
  readHere(read.session, read.version);
});

if (typeof window !== "undefined") window.addEventListener("pagehide", flushSeen);
