import { describe, expect, it, test } from "vitest";
import type { LogRecord } from "../api/types.gen";
import types from "../api/types.gen.ts?raw";
import { found } from "./find";
import { history } from "./history";
import { emptySession, type SessionView, stateOf } from "./model";
import { Gap, happened } from "./reduce";
import fold from "./reduce.ts?raw";
import { callResult, spoken } from "./steps";

type Event = LogRecord["event"];

function records(events: readonly Event[], after = 0): LogRecord[] {
  return events.map((event, index) => ({
    seq: after + index + 1,
    stream: "session/s",
    version: after + index + 1,
    at: 1000 * (after + index + 1),
    event,
  }));
}

const usage = { input_tokens: 10, output_tokens: 5, cost: 0.25 };
const created: Event = {
  kind: "SessionCreated",
  session: "s",
  profile: "demo",
  cwd: "/",
  title: "T",
  by: { type: "person", client: "web" },
};
const input = (id: string, text = "hello"): Event => ({
  kind: "InputReceived",
  input: id,
  text,
  mode: "queue",
  by: { type: "person", client: "web" },
});
const started = (turn: number, inputs: string[]): Event => ({ kind: "TurnStarted", turn, inputs, profile: "demo" });
const asked = (turn: number, step: number): Event => ({
  kind: "ModelRequested",
  turn,
  step,
  attempt: 1,
  model: "m",
  context_version: 1,
});
const said = (
  turn: number,
  step: number,
  text: string,
  calls: { call: string; tool: string; arguments: string }[] = [],
): Event => ({
  kind: "ModelResponded",
  turn,
  step,
  text,
  thinking: "",
  calls,
  finish_reason: "stop",
  usage,
  duration_ms: 5,
});
const ended = (turn: number): Event => ({ kind: "TurnFinished", turn, outcome: "done", reason: "" });
const whole: Event[] = [
  created,
  input("a"),
  started(1, ["a"]),
  asked(1, 1),
  said(1, 1, "one", [{ call: "c1", tool: "read", arguments: "{}" }]),
  { kind: "ToolCallStarted", turn: 1, call: "c1", tool: "read", effect: "pure" },
  { kind: "ToolCallFinished", turn: 1, call: "c1", tool: "read", outcome: "done", output: "x", duration_ms: 3 },
  asked(1, 2),
  said(1, 2, "two"),
  ended(1),
];

const play = (events: readonly Event[], view: SessionView = emptySession("s")): SessionView =>
  happened(view, records(events, view.version));

