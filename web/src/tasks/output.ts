/** The output of a task, read by offset: first what is there, then what comes, as long as somebody looks. */
import { useEffect, useState } from "react";
import { call } from "../api/http";
import type { OutputPage } from "../api/types.gen";
import { lines, type OutputLine } from "./ansi";

const PIECE = 262_144;
const WHOLE = 4 * 1024 * 1024;
const TAIL = 1024 * 1024;
const MOST_LINES = 200_000;
const MOST_TEXT = 32 * 1024 * 1024;

export interface Gap {
  readonly start: number;
  readonly end: number;
}

export type OutputRow = OutputLine | { readonly gap: Gap };

export interface Output {
  readonly rows: readonly OutputRow[];
  readonly size: number;
  readonly state: string;
  readonly loading: boolean;
  /** It begins here; what is before was not loaded. */
  readonly from: number;
  readonly problem: string;
}

const NOTHING: Output = { rows: [], size: 0, state: "running", loading: true, from: 0, problem: "" };

/** What is known between two pages: whether the last line goes on, and which colours are on. */
export interface Reading {
  readonly output: Output;
  readonly open: boolean;
  readonly colours: string;
}

export const unread = (from: number): Reading => ({ output: { ...NOTHING, from }, open: false, colours: "" });

/** Add a page to what there is. A line that was cut in the middle is put together again. */
export function added({ output, open, colours }: Reading, page: OutputPage): Reading {
  const rows = [...output.rows];
  if (page.dropped) {
    rows.push({ gap: page.dropped });
    open = false;
    colours = "";
  }
  const fresh = lines(page.text, page.dropped ? page.dropped.end : page.offset, page.next, open ? "" : colours);
  const last = rows.at(-1);
  const [first] = fresh.lines;
  if (open && first && last && "text" in last) {
    rows[rows.length - 1] = { offset: last.offset, text: last.text + first.text };
    rows.push(...fresh.lines.slice(1));
  } else rows.push(...fresh.lines);
  return {
    output: bounded({ ...output, rows, size: page.size, state: page.state, loading: false, problem: "" }),
    open: page.text === "" ? open : !page.text.endsWith("\n"),
    colours: fresh.colours,
  };
}

/** Of what grows for days the end is kept; where it begins is said. */
function bounded(output: Output): Output {
  let kept = 0;
  let first = output.rows.length;
  while (first > 0 && output.rows.length - first < MOST_LINES && kept < MOST_TEXT) {
    const row = output.rows[--first];
    kept += row && "text" in row ? row.text.length : 0;
  }
  if (first === 0) return output;
  const rows = output.rows.slice(first);
  const begins = rows.find((row) => "text" in row && row.offset !== null);
  return { ...output, rows, from: begins && "text" in begins ? (begins.offset ?? output.from) : output.from };
}

export function useOutput(task: string, fromStart: boolean): Output {
  const [output, setOutput] = useState(NOTHING);
  useEffect(() => {
    const leave = new AbortController();
    let reading = unread(0);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const failed = (error: unknown): void =>
      setOutput({ ...reading.output, loading: false, problem: error instanceof Error ? error.message : "unknown" });
    const ask = (query: Record<string, number>): Promise<OutputPage> =>
      call("GET /v1/tasks/{id}/output", { path: { id: task }, query, signal: leave.signal });
    let offset: number | null = null;
    const read = async (): Promise<void> => {
      try {
        if (offset === null) {
          const first = await ask({ offset: 0, limit: 64 });
          offset = first.size > WHOLE && !fromStart ? first.size - TAIL : 0;
          reading = unread(offset);
        }
        for (;;) {
          const page = await ask({ offset, limit: PIECE, wait: 20 });
          reading = added(reading, page);
          offset = page.next;
          setOutput(reading.output);
          if (page.state !== "running" && page.next >= page.size) return;
        }
      } catch (error) {
        if (leave.signal.aborted) return;
        failed(error);
        timer = setTimeout(() => void read(), 2000); // from where it was
      }
    };
    setOutput(NOTHING);
    void read();
    return () => {
      clearTimeout(timer);
      leave.abort();
    };
  }, [task, fromStart]);
  return output;
}
