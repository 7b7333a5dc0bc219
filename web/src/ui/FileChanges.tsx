/** Files that differ from what they are compared with, and their lines. */
import { type ReactNode, useMemo } from "react";
import type { FileChange, FileChanges } from "../api/types.gen";
import { plural } from "../text";
import styles from "./FileChanges.module.css";
import shared from "./shared.module.css";

/** More files than these begin folded. */
const OPEN = 12;
const LINES = 2_000;
const MARKS: Readonly<Record<string, string>> = { added: "A", changed: "M", deleted: "D" };

export function ChangedFiles({ found }: { readonly found: FileChanges }): ReactNode {
  const parts = useMemo(() => byFile(found.diff), [found.diff]);
  if (found.files.length === 0) return <p className={shared.muted}>No changes. Compared with {found.compared_with}.</p>;
  const sum = (of: "added" | "removed"): number => found.files.reduce((all, file) => all + (file[of] ?? 0), 0);
  return (
    <>
      <p className={shared.muted}>
        {plural(found.files.length, "file")}, +{sum("added").toLocaleString("en")} −
        {sum("removed").toLocaleString("en")} lines, compared with {found.compared_with}.
      </p>
      {found.left_out && <p className={styles.leftOut}>{found.left_out}</p>}
      <ul className={styles.files} aria-label="Changed files">
        {found.files.map((file) => (
          <li key={file.path}>
            <OneFile file={file} text={parts.get(file.path) ?? ""} open={found.files.length <= OPEN} />
          </li>
        ))}
      </ul>
    </>
  );
}

function OneFile({
  file,
  text,
  open,
}: {
  readonly file: FileChange;
  readonly text: string;
  readonly open: boolean;
}): ReactNode {
  const lines = text.split("\n");
  return (
    <details open={open}>
      <summary className={styles.file}>
        <span className={styles[file.change] ?? ""} title={file.change}>
          {MARKS[file.change] ?? "?"}
          <span className={shared.srOnly}> {file.change}</span>
        </span>
        <span className={styles.path} title={file.path}>
          {file.path}
        </span>
        <span className={styles.counts}>
          {file.added === null ? "no text, or large" : `+${file.added} −${file.removed ?? 0}`}
        </span>
      </summary>
      {text && file.added !== null && (
        <pre className={styles.lines} tabIndex={0} role="group" aria-label={`Changes in ${file.path}`}>
          {lines.slice(0, LINES).map((line, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: lines of a text that does not change
            <span key={index} className={styles[lookOf(line)] ?? ""}>
              {line || " "}
            </span>
          ))}
          {lines.length > LINES && <span>… {(lines.length - LINES).toLocaleString("en")} more lines</span>}
        </pre>
      )}
    </details>
  );
}

/** The lines of each file, from the first `@@` on; without one what git says instead. */
export function byFile(diff: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const part of diff.split(/^(?=diff --git )/m)) {
    const name = /^\+\+\+ b\/(.*)$/m.exec(part)?.[1] ?? /^--- a\/(.*)$/m.exec(part)?.[1];
    const path = name ?? /^diff --git a\/(.*) b\/\1$/m.exec(part)?.[1];
    if (path === undefined) continue;
    const start = part.search(/^@@/m);
    const rest = start >= 0 ? part.slice(start) : part.split("\n").slice(1).join("\n");
    found.set(path.replace(/\t$/, ""), rest.replace(/\n$/, ""));
  }
  return found;
}

function lookOf(line: string): string {
  return line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus" : line.startsWith("@@") ? "place" : "";
}
