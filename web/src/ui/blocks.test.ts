import { describe, expect, it } from "vitest";
import { lines, spans } from "../tasks/ansi";
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

describe("terminal colours", () => {
  it("become spans, and nothing else does", () => {
    expect(spans("\u001b[1;31merror\u001b[0m: x")).toEqual([
      { text: "error", look: "a1 a31" },
      { text: ": x", look: "" },
    ]);
    expect(spans("\u001b[38;5;9mred\u001b[39m")).toEqual([{ text: "red", look: "a91" }]);
    expect(spans("\u001b[38;2;1;2;3mrgb")).toEqual([{ text: "rgb", look: "" }]);
    expect(spans("\u001b]0;title\u0007<b>")).toEqual([{ text: "]0;title<b>", look: "" }]);
  });
  it("and what turns text around is said", () => {
    expect(spans("rm \u202egnp.x")).toEqual([{ text: "rm ‹U+202E›gnp.x", look: "" }]);
  });
  it("carry over to the next line", () => {
    expect(lines("\u001b[32ma\nb\u001b[0m\nc", 10, 24).lines.map((line) => [line.offset, line.text])).toEqual([
      [10, "\u001b[32ma"],
      [17, "\u001b[32mb\u001b[0m"],
      [23, "c"],
    ]);
  });
});
