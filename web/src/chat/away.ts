/**
 * What happened while nobody looked. The log says what: everything between the version that this device had read and
 * the version that the session had when we came back. The gateway says since when: it keeps the last look of each
 * device at each session.
 */
import { useEffect, useState } from "react";
import { now } from "../api/clock";
import { cursorOf } from "../api/cursors";
import { away as askAway } from "../api/endpoints";
import type { LiveSession } from "../api/liveSession";
import { useStore } from "../api/store";
import type { AwaySummary } from "../api/types.gen";
import type { FlowItem } from "./Entry";

export interface Missed {
  readonly after: number;
  readonly upTo: number;
  /** Finished texts of the agent, and the version of the first. */
  readonly messages: number;
  readonly first: number;
  readonly from: number;
  readonly until: number;
  readonly reconnected: boolean;
  readonly digest: AwaySummary | null;
}

let booted = false;

export interface AwayState {
  readonly missed: Missed | null;
  /** Nothing is marked as read before it is known what was missed. */
  readonly ready: boolean;
  readonly dismiss: () => void;
  readonly shown: boolean;
}

/** Where what was missed begins in the flow: whatever it is, a failed task as well as an answer. */
export const spliceIndex = (items: readonly FlowItem[], missed: Missed | null): number =>
  missed === null ? -1 : items.findIndex((item) => item.version > missed.after && item.version <= missed.upTo);

export function useAway(live: LiveSession): AwayState {
  const reconnects = useStore(live.reconnects);
  const [before] = useState(reconnects.count); // those of an earlier look at it
  const [missed, setMissed] = useState<Missed | null>(null);
  const [shown, setShown] = useState(false);
  const [ready, setReady] = useState(false);

  useEffect(() => {
    const boot = !booted;
    booted = true;
    const back = reconnects.count > before;
    const cursor = cursorOf(live.id);
    const after = back ? reconnects.version : cursor;
    const left = new AbortController();
    const current = (): boolean => !left.signal.aborted;
    const backAt = now();
    const look = async (): Promise<void> => {
      const digest = await askAway(live.id, after ?? 0);
      await reached(live, digest.version, left.signal);
      if (!current()) return;
      if (after !== undefined) {
        const from = Math.min(backAt, (back ? reconnects.leftAt : digest.looked_at) || digest.since);
        const known = summary(live, { after, upTo: digest.version, from, until: backAt });
        if (known) {
          setMissed({ ...known, reconnected: back || boot, digest });
          setShown((back || boot) && known.messages > 0);
        }
      }
      setReady(true);
    };
    const attemptLook = (): void => {
      void look().catch(() => {
        if (current()) setTimeout(() => current() && attemptLook(), 1500); // cut again; nothing is marked as read
      });
    };
    setReady(false);
    attemptLook();
    return () => left.abort();
  }, [live, reconnects, before]);

  // A tab that nobody saw was away too, though its connection was not cut.
  useEffect(() => {
    let hiddenAt = 0;
    const changed = (): void => {
      if (document.visibilityState !== "visible") {
        hiddenAt = now();
        return;
      }
      const after = cursorOf(live.id);
      if (hiddenAt === 0 || after === undefined) return;
      const upTo = live.view.get().version;
      const known = summary(live, { after, upTo, from: hiddenAt, until: now() });
      if (!known) return;
      setMissed({ ...known, reconnected: false, digest: null });
      setShown(known.messages > 0);
    };
    document.addEventListener("visibilitychange", changed);
    return () => document.removeEventListener("visibilitychange", changed);
  }, [live]);

  return { missed, ready, shown, dismiss: () => setShown(false) };
}

type Span = Pick<Missed, "after" | "upTo" | "from" | "until">;

/** What stands between two versions; null when that is nothing. */
function summary(live: LiveSession, span: Span): Omit<Missed, "reconnected" | "digest"> | null {
  const { items, messages } = live.view.get();
  const texts = messages.filter((version) => version > span.after && version <= span.upTo);
  const first = texts[0] ?? items.find((item) => item.version > span.after && item.version <= span.upTo)?.version;
  return first === undefined ? null : { ...span, messages: texts.length, first };
}

/** Until the view has come so far, or nobody waits any more. */
function reached(live: LiveSession, version: number, left: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (left.aborted || live.view.get().version >= version) return resolve();
    const done = (): void => {
      stop();
      resolve();
    };
    const stop = live.view.subscribe(() => live.view.get().version >= version && done());
    left.addEventListener("abort", done, { once: true });
  });
}
