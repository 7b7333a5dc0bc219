import { type KeyboardEvent, type ReactNode, useEffect, useEffectEvent, useMemo, useRef, useState } from "react";
import { load, save } from "../api/storage";
import type { TaskView } from "../api/types.gen";
import { size } from "../text";
import { Button } from "../ui/Button";
import { Empty, Loading } from "../ui/Empty";
import { useMedia, useSettled } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { Segmented } from "../ui/Segmented";
import shared from "../ui/shared.module.css";
import { useVirtualRows } from "../ui/virtualRows";
import { GapBand, LineView } from "./OutputLine";
import styles from "./OutputView.module.css";
import { lineNumbers, type OutputRow, rowAt } from "./outputRows";
import { type Output, useOutput } from "./useOutput";
import { type OutputSearch, useOutputSearch } from "./useOutputSearch";

const ROW = 19;
const GAP = 40;
/** So near to the first or last row that is loaded, more is. */
const NEAR = 40;

export function OutputView({ task }: { readonly task: TaskView }): ReactNode {
  const output = useOutput(task.id);
  const [text, setText] = useState("");
  const wanted = useSettled(text, 200);
  const search = useOutputSearch(task.id, wanted, output.size ?? 0);
  const [current, setCurrent] = useState(0);
  const phone = useMedia("(max-width: 720px)");
  const [wrap, setWrap] = useState(() => load<boolean | null>("output.wrap", null));
  const [numbered, setNumbered] = useState(() => load("output.lines", false));
  const wraps = wrap ?? phone;
  const [follow, setFollow] = useState(true);
  const [target, setTarget] = useState<number | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const aiming = useRef(false);
  const lastTop = useRef(0);
  const { rows } = output.loaded;
  const view = useVirtualRows({
    scroller,
    count: rows.length,
    rowKey: (index) => rows[index]?.offset ?? index,
    estimate: (index) => (rows[index]?.kind === "gap" ? GAP : ROW),
    anchor: "end",
    follow: false, // as somebody chose, below: another part may be loaded while the end was in view
    overscan: 20,
  });
  const numbers = useMemo(() => (numbered ? lineNumbers(output.loaded) : null), [numbered, output.loaded]);
  const widest = useMemo(
    () => (wraps ? 0 : rows.reduce((most, row) => (row.kind === "line" ? Math.max(most, row.text.length) : most), 0)),
    [rows, wraps],
  );
  const match = search.matches[current];

  const reveal = (offset: number): void => {
    setFollow(false);
    aiming.current = true;
    setTarget(offset);
    void output.show(offset);
  };
  const step = (by: number): void => {
    const count = search.matches.length;
    if (count === 0) return;
    if (current + by >= count && search.state === "many") return search.goOn();
    const next = (current + by + count) % count;
    setCurrent(next);
    reveal(search.matches[next]?.offset ?? 0);
  };
  const goTo = (place: "start" | "end"): void => {
    setFollow(place === "end");
    setTarget(place === "start" ? 0 : null);
    void output.show(place);
  };
  const first = search.matches[0]?.offset;
  const showFirst = useEffectEvent((_text: string, offset: number | undefined) => {
    setCurrent(0);
    if (offset !== undefined) reveal(offset);
  });
  useEffect(() => showFirst(wanted, first), [wanted, first]);
  const scrollToTarget = useEffectEvent((offset: number | null, loaded: readonly OutputRow[]) => {
    const index = offset === null || output.size === null ? -1 : rowAt(loaded, offset);
    if (index < 0) return;
    view.scrollTo(index, offset === 0 ? "start" : "center");
    setTarget(null);
  });
  useEffect(() => scrollToTarget(target, rows), [target, rows]);
  const stayAtEnd = useEffectEvent((on: boolean, count: number, _loaded: readonly OutputRow[], _wraps: boolean) => {
    if (on && count > 0) view.scrollTo(count - 1, "end");
  });
  useEffect(() => stayAtEnd(follow, rows.length, rows, wraps), [follow, rows, wraps]);
  useEffect(() => {
    const mark = aiming.current && target === null && scroller.current?.querySelector("mark[data-current]");
    if (!mark) return;
    aiming.current = false;
    mark.scrollIntoView({ block: "nearest", inline: "nearest" }); // it may be far to the right
  });
  const [top, bottom] = [view.rows[0]?.index ?? 0, view.rows.at(-1)?.index ?? 0];
  const loadNear = useEffectEvent((from: number, to: number, loaded: readonly OutputRow[]) => {
    if (loaded.length === 0 || target !== null) return;
    if (from < NEAR && !follow) output.grow("before");
    if (to > loaded.length - NEAR) output.grow("after");
  });
  useEffect(() => loadNear(top, bottom, rows), [top, bottom, rows]);

  const scrolled = (): void => {
    const box = scroller.current;
    if (!box || target !== null) return;
    const up = box.scrollTop < lastTop.current - 2;
    lastTop.current = box.scrollTop;
    const near = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
    if (up && !near) setFollow(false);
    else if (near && output.size !== null && output.loaded.to >= output.size) setFollow(true);
  };
  const key = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      n: () => step(1),
      N: () => step(-1),
      G: () => goTo("end"),
      g: () => goTo("start"),
      f: () => goTo("end"),
      w: () => toggleWrap(),
    }[event.key];
    if (!act) return;
    event.preventDefault(); // here these letters mean something else than on the page
    act();
  };
  const toggleWrap = (): void => {
    setWrap(!wraps);
    save("output.wrap", !wraps);
  };
  const toggleNumbers = (): void => {
    setNumbered(!numbered);
    save("output.lines", !numbered);
  };
  const gap = rows.find((row) => row.kind === "gap");
  return (
    <section className={styles.view} aria-label="Output">
      <div className={styles.bar}>
        <form
          className={styles.search}
          onSubmit={(event) => {
            event.preventDefault();
            step(1);
          }}
        >
          <label className={`${shared.field} ${styles.field}`}>
            <Icon name="search" />
            <input
              type="search"
              data-search
              className={shared.mono}
              placeholder="Search the output"
              aria-label="Search the output"
              maxLength={200}
              value={text}
              onChange={(event) => setText(event.target.value)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" || !event.shiftKey) return;
                event.preventDefault();
                step(-1);
              }}
            />
            <span className={styles.count} role="status">
              {text !== "" && countWords(search, current, text !== wanted)}
            </span>
          </label>
          <Button
            quiet
            icon
            aria-label="Previous match"
            disabled={search.matches.length === 0}
            onClick={() => step(-1)}
          >
            <Icon name="left" />
          </Button>
          <Button type="submit" quiet icon aria-label="Next match" disabled={search.matches.length === 0}>
            <Icon name="right" />
          </Button>
        </form>
        <span className={styles.size}>{sizeWords(task, output.size)}</span>
        <Segmented name="How lines are shown">
          <button type="button" aria-pressed={wraps} onClick={toggleWrap}>
            Wrap
          </button>
          <button
            type="button"
            aria-pressed={numbered}
            title="Line numbers instead of offsets in bytes"
            onClick={toggleNumbers}
          >
            Lines
          </button>
        </Segmented>
        <Segmented name="Position">
          <button type="button" onClick={() => goTo("start")}>
            Start
          </button>
          {gap && (
            <button type="button" onClick={() => reveal(gap.offset)}>
              Gap
            </button>
          )}
          <button type="button" onClick={() => goTo("end")} aria-pressed={follow}>
            {output.running ? "Follow" : "End"}
          </button>
        </Segmented>
      </div>
      {text !== "" && search.dropped && <DroppedNote gap={search.dropped} />}
      <div
        className={styles.lines}
        data-wrap={wraps || undefined}
        role="region"
        aria-label={`Output of ${task.title}`}
        tabIndex={0}
        ref={scroller}
        onScroll={scrolled}
        onKeyDown={key}
      >
        <OutputState output={output} />
        <div
          style={{
            paddingTop: view.above,
            paddingBottom: view.below,
            minWidth: wraps ? undefined : `calc(var(--gutter) + ${widest + 2}ch)`,
          }}
        >
          {view.rows.map(({ index, key: id }) => {
            const row = rows[index];
            if (!row) return null;
            return (
              <div key={id} ref={view.measure} data-index={index}>
                {row.kind === "gap" ? (
                  <GapBand gap={row} task={task.id} />
                ) : (
                  <LineView
                    row={row}
                    before={rows[index - 1]}
                    after={rows[index + 1]}
                    number={numbers ? (numbers[index] ?? null) : undefined}
                    wanted={wanted}
                    matches={search.matches}
                    current={
                      match !== undefined && match.offset >= row.offset && match.offset < row.offset + row.bytes
                        ? match
                        : null
                    }
                  />
                )}
              </div>
            );
          })}
        </div>
      </div>
      {!follow && output.running && (
        <Button className={styles.newer} onClick={() => goTo("end")}>
          New output
          <Icon name="down" />
        </Button>
      )}
    </section>
  );
}

