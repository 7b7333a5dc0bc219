/** Search in a conversation: in all of it, not only in what is on the screen. */
import type { Item } from "./model";
import { noticeText } from "./sentences";

export function wordsOf(item: Item): string {
  switch (item.kind) {
    case "person":
    case "note":
      return item.text;
    case "notice":
      return noticeText(item.event);
    case "step":
      return [item.text, item.thinking, ...item.calls.flatMap((call) => [call.tool, call.arguments, call.output])].join(
        "\n",
      );
    case "wait":
      return [item.reason, item.answer?.text ?? ""].join("\n");
    case "chapter":
      return [item.reason, item.note, ...[...item.kept, ...item.stopped].map((one) => one.title)].join("\n");
    case "summary":
      return [item.summary, item.problem?.message ?? ""].join("\n");
    case "end":
      return item.outcome === "done" ? "" : [item.reason, item.problem?.message ?? ""].join("\n");
  }
}

/** The versions of the items that have a text in them, in order; letters match in either case. */
export function found(items: readonly Item[], text: string): readonly number[] {
  const wanted = text.toLowerCase();
  return wanted === ""
    ? []
    : items.filter((item) => wordsOf(item).toLowerCase().includes(wanted)).map((item) => item.version);
}
