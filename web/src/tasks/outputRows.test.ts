import { describe, expect, it } from "vitest";
import { append, type Loaded, lineNumbers, nothingLoaded, PIECE, prepend, rowAt } from "./outputRows";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const texts = (loaded: Loaded): readonly unknown[] =>
  loaded.rows.map((row) => (row.kind === "gap" ? "gap" : [row.offset, row.text]));
const piece = (offset: number, text: string) => ({ offset, bytes: encode(text), gap: null });

describe("an output in pieces", () => {
  it("is the same however it is cut", () => {
    const bytes = encode("one\ntwö\r\n\nthree");
    const whole = [
      [0, "one"],
      [4, "twö\r"],
      [10, ""],
      [11, "three"],
    ];
    for (let cut = 0; cut <= bytes.length; cut++) {
      const first = append(nothingLoaded(0), { offset: 0, bytes: bytes.slice(0, cut), gap: null });
      expect(texts(append(first, { offset: cut, bytes: bytes.slice(cut), gap: null }))).toEqual(whole);
    }
  });
  it("keeps its colours from line to line", () => {
    const loaded = append(nothingLoaded(0), piece(0, "\u001b[1m\u001b[31ma\nb\n"));
    expect(append(loaded, piece(12, "c")).rows.map((row) => row.kind === "line" && row.style.colour)).toEqual([
      null,
      1,
      1,
    ]);
  });
  it("says where something was dropped, and numbers no line after it", () => {
    const first = append(nothingLoaded(0), piece(0, "a\nb"));
    const loaded = append(first, { offset: 90, bytes: encode("y\nz\n"), gap: { start: 3, end: 90 } });
    expect(texts(loaded)).toEqual([[0, "a"], [2, "b"], "gap", [90, "y"], [92, "z"]]);
    expect(lineNumbers(loaded)).toEqual([1, 2, null, null, null]);
    expect([0, 1, 2, 50, 90, 93, 94].map((offset) => rowAt(loaded.rows, offset))).toEqual([0, 0, 1, 2, 3, 4, -1]);
  });
  it("shows a long line in its place, in rows that follow each other", () => {
    const line = `${"ä".repeat(10_000)}\u001b[31m${"x".repeat(10_000)}`;
    let loaded = nothingLoaded(0);
    const bytes = encode(`${line}\nnext\n`);
    for (let at = 0; at < bytes.length; at += 5000)
      loaded = append(loaded, { offset: at, bytes: bytes.slice(at, at + 5000), gap: null });
    const rows = loaded.rows.flatMap((row) => (row.kind === "line" ? [row] : []));
    expect(
      rows
        .slice(0, -1)
        .map((row) => row.text)
        .join(""),
    ).toBe(line);
    expect(rows.every((row) => row.bytes <= PIECE + 1 && !row.text.includes("\ufffd"))).toBe(true);
    expect(rows.map((row) => row.continued)).toEqual([false, true, true, true, false]);
    expect(rows.at(-1)).toMatchObject({ text: "next", offset: bytes.length - 5 });
    expect(lineNumbers(loaded)).toEqual([1, null, null, null, 2]);
  });
  it("grows at its beginning by whole lines", () => {
    const bytes = encode("one\ntwo\nthree\nfour\n");
    let loaded = append(nothingLoaded(14), { offset: 14, bytes: bytes.slice(14), gap: null });
    loaded = prepend(loaded, { offset: 5, bytes: bytes.slice(5, 14), gap: null });
    expect([texts(loaded), loaded.from]).toEqual([
      [
        [8, "three"],
        [14, "four"],
      ],
      8,
    ]);
    loaded = prepend(loaded, { offset: 0, bytes: bytes.slice(0, 8), gap: null });
    expect(texts(loaded)).toEqual([
      [0, "one"],
      [4, "two"],
      [8, "three"],
      [14, "four"],
    ]);
    expect(lineNumbers(loaded)).toEqual([1, 2, 3, 4]);
  });
  it("keeps no more than fits, at the end that is read", () => {
    const block = new Uint8Array(1 << 20).fill(120);
    for (let at = 1023; at < block.length; at += 1024) block[at] = 10;
    let loaded = nothingLoaded(0);
    for (let at = 0; at < 20; at++) loaded = append(loaded, { offset: at << 20, bytes: block, gap: null });
    expect([loaded.from, loaded.to]).toEqual([4 << 20, 20 << 20]);
    loaded = prepend(loaded, { offset: 3 << 20, bytes: block, gap: null });
    expect(loaded.to).toBe(loaded.from + (16 << 20));
    expect(loaded.rows[0]?.offset).toBe(loaded.from);
  });
});
