import { describe, expect, it } from "vitest";
import { rowAt, tops } from "./window";

describe("the window", () => {
  const sums = tops(["band", "row", "row", "band", "row"], { band: 20, row: 50 });
  it("knows where each row begins", () => {
    expect([...sums]).toEqual([0, 20, 70, 120, 140, 190]);
  });
  it("finds the row at any height", () => {
    expect([-100, 0, 19, 20, 69, 70, 139, 140, 500].map((height) => rowAt(sums, height))).toEqual([
      0, 0, 0, 1, 1, 2, 3, 4, 5,
    ]);
  });
  it("has nothing to find in nothing", () => {
    expect(rowAt(tops([], {}), 0)).toBe(0);
  });
});
