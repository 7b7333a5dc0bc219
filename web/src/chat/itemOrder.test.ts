import { expect, test } from "vitest";
import type { Item } from "../log/model";
import { asTheyHappened } from "./itemOrder";

const item = (kind: string, version: number, more: object = {}): Item =>
  ({
    kind,
    key: `v${version}`,
    version,
    at: version,
    text: "",
    thinking: "",
    calls: [],
    live: false,
    ...more,
  }) as never;
const attached = (version: number): Item => item("notice", version, { event: { kind: "AgentAttached" } });
const order = (items: readonly Item[], wait: number | null = null): string[] =>
  asTheyHappened({ items, wait }).map((one) => one.key);

test("an agent attaches and plans before the step in which it said so", () => {
  expect(order([item("step", 9), attached(6)])).toEqual(["v6", "v9"]);
  expect(order([item("step", 4, { live: true }), attached(6)])).toEqual(["v6", "v4"]);
  expect(order([item("step", 4), attached(6)])).toEqual(["v4", "v6"]);
  const renamed = item("notice", 6, { event: { kind: "SessionRenamed" } });
  expect(order([item("step", 9), renamed])).toEqual(["v9", "v6"]);
});

test("a step that only waits for an answer is not shown as work", () => {
  const silent = item("step", 4, { live: true });
  expect(order([silent, item("wait", 5)], 1)).toEqual(["v5"]);
  expect(order([silent, item("wait", 5)])).toEqual(["v5", "v4"]);
  expect(order([item("step", 4), item("wait", 5)], 1)).toEqual(["v4", "v5"]);
});
