/** Colours of programs that everybody can read: moved towards black or white until they stand out from their ground. */
import { type Colour, type TextStyle, TRUE } from "./ansi";

type Rgb = readonly [number, number, number];

/** `--surface-sunken` in the light and in the dark theme, on which output stands. */
const GROUNDS: readonly [Rgb, Rgb] = [
  [233, 238, 235],
  [10, 18, 20],
];
const WHITE: Rgb = [255, 255, 255];
const BLACK: Rgb = [0, 0, 0];
const ENOUGH = 4.5;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

const rgb = (colour: Colour): Rgb => [(colour >> 16) & 255, (colour >> 8) & 255, colour & 255];
const css = ([red, green, blue]: Rgb): string => `rgb(${red} ${green} ${blue})`;
const token = (colour: Colour): string => `var(--ansi-${colour > 7 ? "bright-" : ""}${NAMES[colour % 8] ?? "white"})`;

export function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as unknown as Rgb;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

export function contrast(a: Rgb, b: Rgb): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

/** The colour, or the nearest one on the way to black or white that can be read on a ground. */
export function readable(colour: Rgb, ground: Rgb): Rgb {
  const target = contrast(BLACK, ground) > contrast(WHITE, ground) ? BLACK : WHITE;
  for (let step = 0; step <= 20; step++) {
    const mixed = colour.map((part, index) =>
      Math.round(part + ((target[index] ?? 0) - part) * (step / 20)),
    ) as unknown as Rgb;
    if (contrast(mixed, ground) >= ENOUGH) return mixed;
  }
  return target;
}

const cached = new Map<string, { readonly color?: string; readonly background?: string }>();

/** The colours of a style as CSS, for both themes at once. */
export function coloursOf(style: TextStyle): { readonly color?: string; readonly background?: string } {
  const { inverse } = style;
  const front = inverse ? style.background : style.colour;
  const back = inverse ? style.colour : style.background;
  const key = `${inverse} ${front} ${back}`;
  const known = cached.get(key);
  if (known) return known;
  const found = colours(front, back, inverse);
  if (cached.size < 4096) cached.set(key, found);
  return found;
}

function colours(front: Colour | null, back: Colour | null, inverse: boolean): { color?: string; background?: string } {
  if (back !== null && back & TRUE) {
    const ground = rgb(back);
    const given =
      front !== null && front & TRUE ? rgb(front) : contrast(BLACK, ground) > contrast(WHITE, ground) ? BLACK : WHITE;
    return { color: css(readable(given, ground)), background: css(ground) };
  }
  // Each of the 16 can be read on the ground of outputs, so the ground can be read on each of the 16.
  if (back !== null) return { color: "var(--surface-sunken)", background: token(back) };
  if (inverse) return { color: "var(--surface-sunken)", background: "var(--text)" };
  if (front === null) return {};
  if (!(front & TRUE)) return { color: token(front) };
  const [light, dark] = GROUNDS.map((ground) => css(readable(rgb(front), ground)));
  return { color: `light-dark(${light}, ${dark})` };
}
