/** What happened to a task, from its own events: who did what when. */
import type { LogRecord, TaskFinished } from "../api/types.gen";
import { tellWords } from "../tell";
import { asYou, byWhom, clock, size } from "../text";

export interface Happened {
  readonly version: number;
  readonly at: number;
  readonly text: string;
  /** What else is known of it. */
  readonly more: string;
  readonly look: "plain" | "live" | "end";
}

export function history(records: readonly LogRecord[]): readonly Happened[] {
  return records.flatMap((record) => {
    const told = tell(record.event);
    return told === null ? [] : [{ version: record.version, at: record.at, look: "plain" as const, more: "", ...told }];
  });
}

/** How the end is known, unless the reason says it. */
function evidence(end: TaskFinished["end"], reason: string): string {
  switch (end.type) {
    case "exited":
    case "killed":
    case "lost":
      return end.evidence === reason ? "" : (end.evidence ?? "");
    case "never_started":
      return end.hint ?? "";
    case "turn_ended":
      return `turn ${end.turn} of session ${end.session}`;
    case "run_ended":
      return `run ${end.run} of card ${end.card}`;
  }
}

type TabMessage = Pick<Happened, "text"> & Partial<Pick<Happened, "more" | "look">>;

function tell(event: LogRecord["event"]): TabMessage | null {
  switch (event.kind) {
    case "TaskStarted":
      return {
        text: `Started by ${byWhom(event.by)}`,
        more: [lives(event.lifetime, event.until), event.foreground ? "a turn waited for it" : ""]
          .filter(Boolean)
          .join("; "),
      };
    case "ProcessStarted":
      return { text: `Runs as process ${event.pid}` };
    case "TaskBackgrounded":
      return { text: "Went to the background", more: event.reason };
    case "TaskResumed":
      return { text: `Works again, in turn ${event.turn}` };
    case "TaskStopRequested":
      return { text: `${event.force ? "Kill" : "Stop"} asked for by ${byWhom(event.by)}`, more: event.reason };
    case "TaskLifetimeSet":
      return {
        text: `Kept by ${byWhom(event.by)}`,
        more: lives(event.lifetime, null) || "outlives what it belonged to",
      };
    case "TaskPinned":
      return { text: `${event.pinned ? "Pinned" : "Unpinned"} by ${byWhom(event.by)}` };
    case "TaskTellSet":
      return { text: `${tellWords(event.tell)}, chosen by ${byWhom(event.by)}` };
    case "TaskFinished":
      return {
        text: `Ended: ${event.outcome}`,
        look: "end",
        more: [
          asYou(event.reason),
          event.output_bytes ? `${size(event.output_bytes)} of output` : "",
          evidence(event.end, event.reason),
        ]
          .filter(Boolean)
          .join("; "),
      };
    default:
      return null; // not of a task's own stream
  }
}

function lives(lifetime: string | undefined, until: number | null | undefined): string {
  if (lifetime === "until" && until) return `until ${clock(until)}`;
  if (lifetime === "session") return "lives as long as its session";
  if (lifetime === "chapter") return "lives until the next reset";
  return "";
}