describe("the fold", () => {
  it("tells a whole turn", () => {
    const view = play(whole);
    expect(view.items.map((item) => item.kind)).toEqual(["person", "step", "step", "end"]);
    const [, first, , end] = view.items;
    expect(first?.kind === "step" && first.calls[0]?.state).toBe("done");
    expect(end?.kind === "end" && [end.tokensIn, end.tokensOut, end.cost]).toEqual([20, 10, 0.5]);
    expect(view.messages).toEqual([5, 9]);
    expect(stateOf(view)).toBe("idle");
  });

  it("gives the same view in whatever pieces it comes, and leaves out what it had", () => {
    const all = records(whole);
    const once = happened(emptySession("s"), all);
    for (let cut = 1; cut < all.length; cut++) {
      const first = happened(emptySession("s"), all.slice(0, cut));
      expect(happened(first, all.slice(Math.max(0, cut - 3)))).toEqual(once); // an overlap, as after a reconnect
    }
  });

  it("refuses a gap", () => {
    const all = records(whole);
    expect(() => happened(emptySession("s"), all.slice(1))).toThrow(Gap);
  });

  it("does not touch the view that it was given", () => {
    const view = play(whole.slice(0, 4));
    const copy = structuredClone(view);
    play(whole.slice(4), view);
    expect(view).toEqual(copy);
  });

  it("keeps what is not taken in the queue", () => {
    const view = play([created, input("a"), started(1, ["a"]), input("b", "later")]);
    expect(view.queue.map((queued) => queued.text)).toEqual(["later"]);
    expect(play([{ kind: "InputsJoined", turn: 1, inputs: ["b"] }], view).items.at(-1)).toMatchObject({
      kind: "person",
      joined: true,
    });
  });

  it("rewords, moves, steers and withdraws what is queued", () => {
    const view = play([
      created,
      input("a"),
      started(1, ["a"]),
      input("b", "first"),
      input("c", "second"),
      input("d", "third"),
    ]);
    const words = (next: SessionView): unknown => next.queue.map((queued) => `${queued.text} ${queued.mode}`);
    const moved = play([{ kind: "InputRevised", input: "d", by: { type: "person", client: "web" }, place: 1 }], view);
    expect(words(moved)).toEqual(["third queue", "first queue", "second queue"]);
    const said = play(
      [{ kind: "InputRevised", input: "b", by: { type: "person", client: "web" }, text: "other", mode: "steer" }],
      moved,
    );
    expect(words(said)).toEqual(["third queue", "other steer", "second queue"]);
    expect(words(play([{ kind: "InputWithdrawn", input: "d", by: { type: "person", client: "web" } }], said))).toEqual([
      "other steer",
      "second queue",
    ]);
    expect(words(play([{ kind: "InputWithdrawn", input: "a", by: { type: "person", client: "web" } }], said))).toEqual(
      words(said),
    ); // a turn has it
  });

  it("says of every event in the contract what it does to a session", () => {
    const union = /interface LogRecord \{[^}]*readonly event: ([^;]+);/.exec(types)?.[1]?.split(" | ") ?? [];
    expect(union.length).toBeGreaterThan(30);
    expect(union.filter((kind) => !fold.includes(`case "${kind}":`))).toEqual([]);
    expect(fold).toContain("unheard(event)"); // takes `never`: the compiler finds what is missing too
  });

  it("goes on behind an event of a newer gateway", () => {
    const unknown = { kind: "SomethingNew", by: "a rule" } as unknown as Event;
    expect(play([created, unknown, input("a", "still here")]).queue[0]?.text).toBe("still here");
  });

  it("knows whether it is pinned, and what the model had before its eyes", () => {
    const view = play([...whole, { kind: "SessionPinned", pinned: true, by: { type: "person", client: "web" } }]);
    expect([view.pinned, view.context]).toEqual([true, 15]);
  });

  it("is searched as a whole", () => {
    const view = play(whole);
    expect(found(view.items, "HELLO")).toEqual([2]);
    expect(found(view.items, "read")).toEqual([5]);
    expect(found(view.items, "")).toEqual([]);
  });

  it("opens and closes a wait once", () => {
    const wait: Event = {
      kind: "WaitOpened",
      turn: 1,
      wait: "w",
      purpose: "question",
      reason: "Which?",
      choices: ["a", "b"],
    };
    const view = play([created, input("a"), started(1, ["a"]), wait]);
    expect(stateOf(view)).toBe("waiting");
    const after = play(
      [{ kind: "WaitAnswered", turn: 1, wait: "w", answer: "b", by: { type: "person", client: "web" } }],
      view,
    );
    expect(stateOf(after)).toBe("running");
    expect(after.items.at(-1)).toMatchObject({ kind: "wait", answer: { text: "b" } });
  });

  it("shows an answer that was cut as partial and begins again", () => {
    const cut: Event = { kind: "ModelInterrupted", turn: 1, step: 1, text: "half", thinking: "", reason: "crash" };
    const view = play([created, input("a"), started(1, ["a"]), asked(1, 1), cut, asked(1, 1), said(1, 1, "whole")]);
    expect(view.items.filter((item) => item.kind === "step").map((item) => [item.text, item.cut, item.again])).toEqual([
      ["half", "crash", true],
      ["whole", "", false],
    ]);
    expect(view.messages).toHaveLength(1);
    const stopped = play([created, input("a"), started(1, ["a"]), asked(1, 1), cut, ended(1)]);
    expect(stopped.items.find((item) => item.kind === "step")).toMatchObject({ again: false });
  });

  it("folds a long session", () => {
    const events: Event[] = [created];
    for (let turn = 1; turn <= 2000; turn++) {
      events.push(input(`i${turn}`), started(turn, [`i${turn}`]), asked(turn, 1), said(turn, 1, "text"), ended(turn));
    }
    const view = play(events);
    expect(view.items.filter((item) => item.kind === "end")).toHaveLength(2000);
    expect(view.messages).toHaveLength(2000);
  });
});

