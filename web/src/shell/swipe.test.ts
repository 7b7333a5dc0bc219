import { describe, expect, it } from "vitest";
import { subjectOf } from "./overlay";
import { meant } from "./swipe";

describe("a swipe", () => {
  it("opens the drawer from the edge or along a bar, and only there", () => {
    expect(meant({ dx: -90, dy: 10, from: "edge" }, false)).toBe(true);
    expect(meant({ dx: -90, dy: 10, from: "bar" }, false)).toBe(true);
    expect(meant({ dx: -90, dy: 10, from: "elsewhere" }, false)).toBeNull();
    expect(meant({ dx: -90, dy: 80, from: "edge" }, false)).toBeNull();
  });
  it("closes it to the right, or down from its bar", () => {
    expect(meant({ dx: 90, dy: 10, from: "drawer" }, true)).toBe(false);
    expect(meant({ dx: 0, dy: 90, from: "drawer bar" }, true)).toBe(false);
    expect(meant({ dx: 0, dy: 90, from: "drawer" }, true)).toBeNull();
  });
});

describe("what `y` asks about", () => {
  it("is the page, when nothing that has a name is focused", () => {
    expect(subjectOf(null, "/s/ab12")).toEqual({ of: "session", id: "ab12" });
    expect(subjectOf(null, "/tasks/ab12")).toEqual({ of: "task", id: "ab12" });
    expect(subjectOf(null, "/tasks")).toBeNull();
    expect(subjectOf(null, "/home")).toBeNull();
  });
});
