/** Colours of a terminal as classes; everything else stays text. */
import { visible } from "../ui/blocks";

export interface Span {
  readonly text: string;
  readonly look: string;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const SGR = /\u001b\[([0-9;]*)m/g;

export function spans(line: string): readonly Span[] {
  const found: Span[] = [];
  let look = new Map<string, string>();
  let from = 0;
  const push = (text: string): void => {
    const clean = visible(text.replace(CONTROL, ""));
    if (clean) found.push({ text: clean, look: [...look.values()].sort(byNumber).join(" ") });
  };
  for (const match of line.matchAll(SGR)) {
    push(line.slice(from, match.index));
    from = match.index + match[0].length;
    look = styled(look, match[1] ?? "");
  }
  push(line.slice(from));
  return found;
}

const byNumber = (a: string, b: string): number => Number(a.slice(1)) - Number(b.slice(1));

function styled(before: ReadonlyMap<string, string>, codes: string): Map<string, string> {
  const look = new Map(before);
  const numbers = codes.split(";").map(Number);
  for (let index = 0; index < numbers.length; index++) {
    const code = numbers[index] ?? 0;
    if (code === 0) look.clear();
    else if (code === 22) for (const name of ["1", "2"]) look.delete(name);
    else if ([24, 27, 29].includes(code)) look.delete(String(code - 20));
    else if (code === 39) look.delete("colour");
    else if ([1, 2, 4, 7, 9].includes(code)) look.set(String(code), `a${code}`);
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) look.set("colour", `a${code}`);
    else if (code === 38 || code === 48) {
      const kind = numbers[index + 1];
      const colour = numbers[index + 2] ?? 0;
      if (code === 38 && kind === 5 && colour < 16) look.set("colour", `a${colour < 8 ? 30 + colour : 82 + colour}`);
      index += kind === 5 ? 2 : 4;
    }
  }
  return look;
}
