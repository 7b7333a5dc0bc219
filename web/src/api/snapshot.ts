/**
 * What was known, for a page that is loaded while the gateway does not answer: the answers to the queries and the
 * sessions that were open, kept by the browser's cache. It is old, and every page says as of when.
 */
import { dehydrate, hydrate } from "@tanstack/react-query";
import type { SessionView } from "../log/model";
import { thisBuild } from "./build";
import { type DeviceCursors, restoreCursors, storedCursors } from "./cursors";
import { liveSession, openSessions } from "./liveSession";
import { queryClient } from "./queryClient";

const CACHE = "holdfast-snapshot";
const ADDRESS = "/snapshot.json";
const SESSION = "/snapshot/session/";
const SESSIONS_KEPT = 8;
const EVERY_MS = 10_000;
const LARGEST = 8_000_000;
/** What the pages begin with. Search, output and the like are asked for anew. */
const KEPT = new Set([
  "inbox",
  "overview",
  "status",
  "running",
  "ended",
  "at-work",
  "sessions",
  "tasks",
  "boards",
  "cards",
  "profiles",
  "models",
]);

interface Snapshot {
  /** Another build may have another shape. */
  readonly build: string;
  readonly at: number;
  readonly cursors: DeviceCursors;
  readonly queries: ReturnType<typeof dehydrate>;
}

interface KeptSession {
  readonly build: string;
  readonly view: SessionView;
}

/** What an earlier page knew and this one has not asked for. */
let older: Snapshot["queries"]["queries"] = [];

/** Null where the browser keeps nothing. */
async function openCache(): Promise<Cache | null> {
  try {
    return await caches.open(CACHE);
  } catch {
    return null;
  }
}

async function save(): Promise<void> {
  const cache = await openCache();
  if (!cache) return;
  const { queries } = dehydrate(queryClient, {
    shouldDehydrateQuery: (query) => query.state.status === "success" && KEPT.has(String(query.queryKey[0])),
  });
  const current = new Set(queries.map((one) => one.queryHash));
  const snapshot: Snapshot = {
    build: thisBuild,
    at: Date.now(),
    cursors: storedCursors(),
    queries: { mutations: [], queries: [...older.filter((one) => !current.has(one.queryHash)), ...queries] },
  };
  try {
    await put(cache, ADDRESS, snapshot);
    for (const live of openSessions()) await saveSession(cache, live.view.get());
    const old = (await cache.keys()).filter(({ url }) => new URL(url).pathname.startsWith(SESSION));
    for (const request of old.slice(0, -SESSIONS_KEPT)) await cache.delete(request);
  } catch {
    // no room, or not allowed: then a reload without the gateway shows less
  }
}

async function put(cache: Cache, address: string, value: unknown): Promise<void> {
  const text = JSON.stringify(value);
  if (text.length <= LARGEST) await cache.put(address, new Response(text));
}

const savedVersions = new Map<string, number>();

async function saveSession(cache: Cache, view: SessionView): Promise<void> {
  if (savedVersions.get(view.session) === view.version) return;
  savedVersions.set(view.session, view.version);
  await cache.delete(SESSION + view.session); // so that the newest stands last
  await put(cache, SESSION + view.session, { build: thisBuild, view } satisfies KeptSession);
}

/** Keep it up to date while this page hears the gateway. */
export function keepSnapshot(): () => void {
  void read().then((found) => {
    older = found?.queries.queries ?? [];
  });
  const timer = setInterval(() => void save(), EVERY_MS);
  const hidden = (): void => {
    if (document.visibilityState === "hidden") void save();
  };
  document.addEventListener("visibilitychange", hidden);
  const first = setTimeout(() => void save(), 2_000);
  return () => {
    clearInterval(timer);
    clearTimeout(first);
    document.removeEventListener("visibilitychange", hidden);
  };
}

async function read(): Promise<Snapshot | null> {
  const found = await (await openCache())?.match(ADDRESS);
  const snapshot = found ? ((await found.json()) as Snapshot) : null;
  return snapshot?.build === thisBuild ? snapshot : null;
}

/** Put back what was known; when that was, or 0 if nothing was. */
export async function restoreSnapshot(): Promise<number> {
  try {
    const snapshot = await read();
    if (!snapshot) return 0;
    hydrate(queryClient, snapshot.queries);
    restoreCursors(snapshot.cursors);
    const cache = await openCache();
    if (cache) await restoreSessions(cache);
    return snapshot.at;
  } catch {
    return 0;
  }
}

async function restoreSessions(cache: Cache): Promise<void> {
  for (const request of await cache.keys()) {
    if (!new URL(request.url).pathname.startsWith(SESSION)) continue;
    const kept = (await (await cache.match(request))?.json()) as KeptSession | undefined;
    if (kept?.build === thisBuild) liveSession(kept.view.session).view.set(kept.view);
  }
}

/** Whoever signs out leaves nothing behind. */
export async function dropSnapshot(): Promise<void> {
  older = [];
  try {
    await caches.delete(CACHE);
  } catch {
    // nothing was kept
  }
}
