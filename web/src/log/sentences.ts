/** What happened in a session, in the words of the log and the export: their templates, filled in as they do it. */
import { now } from "../api/clock";
import type { AgentPlanned, NoticeItem, ResetPolicy, ResetPostponed, SummaryItem } from "../api/types.gen";

import { type Actor, byWhom, coming, lasted, moment } from "../text";

import { RESET_WORDS, SENTENCES } from "./sentences.gen";

type Clock = (at: number) => string;
type Who = (by: Actor) => string;
const time: Clock = (at) => (at < now() ? moment(at) : coming(at));

/** The code of a summary that was cut by a message or a stop: what was asked for is still wanted. */
export const INTERRUPTED = "interrupted";

/** A sentence for an event that is a line of its own. Who reads it is "you" in it. */
export function noticeText(event: NoticeItem["event"], clock: Clock = time, who: Who = byWhom): string {
  return fill(SENTENCES[event.kind], event, clock, who);
}

/** What became of a summary. */
export function summaryText(item: Pick<SummaryItem, "state" | "problem">, clock: Clock = time): string {
  return fill(SENTENCES[`summary ${item.problem?.code === INTERRUPTED ? "interrupted" : item.state}`], item, clock);
}

/** `{field|format}` is a value; `[field?text]`, `[!field?text]` and `[field=value?text]` are there or left out. */
function fill(template: string, source: object, clock: Clock, who: Who = byWhom): string {
  const chosen = template.replace(
    /\[(!?)([\w.]+)(?:=(\w+))?\?([^\]]*)\]/g,
    (_, no: string, path: string, value: string | undefined, text: string) => {
      const known = field(source, path);
      return (value === undefined ? Boolean(known) : String(known) === value) !== (no === "!") ? text : "";
    },
  );
  return chosen.replace(/\{([\w.]+)(?:\|(\w+))?\}/g, (_, path: string, format: string | undefined) => {
    const value = field(source, path);
    if (format === "time") return clock(value as number);
    if (format === undefined && typeof value === "object") return who(value as Actor);
    return (FORMATS[format ?? ""] ?? String)(value as never);
  });
}

function field(source: unknown, path: string): unknown {
  return path.split(".").reduce((known, name) => (known as Record<string, unknown> | null | undefined)?.[name], source);
}

/** A text as the end of a sentence: without its own full stop. */
const clause = (text: string): string => text.trim().replace(/\.$/, "");

const PLAN_STATES = { pending: "", in_progress: " (in progress)", completed: " (done)" } as const;

const FORMATS: Readonly<Record<string, (value: never) => string>> = {
  clause,
  count: (value: number) => value.toLocaleString("en"),
  duration: lasted,
  plan: (entries: AgentPlanned["entries"]) =>
    entries.map((entry) => `${clause(entry.text)}${PLAN_STATES[entry.state]}`).join("; "),
  reasons: (blockers: ResetPostponed["blockers"]) => blockers.map((blocker) => clause(blocker.reason)).join("; "),
  settings: policyWords,
  short: (task: string) => task.slice(0, 8),
};

function policyWords(policy: ResetPolicy): string {
  const words: Readonly<Record<string, string>> = RESET_WORDS;
  const given = Object.entries(policy).filter(([, value]) => value !== null && value !== undefined);
  return (
    given
      .map(([name, value]) => words[`${name} ${value}`] ?? (words[name] ?? `${name} {}`).replace("{}", String(value)))
      .join(", ") || "as its profile says"
  );
}
