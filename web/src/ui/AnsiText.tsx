/** A line of a program's output in its own colours. `mark` draws a text in it, such as what was searched for. */
import type { ReactNode } from "react";
import styles from "./AnsiText.module.css";
import { PLAIN, parseAnsi, type TextStyle } from "./ansi";
import { coloursOf } from "./contrast";

export function AnsiText({
  text,
  style = PLAIN,
  mark = (piece) => piece,
}: {
  readonly text: string;
  /** The style that is on where it begins. */
  readonly style?: TextStyle;
  /** `at` is where the piece begins in the line as it is seen. */
  readonly mark?: (piece: string, at: number) => ReactNode;
}): ReactNode {
  let at = 0;
  return parseAnsi(text, style).spans.map((span) => {
    const start = at;
    at += span.text.length;
    const className = classes(span.style);
    const colours = coloursOf(span.style);
    const content = mark(span.text, start);
    return className === "" && Object.keys(colours).length === 0 ? (
      <span key={start}>{content}</span>
    ) : (
      <span key={start} className={className} style={colours}>
        {content}
      </span>
    );
  });
}

function classes(style: TextStyle): string {
  const names = (["bold", "dim", "italic", "underline", "strike"] as const).filter((name) => style[name]);
  return names.map((name) => styles[name]).join(" ");
}
