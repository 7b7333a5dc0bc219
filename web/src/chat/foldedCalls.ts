import type { CallView } from "../log/model";

const FOLD = 6;

/** The calls that are not shown at first: many that went well, but for the last. One that failed or runs is shown. */
export function foldedCalls(calls: readonly CallView[]): readonly CallView[] {
  const finished = calls.filter((call) => call.state === "done" || call.state === "started");
  return finished.length >= FOLD ? finished.slice(0, -1) : [];
}