/** What stands instead of lines. Nothing is said of an output that was not read. */
function OutputState({ output }: { readonly output: Output }): ReactNode {
  if (output.problem)
    return (
      <p className={styles.note} role="status">
        {output.problem} It is tried again{output.size === null ? "" : "; what was read stays"}.
      </p>
    );
  if (output.size === null) return <Loading />;
  if (output.size > 0) return null;
  return (
    <div className={styles.empty}>
      <Empty title={output.running ? "No output yet" : "It wrote nothing"}>
        Output is stored on disk and shown here, also after a restart.
      </Empty>
    </div>
  );
}

function DroppedNote({ gap }: { readonly gap: { readonly start: number; readonly end: number } }): ReactNode {
  return (
    <p className={styles.dropped}>
      Bytes {gap.start.toLocaleString("en")}–{(gap.end - 1).toLocaleString("en")} ({size(gap.end - gap.start)}) were
      dropped: nothing can be found there.
    </p>
  );
}

function sizeWords(task: TaskView, written: number | null): string {
  if (written === null) return "";
  const kept = written - task.dropped_bytes;
  return task.dropped_bytes > 0 ? `${size(written)} written, ${size(kept)} kept` : size(written);
}

function countWords(search: OutputSearch, current: number, settling: boolean): string {
  if (search.problem) return "no answer";
  const count = search.matches.length;
  const sign = search.state === "many" ? "+" : search.state === "searching" ? "…" : "";
  const total = `${count.toLocaleString("en")}${sign}`;
  if (count > 0) return `${(current + 1).toLocaleString("en")} of ${total}`;
  if (search.state === "complete" && !settling) return "none";
  const share = search.size > 0 ? Math.floor((100 * search.searched) / search.size) : 0;
  return share > 0 ? `searching, ${share} %` : "searching";
}
