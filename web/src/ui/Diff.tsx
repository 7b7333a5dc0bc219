/** A change, line by line: what is new, what is gone, where it is. Colour and sign say the same. */
import type { ReactNode } from "react";
import { visible } from "./blocks";
import styles from "./Diff.module.css";

export const isDiff = (language: string): boolean => language === "diff" || language === "patch";

function kindOf(line: string): "added" | "removed" | "place" | "same" {
  if (/^(\+\+\+|---|@@|diff |index )/.test(line)) return "place";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "same";
}

export function Diff({ text }: { readonly text: string }): ReactNode {
  return (
    <pre className={styles.diff} tabIndex={0} dir="ltr">
      {text.split("\n").map((line, index) => {
        const kind = kindOf(line);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines of a text that does not change
          <span key={index} data-line={kind} className={styles[kind]}>
            {visible(line) || " "}
          </span>
        );
      })}
    </pre>
  );
}
