import { describe, expect, it } from "vitest";
import type { LogRecord } from "../api/types.gen";
import { found } from "./find";
import { emptySession, type Item, type SessionView, stateOf } from "./model";
import { happened } from "./reduce";

type Event = LogRecord["event"];

function play(events: readonly Event[], view: SessionView = emptySession("s")): SessionView {
  return happened(
    view,
    events.map((event, index) => {
      const version = view.version + index + 1;
      return { seq: version, stream: "session/s", version, at: 1000 * version, event };
    }),
  );
}

const created: Event = {
  kind: "SessionCreated",
  session: "s",
  profile: "demo",
  cwd: "/",
  title: "T",
  by: { type: "person", client: "web" },
};
const opened = (chapter: number): Event => ({
  kind: "ChapterOpened",
  chapter,
  rule: "idle",
  reason: "nobody said anything",
  by: { type: "service", name: "reset clock" },
  hand_over: "the note",
});
const rejoined: Event = { kind: "ChapterRejoined", chapter: 2, by: { type: "person", client: "web" } };
const wanted: Event = { kind: "SummaryRequested", instructions: "", by: { type: "person", client: "web" } };
const trying = (attempt = 1): Event => ({
  kind: "SummaryStarted",
  covers_turn: 3,
  attempt,
  model: "m",
  tokens: 900,
  reason: "asked",
});
const failed = (code: "summary_timeout" | "interrupted" = "summary_timeout"): Event => ({
  kind: "SummaryFailed",
  covers_turn: 3,
  attempt: 1,
  problem: { code, message: "too slow" },
  retry_at: null,
});
const summed = (source: "digest" | "model"): Event => ({
  kind: "SummaryWritten",
  covers_turn: 3,
  summary: "in short",
  source,
  model: "m",
  tokens_before: 900,
  tokens_after: 90,
  reason: "asked",
});
const of = <K extends Item["kind"]>(view: SessionView, kind: K): readonly Extract<Item, { kind: K }>[] =>
  view.items.filter((item): item is Extract<Item, { kind: K }> => item.kind === kind);

describe("chapters", () => {
  it("are undone from the newest on", () => {
    let view = play([created, opened(2), opened(3)]);
    expect(view.resets).toEqual([2, 3]);
    view = play([rejoined], view);
    expect([view.resets, of(view, "chapter").map((item) => item.undone)]).toEqual([[2], [false, true]]);
    view = play([rejoined], view);
    expect(of(view, "chapter").map((item) => item.undone)).toEqual([true, true]);
    expect(found(view.items, "THE NOTE")).toEqual([2, 3]);
  });

  it("say why they are not opened yet", () => {
    const view = play([
      created,
      {
        kind: "ResetPostponed",
        rule: "idle",
        due_at: 1,
        until: null,
        next_check: 9,
        blockers: [{ by: "turn", reason: "turn 3 is open" }],
      },
    ]);
    expect(of(view, "notice").at(-1)).toMatchObject({ event: { rule: "idle" }, tone: "warning" });
  });
});

describe("a compaction", () => {
  it("is one line, however often it was tried", () => {
    const view = play([created, trying(), failed(), trying(2), summed("model")]);
    expect(
      of(view, "summary").map(({ state, tokens_before, tokens_after, summary }) => [
        state,
        tokens_before,
        tokens_after,
        summary,
      ]),
    ).toEqual([["done", 900, 90, "in short"]]);
  });

  it("is the session's state while nothing else is, also when it was cut", () => {
    expect(stateOf(play([created, wanted]))).toBe("compacting");
    expect(stateOf(play([created, wanted, trying(), failed("interrupted")]))).toBe("compacting");
    expect(stateOf(play([created, wanted, trying(), failed()]))).toBe("idle");
    expect(stateOf(play([created, wanted, trying(), summed("model")]))).toBe("idle");
  });

  it("puts a summary in the place of a digest of the same chapter", () => {
    const both = play([created, trying(), summed("digest"), trying(), summed("model")]);
    expect(of(both, "summary").map((item) => [item.source, item.replaced])).toEqual([
      ["digest", true],
      ["model", false],
    ]);
    const apart = play([created, trying(), summed("digest"), opened(2), trying(), summed("model")]);
    expect(of(apart, "summary").map((item) => item.replaced)).toEqual([false, false]);
  });
});

describe("a worker's session", () => {
  it("knows its card while the run is open", () => {
    const view = play([created, { kind: "RunBound", card: "c1", run: 2 }]);
    expect([view.card, view.run]).toEqual(["c1", 2]);
    expect(play([{ kind: "RunReleased", card: "c1", run: 2 }], view).run).toBe(0);
  });
});
