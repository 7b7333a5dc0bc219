import { describe, expect, it } from "vitest";
import type { OutputPage } from "../api/types.gen";
import { added, unread } from "./output";

const page = (offset: number, text: string, more: Partial<OutputPage> = {}): OutputPage => {
  const next = offset + new TextEncoder().encode(text).length;
  return { offset, next, size: next, state: "running", dropped: null, text, ...more };
};
const rows = (pages: readonly OutputPage[]): readonly unknown[] =>
  pages.reduce(added, unread(0)).output.rows.map((row) => ("gap" in row ? "gap" : [row.offset, row.text]));

describe("an output in pieces", () => {
  it("is the same however it is cut", () => {
    const text = "one\ntwö\n\nthree";
    const whole = rows([page(0, text)]);
    expect(whole).toEqual([
      [0, "one"],
      [4, "twö"],
      [9, ""],
      [10, "three"],
    ]);
    for (const cut of [1, 3, 4, 6, 8, 9, 11]) {
      const first = text.slice(0, cut);
      expect(rows([page(0, first), page(new TextEncoder().encode(first).length, text.slice(cut))])).toEqual(whole);
    }
  });
  it("keeps its colours from piece to piece", () => {
    expect(rows([page(0, "\u001b[31ma\n"), page(7, "b\n")])).toEqual([
      [0, "\u001b[31ma"],
      [7, "\u001b[31mb"],
    ]);
  });
  it("says where something was dropped", () => {
    expect(rows([page(0, "a\n"), page(2, "z\n", { dropped: { start: 2, end: 90 } })])).toEqual([
      [0, "a"],
      "gap",
      [90, "z"],
    ]);
  });
  it("takes a line of ten million characters without a second look at its beginning", () => {
    const piece = "x".repeat(262_144);
    let reading = unread(0);
    for (let at = 0; at < 40; at++) reading = added(reading, page(at * piece.length, piece));
    expect(reading.output.rows).toHaveLength(1);
    const [row] = reading.output.rows;
    expect(row && "text" in row && row.text.length).toBe(40 * piece.length);
  });
  it("keeps the end of what is too much, and says where that begins", () => {
    const line = `${"y".repeat(1023)}\n`.repeat(4096);
    let reading = unread(0);
    for (let at = 0; at < 12; at++) reading = added(reading, page(at * line.length, line));
    expect(reading.output.from).toBeGreaterThan(0);
    expect(reading.output.rows[0]).toMatchObject({ offset: reading.output.from });
    expect(reading.output.rows.length).toBeLessThan(40_000);
  });
});
