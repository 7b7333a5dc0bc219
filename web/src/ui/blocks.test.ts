import { describe, expect, it } from "vitest";
import { blocks, isolated } from "./blocks";

describe("blocks", () => {
  it("are split at blank lines, but not inside code", () => {
    expect(blocks("a\nb\n\nc\n\n```py\nx\n\ny\n```\n\nd")).toEqual(["a\nb", "c", "```py\nx\n\ny\n```", "d"]);
    expect(blocks("```\nx\n\ny")).toEqual(["```\nx\n\ny"]);
  });
  it("grow at their end only", () => {
    const whole = "one\n\ntwo\n\nthree";
    for (let end = 1; end <= whole.length; end++) {
      const now = blocks(whole.slice(0, end));
      expect(blocks(whole).slice(0, now.length - 1)).toEqual(now.slice(0, -1));
    }
  });
  it("turn no text around", () => {
    expect(isolated("a\u202eb\u2066c")).toBe("abc");
  });
});
