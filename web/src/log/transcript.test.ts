/** The dashboard's fold makes the same items of real logs as the one that the terminal and the export use. */
import { describe, expect, it } from "vitest";
import type {
  ChapterItem,
  Delta,
  LogRecord,
  MessageItem,
  NoteItem,
  NoticeItem,
  StepItem,
  SummaryItem,
  ToolCallView,
  TurnEndItem,
  WaitItem,
} from "../api/types.gen";
import { type CallView, emptySession, type Item, type SessionView, stateOf } from "./model";
import { happened } from "./reduce";
import { spoken } from "./steps";

type Shared = MessageItem | NoteItem | StepItem | WaitItem | ChapterItem | SummaryItem | TurnEndItem | NoticeItem;
interface Golden {
  readonly input: readonly (LogRecord | Delta)[];
  readonly items: readonly Shared[];
  readonly state: string;
}

const GOLDEN = import.meta.glob<Golden>("../../../tests/golden/transcript/*.json", { eager: true, import: "default" });

/** All that is shown and all that waits, in the order of the events that began it. */
function shared(view: SessionView): readonly Shared[] {
  const items = [...view.items.map(one), ...view.queue.map((queued) => queued.message)];
  return items.sort((a, b) => a.version - b.version);
}

const call = ({
  startedAt,
  durationMs,
  exitCode,
  state,
  call,
  tool,
  arguments: given,
  output,
  signal,
  files,
  task,
}: CallView): ToolCallView => ({
  call,
  tool,
  arguments: given,
  output,
  signal,
  files: [...files],
  task,
  state: state === "queued" ? "pending" : state,
  started_at: startedAt,
  duration_ms: durationMs,
  exit_code: exitCode,
});

function one(item: Item): Shared {
  const here = { version: Number(item.key.slice(1)), at: item.at };
  switch (item.kind) {
    case "person":
    case "note":
      return item.message;
    case "notice":
      return { item: "notice", ...here, event: item.event };
    case "step":
      return {
        item: "step",
        version: here.version,
        at: item.askedAt,
        turn: item.turn,
        step: item.step,
        profile: item.who,
        model: item.model,
        text: item.text,
        thinking: item.thinking,
        thinking_ms: item.thinkingMs,
        calls: item.calls.map(call),
        cut_reason: item.cut,
        problem: item.problem,
        usage: item.usage,
        state: item.live ? "live" : item.problem ? "failed" : item.cut && !item.finish ? "cut" : "done",
        finish: (item.finish || null) as NonNullable<StepItem["finish"]> | null,
        ended_at: item.live ? null : item.at,
      };
    case "wait":
      return {
        item: "wait",
        ...here,
        wait: item.wait,
        turn: item.turn,
        purpose: item.purpose as WaitItem["purpose"],
        reason: item.reason,
        call: item.callId,
        choices: [...item.choices],
        until: item.until,
        default: item.otherwise,
        pattern: item.pattern,
        shown: [...item.shown],
        means: { ...item.means },
        answer: item.answer && {
          answer: item.answer.text,
          by: item.answer.actor,
          at: item.answer.at,
          note: item.answer.note,
        },
      };
    case "chapter":
      return {
        item: "chapter",
        ...here,
        chapter: item.chapter,
        rule: item.rule,
        reason: item.reason,
        by: item.actor,
        kept: [...item.kept],
        stopped: [...item.stopped],
        hand_over: item.note,
        hand_over_from: item.noteFrom,
        undone: item.undone,
      };
    case "summary": {
      const { key: _, kind, ...summary } = item;
      return { item: kind, ...summary, ...here };
    }
    case "end":
      return {
        item: "turn_end",
        ...here,
        turn: item.turn,
        outcome: item.outcome as TurnEndItem["outcome"],
        reason: item.reason,
        problem: item.problem,
        started_at: item.startedAt,
        model: item.model,
        input_tokens: item.tokensIn,
        output_tokens: item.tokensOut,
        cost: item.cost,
        undone: item.undone,
      };
  }
}

describe("a real log", () => {
  it("is there for every kind of conversation", () => {
    expect(Object.keys(GOLDEN).length).toBeGreaterThan(8);
  });

  it.each(Object.entries(GOLDEN))("becomes the same items as in the terminal: %s", (_, golden) => {
    let view = emptySession("s");
    for (const piece of golden.input) view = "event" in piece ? happened(view, [piece]) : spoken(view, piece);
    expect(shared(view)).toEqual(golden.items);
    expect(stateOf(view)).toBe(golden.state);
  });
});
