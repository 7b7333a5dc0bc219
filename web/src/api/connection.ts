/**
 * The line to the gateway: is it live, since when not, and when is the next try.
 *
 * Two sockets at most: the whole log (lists, tasks, inbox; it carries no deltas), and the session that is looked at
 * (its deltas, and versions without gaps). Both are cursors; whichever is cut comes back with its own.
 */

import { request, signedOut } from "./http";
import { Store } from "./store";

export type Connection =
  | { readonly state: "connecting" }
  | { readonly state: "live" }
  /** `lastLive` is when it last worked, 0 for a page that never had a connection; all by this browser's clock. */
  | {
      readonly state: "reconnecting" | "offline";
      readonly since: number;
      readonly next: number;
      readonly lastLive: number;
    };

export const connection = new Store<Connection>({ state: "connecting" });

/**
 * Why nothing is heard, as far as this page can tell: this device is offline; the gateway answers but its stream is
 * cut; nothing listens on this machine, so the gateway is stopped; or it cannot be reached for whatever reason.
 */
export type OfflineCause = "device" | "stream" | "stopped" | "unreachable";
export const offlineCause = new Store<OfflineCause>("unreachable");

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

const SILENCE_MS = 7_000; // then we ask: with the probe's patience a dead line is noticed within 10 s
const PROBE_MS = 2_500;
const DEAF_MS = 14_000; // the gateway answers, but this socket has not had its heartbeat
const OFFLINE_MS = 10_000;
const PAUSES_MS = [250, 500, 1_000, 2_000, 4_000, 8_000];

export interface Follower {
  /** Where to go on, asked anew at every try. */
  address(): string;
  heard(frame: Frame): void;
  /** It was opened again. */
  back?(): void;
  /** The gateway refused: is that the end, or is it tried again? By default again. */
  refused?(code: string, message: string): "end" | "again";
}

export interface Frame {
  readonly events?: readonly unknown[];
  readonly cursor?: number;
  readonly delta?: unknown;
  readonly heartbeat?: boolean;
  readonly error?: { readonly code: string; readonly message: string };
}

const open = new Set<Socket>();

/** One socket that comes back until it is closed. */
export class Socket {
  private socket: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private watchdog: ReturnType<typeof setTimeout> | undefined;
  private tries = 0;
  private heardAt = 0;
  private closed = false;
  private wasOpen = false;
  live = false;
  next = 0;

  constructor(private readonly follower: Follower) {
    open.add(this);
    this.connect();
  }

  close(): void {
    this.closed = true;
    open.delete(this);
    clearTimeout(this.timer);
    this.drop();
    settle();
  }

  /** Now, not later. */
  retry(): void {
    if (this.live || this.closed) return;
    this.tries = 0;
    clearTimeout(this.timer);
    this.drop();
    this.connect();
  }

  /** It is dead, whatever the browser believes. */
  lost(): void {
    if (this.closed) return;
    const pause = PAUSES_MS[Math.min(this.tries, PAUSES_MS.length - 1)] ?? 8_000;
    this.tries += 1;
    this.drop();
    clearTimeout(this.timer);
    const wait = pause * (0.75 + Math.random() / 2);
    this.next = Date.now() + wait;
    this.timer = setTimeout(() => this.connect(), wait);
    settle();
  }

  private connect(): void {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}${this.follower.address()}`);
    this.socket = socket;
    this.arm();
    socket.onopen = () => {
      if (this.wasOpen) this.follower.back?.();
      this.wasOpen = true;
      this.up();
    };
    socket.onmessage = (message) => {
      try {
        const frame = JSON.parse(String(message.data)) as Frame;
        if (frame.error) return this.refused(frame.error.code, frame.error.message);
        this.up();
        this.follower.heard(frame);
      } catch {
        this.lost(); // something is missing: ask again from the cursor
      }
    };
    socket.onclose = () => {
      if (socket !== this.socket) return;
      void diagnose();
      if (!this.live) void request("GET /v1/status").catch(() => undefined); // refused: are we still signed in?
      this.lost();
    };
  }

  private refused(code: string, message: string): void {
    if (code !== "unauthorized" && (this.follower.refused?.(code, message) ?? "again") === "again") return this.lost();
    this.close();
    if (code === "unauthorized") signedOut();
  }

  private up(): void {
    this.live = true;
    this.tries = 0;
    this.heardAt = Date.now();
    this.arm();
    settle();
  }

  private arm(): void {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => void this.doubt(), SILENCE_MS);
  }

  private async doubt(): Promise<void> {
    const socket = this.socket;
    const answers = await probe();
    if (socket !== this.socket || this.closed) return;
    if (!answers || Date.now() - this.heardAt > DEAF_MS) this.lost();
    else this.arm();
  }

  private drop(): void {
    clearTimeout(this.watchdog);
    this.live = false;
    const socket = this.socket;
    this.socket = null;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }
}

async function probe(): Promise<boolean> {
  try {
    return (await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(PROBE_MS) })).ok;
  } catch {
    return false;
  }
}

async function diagnose(): Promise<void> {
  if (!navigator.onLine) return offlineCause.set(isLoopback(location.hostname) ? "unreachable" : "device");
  const began = Date.now();
  if (await probe()) return offlineCause.set("stream");
  const refused = Date.now() - began < PROBE_MS / 2; // at once: nothing listens there
  offlineCause.set(isLoopback(location.hostname) && refused ? "stopped" : "unreachable");
}

/** The page was loaded without the gateway: it shows what was known when it was last heard. */
export function startOffline(lastLive: number): void {
  connection.set({ state: "offline", since: lastLive, next: Date.now(), lastLive });
  void diagnose();
}

let offlineTimer: ReturnType<typeof setTimeout> | undefined;

/** One word for all sockets. */
function settle(): void {
  const sockets = [...open];
  const before = connection.get();
  if (sockets.length === 0) return clearTimeout(offlineTimer);
  if (sockets.every((socket) => socket.live)) {
    clearTimeout(offlineTimer);
    if (before.state !== "live") connection.set({ state: "live" });
    return;
  }
  if (before.state === "connecting" && sockets.every((socket) => socket.next === 0)) return;
  const next = Math.min(...sockets.filter((socket) => !socket.live).map((socket) => socket.next));
  const since = "since" in before ? before.since : Date.now();
  const late = Date.now() - since >= OFFLINE_MS || !navigator.onLine;
  const opening = sockets.some((socket) => !socket.live && socket.next === 0) && before.state === "live";
  if (opening) return; // another session was opened; the line is the same
  const lastLive = before.state === "live" ? Date.now() : "lastLive" in before ? before.lastLive : 0;
  connection.set({ state: late ? "offline" : "reconnecting", since, next, lastLive });
  clearTimeout(offlineTimer);
  if (!late) offlineTimer = setTimeout(settle, OFFLINE_MS - (Date.now() - since));
}

export function retryNow(): void {
  for (const socket of open) socket.retry();
}

if (typeof window !== "undefined") {
  window.addEventListener("offline", () => {
    for (const socket of open) socket.lost();
  });
  window.addEventListener("online", retryNow);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && connection.get().state !== "live") retryNow();
  });
}
