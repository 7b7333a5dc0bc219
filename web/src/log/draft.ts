/** A view of a session while records are folded into it. */
import type { LogRecord, NoticeItem } from "../api/types.gen";
import type { Item, Onward, QueuedInput, SessionView, Tone } from "./model";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
export type Draft = Mutable<Omit<SessionView, "items" | "queue" | "messages">> & {
  items: Item[];
  queue: QueuedInput[];
  messages: number[];
};

/** An event that is a line of its own. */
export function notice(
  view: Draft,
  record: LogRecord,
  event: NoticeItem["event"],
  tone: Tone = "plain",
  onward: Onward | null = null,
): void {
  const { version, at } = record;
  view.items.push({ key: `v${version}`, version, at, kind: "notice", tone, onward, event });
}
