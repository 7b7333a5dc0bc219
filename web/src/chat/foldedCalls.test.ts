import { describe, expect, it } from "vitest";

import type { CallView } from "../log/model";

import { foldedCalls } from "./foldedCalls";

const call = (name: string, state: CallView["state"]): CallView => ({ call: name, state }) as CallView;

describe("the calls of a step", () => {
  it("are all shown while they are few", () => {
    expect(foldedCalls([1, 2, 3, 4, 5].map((number) => call(`${number}`, "done")))).toEqual([]);
  });

  it("fold when many went well, but never one that failed, was stopped, is not known or runs", () => {
    const well = [1, 2, 3, 4, 5, 6].map((number) => call(`${number}`, "done"));
    const others = (["failed", "stopped", "unknown", "running"] as const).map((state) => call(state, state));
    const hidden = foldedCalls([...well.slice(0, 3), ...others, ...well.slice(3)]);
    expect(hidden.map((one) => one.call)).toEqual(["1", "2", "3", "4", "5"]);
  });
});