describe("deltas", () => {
  const delta = (offset: number, text: string, step = 1) => ({
    turn: 1,
    step,
    offset,
    text,
    thinking_offset: 0,
    thinking: "",
  });
  const live = play([created, input("a"), started(1, ["a"]), asked(1, 1)]);
  const text = (view: SessionView): string => {
    const item = view.items.findLast((known) => known.kind === "step");
    return item?.kind === "step" ? item.text : "";
  };

  it("join at their offsets, once", () => {
    let view = spoken(live, delta(0, "one "));
    view = spoken(view, delta(4, "two"));
    view = spoken(view, delta(4, "two"));
    view = spoken(view, delta(0, "one two three"));
    expect(text(view)).toBe("one two three");
  });

  it("count code points, as the gateway does", () => {
    let view = spoken(live, delta(0, "🪢🪢"));
    view = spoken(view, delta(2, " é"));
    expect(text(view)).toBe("🪢🪢 é");
  });

  it("of another step or behind a hole change nothing", () => {
    expect(spoken(live, delta(0, "x", 2))).toBe(live);
    expect(spoken(live, delta(9, "x"))).toBe(live);
  });

  it("give way to the whole answer", () => {
    const view = play([said(1, 1, "whole")], spoken(live, delta(0, "wh")));
    expect(text(view)).toBe("whole");
    expect(spoken(view, delta(5, "late"))).toBe(view);
  });
});

describe("the history of a task", () => {
  const of = (events: readonly Event[]): unknown =>
    history(records(events)).map(({ text, more }) => (more ? `${text} (${more})` : text));
  it("says who did what", () => {
    expect(
      of([
        {
          kind: "TaskStarted",
          task: "t",
          task_kind: "process",
          title: "make",
          command: "make",
          cwd: "/",
          by: { type: "person", client: "web" },
          lifetime: "session",
        },
        { kind: "ProcessStarted", task: "t", pid: 7 },
        { kind: "TaskPinned", task: "t", pinned: true, by: { type: "person", client: "cli" } },
        { kind: "TaskStopRequested", task: "t", by: { type: "person", client: "api" }, reason: "enough", force: true },
        {
          kind: "TaskFinished",
          task: "t",
          outcome: "stopped",
          reason: "by signal SIGKILL",
          end: { type: "killed", signal: "SIGKILL" },
          output_bytes: 2048,
        },
      ]),
    ).toEqual([
      "Started by you (lives as long as its session)",
      "Runs as process 7",
      "Pinned by you",
      "Kill asked for by you (enough)",
      "Ended: stopped (by signal SIGKILL; 2.0 KiB of output)",
    ]);
  });
});

describe("how a tool call ended", () => {
  const end = {
    kind: "ToolCallFinished",
    turn: 1,
    call: "c1",
    tool: "terminal",
    outcome: "done",
    output: "",
    duration_ms: 3,
  } as const;
  test.each([
    [{}, "done", ""],
    [{ exit_code: 0 }, "done", ""],
    [{ exit_code: 3 }, "failed", "exit code 3"],
    [{ signal: "SIGKILL" }, "failed", "SIGKILL"],
    [{ outcome: "unknown", stopped: true }, "stopped", ""],
    [{ stopped: true, signal: "SIGTERM" }, "stopped", "SIGTERM"],
    [{ task: "t1", running: true }, "started", ""],
    [{ outcome: "unknown" }, "unknown", ""],
  ] as const)("%o is %s %s", (more, state, detail) => {
    expect(callResult({ ...end, ...more })).toEqual({ state, detail });
  });
});
