/**
 * The bytes of an output as rows: one per line, several for a line of more than 8 KiB, and one for bytes that were
 * dropped. A row keeps its place in the output, so what the gateway finds by offset is found here too. Pure.
 */
import { PLAIN, parseAnsi, type TextStyle } from "../ui/ansi";

/** A longer line takes several rows. */
export const PIECE = 8192;
/** More than this is not kept in the browser; what is left out is read again when it is looked at. */
const MOST = 16 * 1024 * 1024;

export interface Gap {
  readonly start: number;
  readonly end: number;
}

export interface LineRow {
  readonly kind: "line";
  readonly offset: number;
  readonly bytes: number;
  /** With its escape sequences. */
  readonly text: string;
  /** What is on where it begins. */
  readonly style: TextStyle;
  /** It goes on with the line of the row before. */
  readonly continued: boolean;
}

export interface GapRow {
  readonly kind: "gap";
  readonly offset: number;
  readonly bytes: number;
}

export type OutputRow = LineRow | GapRow;

/** A contiguous part of an output. */
export interface Loaded {
  readonly rows: readonly OutputRow[];
  readonly from: number;
  readonly to: number;
  /** The bytes of the last row while its line has no end yet: they are read again together with what follows. */
  readonly open: Uint8Array;
}

/** What the gateway sent: the bytes from `offset` on, after a gap if there is one. */
export interface Piece {
  readonly offset: number;
  readonly bytes: Uint8Array;
  readonly gap: Gap | null;
}

const NO_BYTES = new Uint8Array(0);
const NEW_LINE = 10;
const decoder = new TextDecoder();

export const nothingLoaded = (at: number): Loaded => ({ rows: [], from: at, to: at, open: NO_BYTES });

/** Add what follows. */
export function append(loaded: Loaded, { offset, bytes, gap }: Piece): Loaded {
  let { rows, open, from } = loaded;
  const end = offset + bytes.length;
  if (gap) {
    rows = [...rows, { kind: "gap", offset: gap.start, bytes: gap.end - gap.start }];
    open = NO_BYTES;
  }
  if (bytes.length === 0) return { rows, from, to: end, open };
  const last = open.length > 0 ? (rows.at(-1) as LineRow | undefined) : undefined;
  const before = last ? rows.slice(0, -1) : rows;
  const start = last ? { offset: last.offset, style: last.style, continued: last.continued } : begin(before, offset);
  const all = joined(open, bytes);
  const { rows: more, rest } = split(all, start);
  const kept = trimmedHead([...before, ...more]);
  if (kept[0] && kept[0].offset > from) from = kept[0].offset;
  return { rows: kept, from, to: end, open: rest };
}

/** Where the next row begins, after complete rows. */
function begin(rows: readonly OutputRow[], offset: number): Start {
  const last = rows.at(-1);
  const style = last?.kind === "line" ? parseAnsi(last.text, last.style).style : PLAIN;
  return { offset, style, continued: false };
}

interface Start {
  readonly offset: number;
  readonly style: TextStyle;
  readonly continued: boolean;
}

/** Add what stands before. Its first line is left for the next time, unless the output begins there. */
export function prepend(loaded: Loaded, { offset, bytes, gap }: Piece): Loaded {
  const whole = offset === 0 || gap !== null;
  let skip = 0;
  if (!whole) {
    skip = bytes.indexOf(NEW_LINE) + 1;
    if (skip === 0) while (skip < bytes.length && ((bytes[skip] ?? 0) & 0xc0) === 0x80) skip += 1; // one endless line
  }
  const { rows } = split(bytes.subarray(skip), { offset: offset + skip, style: PLAIN, continued: false });
  const before: OutputRow[] = gap
    ? [{ kind: "gap", offset: gap.start, bytes: gap.end - gap.start }, ...rows]
    : [...rows];
  const first = loaded.rows[0];
  const endsOpen = bytes.length > 0 && bytes[bytes.length - 1] !== NEW_LINE;
  const behind: readonly OutputRow[] =
    endsOpen && first?.kind === "line" ? [{ ...first, continued: true }, ...loaded.rows.slice(1)] : loaded.rows;
  const all = [...before, ...behind];
  const kept = trimmedTail(all);
  const from = gap ? gap.start : offset + skip;
  if (kept.length === all.length) return { ...loaded, rows: kept, from };
  const last = kept.at(-1);
  return { rows: kept, from, to: last ? last.offset + last.bytes : loaded.to, open: NO_BYTES };
}

function split(bytes: Uint8Array, start: Start): { rows: LineRow[]; rest: Uint8Array } {
  const rows: LineRow[] = [];
  let { style, continued } = start;
  let at = 0;
  while (at < bytes.length) {
    const line = bytes.indexOf(NEW_LINE, at);
    const lineEnd = line < 0 ? bytes.length : line;
    const end = lineEnd - at > PIECE ? boundary(bytes, at, at + PIECE) : lineEnd;
    const next = end === line ? end + 1 : end;
    const text = decoder.decode(bytes.subarray(at, end));
    rows.push({ kind: "line", offset: start.offset + at, bytes: next - at, text, style, continued });
    if (line < 0 && end === lineEnd) return { rows, rest: bytes.slice(at) };
    if (text.includes("\u001b")) style = parseAnsi(text, style).style;
    continued = end !== line;
    at = next;
  }
  return { rows, rest: NO_BYTES };
}

/** A place to cut a line: not inside of a character, and not inside of a short escape sequence. */
function boundary(bytes: Uint8Array, from: number, to: number): number {
  let end = to;
  while (end > from && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  const sequenceAt = bytes.lastIndexOf(27, end - 1);
  if (sequenceAt > from && sequenceAt > end - 32) {
    const sequence = decoder.decode(bytes.subarray(sequenceAt, Math.min(bytes.length, end + 32)));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence begins with one
    const whole = /^\u001b\[[0-?]*[ -/]*[@-~]/.exec(sequence);
    if (whole && sequenceAt + whole[0].length > end) return sequenceAt;
  }
  return end > from ? end : to;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  if (a.length === 0) return b;
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

function trimmedHead(rows: readonly OutputRow[]): readonly OutputRow[] {
  let kept = 0;
  for (let index = rows.length - 1; index >= 0; index--) {
    const row = rows[index];
    kept += row?.kind === "line" ? row.bytes : 0;
    if (kept > MOST) return rows.slice(index + 1);
  }
  return rows;
}

function trimmedTail(rows: readonly OutputRow[]): readonly OutputRow[] {
  let kept = 0;
  const at = rows.findIndex((row) => {
    kept += row.kind === "line" ? row.bytes : 0;
    return kept > MOST;
  });
  return at < 0 ? rows : rows.slice(0, at);
}

/** The row with this place of the output; -1 if it is not loaded. */
export function rowAt(rows: readonly OutputRow[], offset: number): number {
  let low = 0;
  let high = rows.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const row = rows[middle];
    if (!row) return -1;
    if (offset < row.offset) high = middle - 1;
    else if (offset >= row.offset + row.bytes) low = middle + 1;
    else return middle;
  }
  return -1;
}

/** The number of each row's line, from the beginning of the output; null after dropped bytes, where nobody knows it. */
export function lineNumbers(loaded: Loaded): readonly (number | null)[] {
  let next: number | null = loaded.from === 0 ? 1 : null;
  return loaded.rows.map((row) => {
    if (row.kind === "gap") {
      next = null;
      return null;
    }
    if (row.continued) return null;
    return next === null ? null : next++;
  });
}
