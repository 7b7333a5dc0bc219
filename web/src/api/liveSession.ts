/** The sessions that this page has folded so far: one truth for every component, kept while the page lives. */
import { emptySession, type SessionView } from "../log/model";
import { happened } from "../log/reduce";
import { spoken } from "../log/steps";
import { now } from "./clock";
import { Socket } from "./connection";
import { Store } from "./store";
import type { Delta, LogRecord } from "./types.gen";

const KEPT = 6;

export class LiveSession {
  readonly view: Store<SessionView>;
  /** Why it cannot be followed any more: it was deleted elsewhere. */
  readonly gone = new Store("");
  /** How often the line was cut, what we had then and when we last heard something. */
  readonly reconnects = new Store({ count: 0, version: 0, leftAt: 0 });
  private socket: Socket | null = null;
  private readers = 0;
  private deltas: Delta[] = [];
  private frame: ReturnType<typeof setTimeout> | undefined;
  private heardAt = 0;

  constructor(readonly id: string) {
    this.view = new Store(emptySession(id));
  }

  /** Follow it for as long as somebody looks. */
  read(): () => void {
    this.readers += 1;
    this.socket ??= new Socket({
      address: () => `/v1/sessions/${this.id}/events?after=${this.view.get().version}`,
      heard: (frame) => this.heard(frame.events as readonly LogRecord[] | undefined, frame.delta as Delta | undefined),
      back: () =>
        this.reconnects.set({
          count: this.reconnects.get().count + 1,
          version: this.view.get().version,
          leftAt: this.heardAt,
        }),
      refused: (code, message) => this.refused(code, message),
    });
    return () => {
      this.readers -= 1;
      if (this.readers > 0) return;
      this.socket?.close();
      this.socket = null;
    };
  }

  get isRead(): boolean {
    return this.readers > 0;
  }

  private refused(code: string, message: string): "end" | "again" {
    if (code === "conflict") this.view.set(emptySession(this.id)); // shorter than it was: a backup was restored
    if (code !== "gone" && code !== "not_found") return "again";
    this.gone.set(message);
    return "end";
  }

  private heard(events: readonly LogRecord[] | undefined, delta: Delta | undefined): void {
    this.heardAt = now();
    if (delta) {
      this.deltas.push(delta);
      this.frame ??= setTimeout(() => this.speak(), 40); // at most 25 paints a second
    }
    if (events) {
      this.speak();
      this.view.set(happened(this.view.get(), events));
    }
  }

  private speak(): void {
    clearTimeout(this.frame);
    this.frame = undefined;
    const pieces = this.deltas;
    this.deltas = [];
    if (pieces.length) this.view.set(pieces.reduce(spoken, this.view.get()));
  }
}

const sessions = new Map<string, LiveSession>();

export function liveSession(id: string): LiveSession {
  const known = sessions.get(id) ?? new LiveSession(id);
  sessions.delete(id);
  sessions.set(id, known);
  for (const [old, { isRead }] of sessions) {
    if (sessions.size <= KEPT) break;
    if (old !== id && !isRead) sessions.delete(old);
  }
  return known;
}

/** Those that this page has folded. */
export const openSessions = (): readonly LiveSession[] =>
  [...sessions.values()].filter((one) => one.view.get().version > 0);

/** Whoever signs in next begins anew. */
export function forgetSessions(): void {
  sessions.clear();
}
