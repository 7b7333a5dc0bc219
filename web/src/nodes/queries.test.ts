import { expect, it } from "vitest";
import type { NodeView } from "../api/types.gen";
import { nodeOptions } from "./queries";

const node = (name: string, more: Partial<NodeView> = {}): NodeView => ({
  name,
  state: "alive",
  here: false,
  labels: [],
  version: "1",
  started_at: 0,
  heard_at: 0,
  silent_ms: 0,
  ended_at: null,
  ended_reason: "",
  sessions: [],
  duties: [],
  tasks: [],
  ...more,
});
const NODES = [
  node("box1", { here: true, labels: ["linux", "box2"] }),
  node("box2", { state: "ended", labels: ["linux", "gpu"] }),
];

it("offers any node, each by its name with its state, and each label once", () => {
  expect(nodeOptions(NODES, "")).toEqual([
    ["", "Any node"],
    ["box1", "box1, this one"],
    ["box2", "box2, away"],
    ["gpu", "Any with the label gpu"],
    ["linux", "Any with the label linux"],
  ]);
});

it("keeps a choice that no node has now, and says so", () => {
  expect(nodeOptions(NODES, "box9").at(-1)).toEqual(["box9", "box9, which is not there"]);
});
