import { describe, expect, it } from "vitest";
import type { CardView, LogRecord } from "../api/types.gen";
import { folded } from "../board/Columns";
import { question } from "../board/moves";
import { laid } from "../board/queries";
import { cardHappened, columns } from "./cards";

type Event = LogRecord["event"];
const record = (version: number, event: Event): LogRecord => ({
  seq: version,
  stream: "card/c1",
  version,
  at: 1000 * version,
  event,
});
const created: Event = {
  kind: "CardCreated",
  card: "c1",
  board: "b",
  title: "T",
  body: "",
  by: { type: "person", client: "web" },
  status: "ready",
  profile: "demo",
};
const started: Event = {
  kind: "RunStarted",
  card: "c1",
  run: 1,
  session: "s",
  task: "t",
  profile: "demo",
  resumed_run: 0,
  after_turn: 0,
  workspace: "w",
  workspace_state: "",
};
const blocked: Event = {
  kind: "CardBlocked",
  card: "c1",
  block_kind: "needs_input",
  reason: "which?",
  by: { type: "run", card: "c1", run: 1 },
  run: 1,
};
const finished: Event = { kind: "RunFinished", card: "c1", run: 1, outcome: "blocked", reason: "blocked: which?" };

function play(...events: readonly Event[]): CardView {
  let card: CardView | null | undefined;
  events.forEach((event, index) => {
    card = cardHappened(card ?? undefined, record(index + 1, event));
  });
  if (!card) throw new Error("there is no card");
  return card;
}

describe("a card", () => {
  it("knows on which node it is to run and runs, and who is told", () => {
    const placed = play({ ...created, node: "gpu", tell: "never" } as Event);
    expect(placed).toMatchObject({ node: "gpu", tell: "never" });
    const edited: Event = {
      kind: "CardEdited",
      card: "c1",
      by: { type: "person", client: "web" },
      node: "",
      tell: "always",
    };
    expect(play(created, edited)).toMatchObject({ node: "", tell: "always" });
    const assigned: Event = { kind: "RunAssigned", card: "c1", node: "box2" };
    expect(play(created, assigned)).toMatchObject({ host: "box2" });
    expect(play(created, assigned, { ...started, node: "box3" } as Event)).toMatchObject({ host: "box3" });
    const back: Event = { kind: "RunAssigned", card: "c1", node: "" };
    expect(cardHappened(play(created, assigned), record(3, back))).toBeNull(); // which one it had before is not known
  });
  it("stands where the log says", () => {
    expect(play(created, started)).toMatchObject({
      status: "running",
      run: 1,
      session: "s",
      moved_at: 2000,
      version: 2,
    });
    expect(play(created, started, finished, blocked)).toMatchObject({
      status: "blocked",
      reason: "which?",
      block_kind: "needs_input",
    });
    expect(play(created, started, finished)).toMatchObject({ status: "ready", reason: "blocked: which?" });
    expect(
      play(created, started, blocked, { kind: "CardUnblocked", card: "c1", by: { type: "person", client: "web" } }),
    ).toMatchObject({ status: "ready", block_kind: "", reason: "" });
    expect(
      play(created, {
        kind: "CardMoved",
        card: "c1",
        status: "scheduled",
        reason: "",
        by: { type: "person", client: "web" },
        at: 9,
      }),
    ).toMatchObject({ status: "scheduled", scheduled_at: 9 });
    expect(
      play(created, {
        kind: "CardCommented",
        card: "c1",
        comment: "x",
        text: "hi",
        by: { type: "person", client: "web" },
      }).comments,
    ).toBe(1);
    expect(
      play(created, { kind: "CardCompleted", card: "c1", summary: "all of it", by: { type: "person", client: "web" } }),
    ).toMatchObject({ status: "done", reason: "all of it" });
    expect(
      play(created, { kind: "CardEdited", card: "c1", by: { type: "person", client: "web" }, title: "U" }),
    ).toMatchObject({ title: "U", profile: "demo" });
  });

  it("takes an event once, and asks when one is missing", () => {
    const card = play(created, started);
    expect(cardHappened(card, record(2, started))).toBe(card);
    expect(cardHappened(card, record(4, blocked))).toBeNull();
    expect(cardHappened(undefined, record(3, blocked))).toBeNull();
  });
});

describe("a list of cards", () => {
  const card = play(created);
  const moved = play(created, {
    kind: "CardMoved",
    card: "c1",
    status: "archived",
    reason: "",
    by: { type: "person", client: "web" },
  });
  it("takes what fits, lets go of what does not, and never goes back", () => {
    expect(laid([], new Map([["c1", card]]), "b", "")).toEqual([card]);
    expect(laid([], new Map([["c1", card]]), "other", "")).toEqual([]);
    expect(laid([card], new Map([["c1", moved]]), "b", "")).toEqual([]);
    const newer = { ...card, version: 9 };
    expect(laid([newer], new Map([["c1", card]]), "b", "")).toEqual([newer]);
  });

  it("has columns in the order in which they are started, and shows what is on its way there", () => {
    const rows = [
      { ...card, id: "a", priority: 0 },
      { ...card, id: "b", priority: 5 },
      { ...card, id: "c", title: "Other", profile: "careful" },
    ];
    const ids = (text: string, profile: string, moving: readonly (readonly [string, string])[] = []): unknown =>
      [...columns(rows, { text, profile }, new Map(moving))].flatMap(([column, found]) =>
        found.length ? [`${column} ${found.map((one) => one.id).join("")}`] : [],
      );
    expect(ids("", "")).toEqual(["ready bac"]);
    expect(ids("OTHER", "")).toEqual(["ready c"]);
    expect(ids("", "demo")).toEqual(["ready ba"]);
    expect(ids("", "", [["a", "review"]])).toEqual(["ready bc", "review a"]);
  });

  it("sorts 10,000 cards in a moment", () => {
    const many = Array.from({ length: 10_000 }, (_, index) => ({
      ...card,
      id: String(index),
      priority: index % 7,
      created_at: -index,
    }));
    const began = performance.now();
    expect(columns(many, { text: "", profile: "" }, new Map()).get("ready")).toHaveLength(10_000);
    expect(performance.now() - began).toBeLessThan(500);
  });
});

describe("a column", () => {
  const some = new Map([
    ["ready", [1]],
    ["running", [1]],
    ["blocked", [1]],
    ["triage", [1]],
    ["done", [1]],
  ] as const);
  it("is folded when it is empty, then when there is no room, but not against a word", () => {
    expect([...folded(some, {}, 2000)].sort()).toEqual(["review", "scheduled", "todo"]);
    expect(folded(some, {}, 1000).has("triage")).toBe(true);
    expect(folded(some, { triage: false }, 1000).has("triage")).toBe(false);
    expect(folded(some, {}, 300).has("blocked")).toBe(false);
  });

  it("asks what it has to know before a card comes", () => {
    const from = (status: string) => ({ status });
    expect(question(from("ready"), "todo")).toBeNull();
    expect(question(from("ready"), "scheduled")).toBe("scheduled");
    expect(question(from("todo"), "blocked")).toBe("blocked");
    expect(question(from("review"), "done")).toBe("done");
    expect(question(from("blocked"), "ready")).toBe("unblock");
    expect(question(from("blocked"), "scheduled")).toBe("unblock");
    expect(question(from("running"), "todo")).toBe("stop");
  });
});
