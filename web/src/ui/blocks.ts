/** Text in blocks that do not change any more while the last one grows. */
export function blocks(text: string): readonly string[] {
  const found: string[] = [];
  let current: string[] = [];
  let fence = "";
  for (const line of text.split("\n")) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark && !fence) fence = mark;
    else if (mark && fence && mark.startsWith(fence)) fence = "";
    if (line.trim() === "" && !fence && current.length > 0) {
      found.push(current.join("\n"));
      current = [];
    } else if (line.trim() !== "" || fence) current.push(line);
  }
  if (current.length > 0) found.push(current.join("\n"));
  return found;
}

const TURNING = /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/g;

/** Without the marks that turn the direction of text around: what is read is what is there. */
export const isolated = (text: string): string => text.replace(TURNING, "");

/** With these marks as words, where hiding one could hide what a command does. */
export const visible = (text: string): string =>
  text.replace(TURNING, (mark) => `‹U+${mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);
