import { memo, type ReactNode } from "react";
import { size } from "../text";
import { AnsiText } from "../ui/AnsiText";
import { hasOverwritten, plainText } from "../ui/ansi";
import { Icon } from "../ui/Icon";
import shared from "../ui/shared.module.css";
import { Why } from "../ui/Why";
import styles from "./OutputView.module.css";
import type { GapRow, LineRow, OutputRow } from "./outputRows";
import type { Match } from "./useOutputSearch";

interface LineProps {
  readonly row: LineRow;
  readonly before: OutputRow | undefined;
  readonly after: OutputRow | undefined;
  /** Of the line; null if it is not known, undefined for the offset instead. */
  readonly number: number | null | undefined;
  readonly wanted: string;
  readonly matches: readonly Match[];
  /** The match that is looked at, if it begins here. */
  readonly current: Match | null;
}

export const LineView = memo(function LineView(props: LineProps): ReactNode {
  const { row, wanted, current } = props;
  const marks = wanted === "" ? [] : marksOf(props);
  const here = current ? currentMark(props, marks.length) : -1;
  return (
    <div className={styles.row} data-current={current !== null || undefined}>
      <span className={styles.gutter}>{gutter(props)}</span>
      <span className={styles.text}>
        <AnsiText text={row.text} style={row.style} mark={(piece, at) => marked(piece, at, marks, here)} />
        {current && marks.length === 0 && hasOverwritten(row.text) && (
          <span className={styles.aside}> found in a part that was overwritten later in this line</span>
        )}
      </span>
    </div>
  );
});

function gutter({ row, number }: LineProps): ReactNode {
  const offset = row.offset.toLocaleString("en");
  if (number === undefined) return offset;
  if (row.continued) return <span title="The same line goes on">↳</span>;
  if (number === null) return <span title="Its number is not known; this is its offset in bytes">@{offset}</span>;
  return number.toLocaleString("en");
}

interface Mark {
  readonly from: number;
  readonly to: number;
}

/** Where the text stands in what is seen of a row. In a long line it may begin in the row before or end in the next. */
function marksOf({ row, before, after, wanted }: LineProps): readonly Mark[] {
  const length = wanted.length - 1;
  const head = row.continued && before?.kind === "line" && length > 0 ? plainText(before.text).slice(-length) : "";
  const own = plainText(row.text);
  const tail = after?.kind === "line" && after.continued ? plainText(after.text).slice(0, length) : "";
  const whole = (head + own + tail).toLowerCase();
  const needle = wanted.toLowerCase();
  const found: Mark[] = [];
  for (let at = whole.indexOf(needle); at >= 0; at = whole.indexOf(needle, at + needle.length)) {
    const from = Math.max(0, at - head.length);
    const to = Math.min(own.length, at + needle.length - head.length);
    if (to > from) found.push({ from, to });
  }
  return found;
}

/** Which mark of the row is the match that is looked at. */
function currentMark({ row, matches, current }: LineProps, marks: number): number {
  const inRow = matches.filter((match) => match.offset >= row.offset && match.offset < row.offset + row.bytes);
  const place = inRow.findIndex((match) => match.offset === current?.offset);
  return place < 0 ? -1 : Math.min(place, marks - 1);
}

function marked(piece: string, at: number, marks: readonly Mark[], here: number): ReactNode {
  const parts: ReactNode[] = [];
  let from = 0;
  for (const [index, mark] of marks.entries()) {
    const start = Math.max(from, mark.from - at);
    const end = Math.min(piece.length, mark.to - at);
    if (end <= start || start >= piece.length) continue;
    parts.push(
      piece.slice(from, start),
      <mark key={mark.from} className={styles.hit} data-current={index === here || undefined}>
        {piece.slice(start, end)}
      </mark>,
    );
    from = end;
  }
  return parts.length === 0 ? piece : [...parts, piece.slice(from)];
}

export function GapBand({ gap, task }: { readonly gap: GapRow; readonly task: string }): ReactNode {
  return (
    <div className={styles.gap} role="note">
      <Icon name="unknown" />
      <span className={styles.gapText}>
        <b>
          bytes {gap.offset.toLocaleString("en")}–{(gap.offset + gap.bytes - 1).toLocaleString("en")} dropped (
          {size(gap.bytes)})
        </b>{" "}
        <span className={shared.muted}>The beginning and the end are kept, at their original offsets.</span>
      </span>
      <Why of="task" id={task} />
    </div>
  );
}
