/** How far this device has read: kept by the gateway, so that it is true after any absence and in any tab. */
import { Cell } from "./cell";
import { me, seen } from "./doors";
import { Refused } from "./http";
import { load, save } from "./keep";
import { queries } from "./queries";

const cursors = new Map<string, number>();
export const lastSession = new Cell(load("last", ""));
let onServer = true;

/** Ask once, before anything is shown. */
export async function loadCursors(): Promise<void> {
  try {
    const mine = await me();
    for (const [session, version] of Object.entries(mine.cursors)) cursors.set(session, version);
    if (mine.last_session) lastSession.set(mine.last_session);
  } catch (error) {
    onServer = !(error instanceof Refused && error.status === 404);
    for (const [session, version] of Object.entries(load<Record<string, number>>("cursors", {}))) cursors.set(session, version);
  }
}

/** Up to where it was read; undefined when this device never opened it. */
export function cursorOf(session: string): number | undefined {
  const other = load<Record<string, number>>("cursors", {})[session]; // another tab may have read further
  const ours = cursors.get(session);
  return ours === undefined && other === undefined ? undefined : Math.max(ours ?? 0, other ?? 0);
}

const waiting = new Map<string, number>();
let timer: ReturnType<typeof setTimeout> | undefined;

export function markSeen(session: string, version: number): void {
  if (lastSession.get() !== session) {
    lastSession.set(session);
    save("last", session);
  }
  if (version <= (cursors.get(session) ?? -1)) return;
  cursors.set(session, version);
  waiting.set(session, version);
  timer ??= setTimeout(flushSeen, 400);
}

export function flushSeen(): void {
  clearTimeout(timer);
  timer = undefined;
  for (const [session, version] of waiting) {
    if (onServer) void seen(session, version).then(() => queries.invalidateQueries({ queryKey: ["sessions"] }), () => undefined);
  }
  waiting.clear();
  const known = load<Record<string, number>>("cursors", {});
  const mine = Object.fromEntries([...cursors].map(([session, version]) => [session, Math.max(version, known[session] ?? 0)]));
  save("cursors", Object.fromEntries(Object.entries({ ...known, ...mine }).slice(-500)));
}

/** When this browser last closed or left the page. */
export const leftBefore = load("left", 0);

if (typeof window !== "undefined") {
  window.addEventListener("pagehide", () => {
    flushSeen();
    save("left", Date.now());
  });
}
