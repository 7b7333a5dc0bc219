/** The dashboard says what the log, the chat and the export say. */
import { expect, it } from "vitest";
import golden from "../../../tests/golden/sentences.json";
import type { NoticeItem, SummaryItem } from "../api/types.gen";
import { actorWords } from "../text";
import { noticeText, summaryText } from "./sentences";

const clock = (at: number): string => `time ${at}`;

it.each(golden.notices.map(({ text, event }) => [text, event] as const))("says of an event: %s", (text, event) => {
  expect(noticeText(event as NoticeItem["event"], clock, actorWords)).toBe(text);
});

it.each(
  (golden.summaries as unknown as { text: string; item: SummaryItem }[]).map(({ text, item }) => [text, item] as const),
)("says of a summary: %s", (text, item) => {
  expect(summaryText(item, clock)).toBe(text);
});
