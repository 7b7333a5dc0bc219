/** The output of a task, read by offset: first what is there, then what comes, as long as somebody looks. */
import { useEffect, useState } from "react";
import type { OutputPage } from "../api.gen";
import { call } from "../net/http";
import { type OutputLine, lines } from "./ansi";

const PIECE = 262_144;
const WHOLE = 4 * 1024 * 1024;
const TAIL = 1024 * 1024;
const MOST_LINES = 200_000;

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

/** Add a page to what there is. A line that was cut in the middle is put together again. */
export function added(output: Output, page: OutputPage, open: string): { output: Output; open: string } {
  const rows = [...output.rows];
  let text = page.text;
  let offset = page.dropped ? page.dropped.end : page.offset;
  if (page.dropped) {
    rows.push({ gap: page.dropped });
    open = "";
  }
  if (open) {
    const last = rows.pop();
    if (last && "text" in last) {
      text = open + text;
      offset = last.offset ?? offset;
      const bytes = new TextEncoder().encode(open).length;
      rows.push(...lines(text, offset, page.next - (last.offset === null ? bytes : 0)));
    }
  } else rows.push(...lines(text, offset, page.next));
  const cut = text.endsWith("\n") || text === "" ? "" : (text.split("\n").at(-1) ?? "");
  return { output: { ...output, rows: rows.slice(-MOST_LINES), size: page.size, state: page.state, loading: false, problem: "" }, open: cut };
}

export function useOutput(task: string, fromStart: boolean): Output {
  const [output, setOutput] = useState(NOTHING);
  useEffect(() => {
    const leave = new AbortController();
    let current = NOTHING;
    const ask = (query: Record<string, number>): Promise<OutputPage> =>
      call("GET /v1/tasks/{id}/output", { path: { id: task }, query, signal: leave.signal });
    const read = async (): Promise<void> => {
      let offset = 0;
      let open = "";
      const first = await ask({ offset: 0, limit: 64 });
      if (first.size > WHOLE && !fromStart) offset = first.size - TAIL;
      current = { ...current, from: offset };
      while (!leave.signal.aborted) {
        try {
          const page = await ask({ offset, limit: PIECE, wait: 20 });
          ({ output: current, open } = added(current, page, open));
          offset = page.next;
          setOutput(current);
          if (page.state !== "running" && page.next >= page.size) return;
        } catch (error) {
          if (leave.signal.aborted) return;
          setOutput({ ...current, loading: false, problem: error instanceof Error ? error.message : "unknown" });
          await new Promise((resolve) => setTimeout(resolve, 2000));
        }
      }
    };
    const begin = (): void => void read().catch((error: unknown) => {
      if (leave.signal.aborted) return;
      setOutput({ ...current, loading: false, problem: error instanceof Error ? error.message : "unknown" });
      setTimeout(() => leave.signal.aborted || begin(), 2000);
    });
    setOutput(NOTHING);
    begin();
    return () => leave.abort();
  }, [task, fromStart]);
  return output;
}
