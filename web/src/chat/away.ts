/**
 * What was missed. The log says it: finished texts of the agent between the version that this device had read and
 * the version that the session had when we came back.
 */
import { useEffect, useState } from "react";
import { now } from "../api/clock";
import { cursorOf, leftBefore } from "../api/cursors";
import { away as askAway } from "../api/endpoints";
import { call } from "../api/http";
import type { LiveSession } from "../api/liveSession";
import { useStore } from "../api/store";
import type { AwaySummary } from "../api/types.gen";

export interface Missed {
  readonly after: number;
  readonly upTo: number;
  readonly messages: number;
  readonly first: number;
  readonly from: number;
  readonly until: number;
  readonly reconnected: boolean;
  readonly awayMs: number;
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
    const after = back ? reconnects.version : cursorOf(live.id);
    const left = new AbortController();
    const current = (): boolean => !left.signal.aborted;
    const leftAt = back ? reconnects.leftAt : boot ? leftBefore : 0;
    const backAt = now();
    const look = async (): Promise<void> => {
      const { session } = await call("GET /v1/sessions/{id}", { path: { id: live.id } });
      await reached(live, session.version, left.signal);
      if (!current()) return;
      const view = live.view.get();
      const versions =
        after === undefined ? [] : view.messages.filter((version) => version > after && version <= session.version);
      const [first] = versions;
      if (first !== undefined && after !== undefined) {
        const at = (version: number): number => view.items.find((item) => item.version >= version)?.at ?? backAt;
        const known: Missed = {
          after,
          upTo: session.version,
          messages: versions.length,
          first,
          from: leftAt || at(after),
          until: at(versions.at(-1) ?? first),
          reconnected: back || boot,
          awayMs: backAt - (leftAt || at(after)),
          digest: null,
        };
        setMissed(known);
        setShown(back || boot);
        void askAway(live.id, after).then(
          (digest) => current() && setMissed({ ...known, digest }),
          () => undefined,
        );
      }
      setReady(true);
    };
    const attemptLook = (): void => {
      void look().catch(() => {
        if (current()) setTimeout(() => current() && attemptLook(), 1500); // the line is cut again; nothing is marked as read
      });
    };
    setReady(false);
    attemptLook();
    return () => left.abort();
  }, [live, reconnects, before]);

  // A tab that nobody saw was away too, though its line was not cut.
  useEffect(() => {
    let hiddenAt = 0;
    const changed = (): void => {
      if (document.visibilityState !== "visible") {
        hiddenAt = now();
        return;
      }
      const view = live.view.get();
      const after = cursorOf(live.id);
      const versions = after === undefined ? [] : view.messages.filter((version) => version > after);
      const [first] = versions;
      if (hiddenAt === 0 || after === undefined || first === undefined) return;
      setMissed({
        after,
        upTo: view.version,
        messages: versions.length,
        first,
        from: hiddenAt,
        until: now(),
        reconnected: false,
        awayMs: now() - hiddenAt,
        digest: null,
      });
      setShown(true);
    };
    document.addEventListener("visibilitychange", changed);
    return () => document.removeEventListener("visibilitychange", changed);
  }, [live]);

  return { missed, ready, shown, dismiss: () => setShown(false) };
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
