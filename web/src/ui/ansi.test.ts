import { describe, expect, it } from "vitest";
import { hasOverwritten, PLAIN, parseAnsi, plainText, styledLines, type TextStyle, TRUE } from "./ansi";
import { coloursOf, contrast, readable } from "./contrast";

const ESC = "\u001b";
const spans = (line: string): readonly (readonly [string, Partial<TextStyle>])[] =>
  parseAnsi(line).spans.map(({ text, style }) => [
    text,
    Object.fromEntries(Object.entries(style).filter(([name, value]) => value !== PLAIN[name as keyof TextStyle])),
  ]);

describe("colours of a terminal", () => {
  it("become spans, and nothing else does", () => {
    expect(spans(`${ESC}[1;31merror${ESC}[0m: x`)).toEqual([
      ["error", { bold: true, colour: 1 }],
      [": x", {}],
    ]);
    expect(spans(`${ESC}[38;5;9mred${ESC}[39m.`)).toEqual([
      ["red", { colour: 9 }],
      [".", {}],
    ]);
    expect(spans(`${ESC}]0;title\u0007<b>`)).toEqual([["<b>", {}]]);
    expect(spans(`a${ESC}[2Kb${ESC}(Bc`)).toEqual([["abc", {}]]);
    expect(spans("rm \u202egnp.x")).toEqual([["rm ‹U+202E›gnp.x", {}]]);
  });
  it("may be of 256 or true ones, with semicolons or colons", () => {
    expect(spans(`${ESC}[38;5;208mx`)).toEqual([["x", { colour: TRUE | 0xff8700 }]]);
    expect(spans(`${ESC}[48;5;232mx`)).toEqual([["x", { background: TRUE | 0x080808 }]]);
    expect(spans(`${ESC}[1;38;2;1;2;3;4mx`)).toEqual([["x", { bold: true, colour: TRUE | 0x010203, underline: true }]]);
    expect(spans(`${ESC}[38:2::1:2:3;1mx`)).toEqual([["x", { colour: TRUE | 0x010203, bold: true }]]);
    expect(spans(`${ESC}[38;5;999mx`)).toEqual([["x", {}]]);
  });
  it("go on in the next line", () => {
    const { style } = parseAnsi(`${ESC}[1m${ESC}[31ma`);
    expect(styledLines(`${ESC}[32ma\nb${ESC}[0m\nc`).map((one) => one.style.colour)).toEqual([null, 2, null]);
    expect(parseAnsi("b", style).spans).toEqual([{ text: "b", style: { ...PLAIN, bold: true, colour: 1 } }]);
  });
  it("show what was written last", () => {
    expect(plainText("10 %\r20 %\r30 %\r")).toBe("30 %");
    expect(spans(`${ESC}[31m10 %\r20 %`)).toEqual([["20 %", { colour: 1 }]]);
    expect([hasOverwritten("a\r\r"), hasOverwritten("a\rb")]).toEqual([false, true]);
  });
  it("can be read in both themes, whatever a program chose", () => {
    for (const colour of [0x000000, 0xffffff, 0x0000ff, 0xffff00, 0x00ff00, 0x7f7f7f, 0xff8700, 0x1e90ff]) {
      const rgb = [(colour >> 16) & 255, (colour >> 8) & 255, colour & 255] as const;
      for (const ground of [[233, 238, 235] as const, [10, 18, 20] as const, rgb])
        expect(contrast(readable(rgb, ground), ground)).toBeGreaterThanOrEqual(4.5);
      const { color } = coloursOf({ ...PLAIN, colour: TRUE | colour });
      expect(color).toMatch(/^light-dark\(rgb\(.*\), rgb\(.*\)\)$/);
    }
    const dark = coloursOf({ ...PLAIN, background: TRUE | 0x202020 });
    expect(dark).toEqual({ color: "rgb(255 255 255)", background: "rgb(32 32 32)" });
    expect(coloursOf({ ...PLAIN, colour: 1, inverse: true })).toEqual({
      color: "var(--surface-sunken)",
      background: "var(--ansi-red)",
    });
  });
});
