/** All places of a text in an output, found by the gateway, page after page. The first one comes first. */
import { useCallback, useEffect, useRef, useState } from "react";
import { call } from "../api/http";
import type { Gap } from "./outputRows";

const PAGE = 1000;
/** More are counted as "10,000+"; the search goes on when the last of them is reached. */
const MOST = 10_000;
const PAUSE_MS = 1000;

export interface Match {
  readonly offset: number;
  readonly end: number;
}

export interface OutputSearch {
  readonly task: string;
  /** What was searched for. */
  readonly text: string;
  readonly matches: readonly Match[];
  readonly state: "idle" | "searching" | "complete" | "many";
  /** Where the search goes on: a match may begin in a line that is not whole yet. */
  readonly next: number;
  /** How many bytes of how many were searched. */
  readonly searched: number;
  readonly size: number;
  /** Bytes that cannot be searched, because they were dropped. */
  readonly dropped: Gap | null;
  readonly problem: string;
}

const IDLE: OutputSearch = {
  task: "",
  text: "",
  matches: [],
  state: "idle",
  next: 0,
  searched: 0,
  size: 0,
  dropped: null,
  problem: "",
};

/** `size` is how much was written: what comes later is searched too. `goOn` looks for more than the first 10,000. */
export function useOutputSearch(
  task: string,
  text: string,
  size: number,
): OutputSearch & { readonly goOn: () => void } {
  const [found, setFound] = useState(IDLE);
  const [most, setMost] = useState(MOST);
  const latest = useRef(IDLE);
  const tell = useCallback((next: OutputSearch): void => {
    latest.current = next;
    setFound(next);
  }, []);
  useEffect(() => {
    tell({ ...IDLE, task, text });
    setMost(MOST);
  }, [tell, task, text]);
  const same = found.task === task && found.text === text;
  const behind = !same || size > found.searched || found.state === "idle";
  useEffect(() => {
    if (text === "" || !behind) return;
    const leave = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const search = async (): Promise<void> => {
      for (;;) {
        const before = latest.current;
        if (before.matches.length >= most) return tell({ ...before, state: "many" });
        const page = await call("GET /v1/tasks/{id}/output/search", {
          path: { id: task },
          query: { q: text, offset: before.next, limit: PAGE, context: 0 },
          signal: leave.signal,
        });
        tell({
          task,
          text,
          matches: page.matches.length > 0 ? [...before.matches, ...page.matches] : before.matches,
          state: page.more ? "searching" : "complete",
          next: page.next,
          searched: page.more ? page.next : page.size,
          size: page.size,
          dropped: page.dropped ?? before.dropped,
          problem: "",
        });
        if (!page.more) return;
      }
    };
    const begin = (): void => {
      tell({ ...latest.current, state: "searching" });
      search().catch((error: unknown) => {
        if (leave.signal.aborted) return;
        tell({ ...latest.current, problem: error instanceof Error ? error.message : "unknown" });
        timer = setTimeout(begin, PAUSE_MS);
      });
    };
    timer = setTimeout(begin, latest.current.state === "idle" ? 0 : PAUSE_MS); // a running command writes all the time
    return () => {
      clearTimeout(timer);
      leave.abort();
    };
  }, [tell, task, text, behind, most]);
  const shown = same ? found : IDLE; // not what was found of the text before
  return { ...shown, goOn: () => setMost((before) => (found.state === "many" ? before + MOST : before)) };
}
