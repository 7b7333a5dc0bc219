/**
 * Text with escape sequences of a terminal, as spans of text with a style. Colours stay, also of 256 and true ones;
 * every other sequence and control character goes. What a carriage return had overwritten is not shown.
 */
import { visible } from "./blocks";

/** One of the 16 colours of a terminal by its number, or 24 bits of red, green and blue with `TRUE` set. */
export type Colour = number;
export const TRUE = 0x1000000;

export interface TextStyle {
  readonly colour: Colour | null;
  readonly background: Colour | null;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underline: boolean;
  readonly strike: boolean;
  readonly inverse: boolean;
}

export interface Span {
  readonly text: string;
  readonly style: TextStyle;
}

export const PLAIN: TextStyle = {
  colour: null,
  background: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  strike: false,
  inverse: false,
};

const SEQUENCE = new RegExp(
  [
    "(?:\\u001b\\[|\\u009b)([0-?]*)[ -/]*([@-~])", // colours, cursor
    "(?:\\u001b[\\]PX^_]|[\\u0090\\u0098\\u009d-\\u009f])" + // a title, a link
      "[^\\u0007\\u001b\\u009c\\n]{0,4096}(?:\\u0007|\\u001b\\\\|\\u009c)?",
    "\\u001b[ -/]*[0-~]?",
  ].join("|"),
  "g",
);
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ufeff]/g;

/** A line, or a piece of one, and the style that it leaves on. */
export function parseAnsi(line: string, from: TextStyle = PLAIN): { spans: readonly Span[]; style: TextStyle } {
  let end = line.length;
  while (end > 0 && line[end - 1] === "\r") end -= 1;
  const shown = line.lastIndexOf("\r", end - 1) + 1; // what stands before was overwritten, but its style counts
  const spans: Span[] = [];
  let style = from;
  let at = 0;
  const push = (start: number, stop: number): void => {
    const text = visible(line.slice(Math.max(start, shown), Math.max(stop, shown)).replace(CONTROL, ""));
    if (text === "") return;
    const last = spans.at(-1);
    if (last?.style === style) spans[spans.length - 1] = { text: last.text + text, style };
    else spans.push({ text, style });
  };
  for (const match of line.matchAll(SEQUENCE)) {
    push(at, match.index);
    at = match.index + match[0].length;
    if (match[2] === "m") style = styled(style, match[1] ?? "");
  }
  push(at, line.length);
  return { spans, style };
}

/** The lines of a text, each with the style that is on where it begins. */
export function styledLines(text: string): readonly { readonly line: string; readonly style: TextStyle }[] {
  let style = PLAIN;
  return text.split("\n").map((line) => {
    const begins = style;
    if (line.includes("\u001b")) style = parseAnsi(line, style).style;
    return { line, style: begins };
  });
}

export const plainText = (line: string): string =>
  parseAnsi(line)
    .spans.map((span) => span.text)
    .join("");

/** Whether a carriage return hides a part of the line. */
export const hasOverwritten = (line: string): boolean => /\r(?!\r*$)/.test(line);

const WITHOUT: Readonly<Record<number, Partial<TextStyle>>> = {
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  29: { strike: false },
  39: { colour: null },
  49: { background: null },
};
const WITH: Readonly<Record<number, Partial<TextStyle>>> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  9: { strike: true },
};

function styled(before: TextStyle, parameters: string): TextStyle {
  let style = before;
  const codes = parameters.split(";");
  for (let index = 0; index < codes.length; index++) {
    const [first = "", ...rest] = (codes[index] ?? "").split(":");
    const code = Number(first);
    if (code === 0) style = PLAIN;
    else if (code === 4 && rest[0] === "0") style = { ...style, underline: false };
    else if (code === 38 || code === 48) {
      const following = rest.length > 0 ? rest : codes.slice(index + 1, index + 5);
      const { colour, used } = extended(following, rest.length > 0);
      if (rest.length === 0) index += used;
      if (colour !== null) style = { ...style, [code === 38 ? "colour" : "background"]: colour };
    } else if (code >= 30 && code <= 37) style = { ...style, colour: code - 30 };
    else if (code >= 90 && code <= 97) style = { ...style, colour: code - 82 };
    else if (code >= 40 && code <= 47) style = { ...style, background: code - 40 };
    else if (code >= 100 && code <= 107) style = { ...style, background: code - 92 };
    else {
      const change = WITH[code] ?? WITHOUT[code];
      if (change) style = { ...style, ...change };
    }
  }
  return style;
}

/** A colour of 256 (`5;N`) or a true one (`2;R;G;B`); with colons a colour space may stand before the red. */
function extended(numbers: readonly string[], colons: boolean): { colour: Colour | null; used: number } {
  const kind = numbers[0];
  if (kind === "5") return { colour: ofPalette(Number(numbers[1])), used: 2 };
  if (kind !== "2") return { colour: null, used: 0 };
  const parts = (colons ? numbers.slice(-3) : numbers.slice(1, 4)).map(Number);
  const valid = parts.length === 3 && parts.every((part) => part >= 0 && part <= 255);
  return { colour: valid ? ofRgb(parts[0] ?? 0, parts[1] ?? 0, parts[2] ?? 0) : null, used: 4 };
}

const ofRgb = (red: number, green: number, blue: number): Colour => TRUE | (red << 16) | (green << 8) | blue;

function ofPalette(index: number): Colour | null {
  if (!(index >= 0 && index <= 255)) return null;
  if (index < 16) return index;
  if (index >= 232) return ofRgb(index * 10 - 2312, index * 10 - 2312, index * 10 - 2312);
  const step = (value: number): number => (value === 0 ? 0 : 55 + value * 40);
  const cube = index - 16;
  return ofRgb(step(Math.floor(cube / 36)), step(Math.floor(cube / 6) % 6), step(cube % 6));
}
