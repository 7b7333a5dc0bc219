import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { TaskView } from "../api/types.gen";
import { size } from "../text";
import { visible } from "../ui/blocks";
import { Empty } from "../ui/Empty";
import { useModal } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { Why } from "../ui/Why";
import { plain, spans } from "./ansi";
import { type Gap, type OutputRow, useOutput } from "./output";

const ROW = 19;
const GAP = 38;
const LONG = 8192;
const AT_ONCE = 65_536;

export function OutputView({ task }: { readonly task: TaskView }): ReactNode {
  const [fromStart, setFromStart] = useState(false);
  const output = useOutput(task.id, fromStart);
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [follow, setFollow] = useState(true);
  const [text, setText] = useState("");
  const [hit, setHit] = useState(0);
  const rows = output.rows;
  const gaps = useMemo(() => rows.flatMap((row, index) => ("gap" in row ? [index] : [])), [rows]);
  const hits = useMemo(() => {
    const wanted = text.toLowerCase();
    return wanted
      ? rows.flatMap((row, index) => ("text" in row && plain(row.text).toLowerCase().includes(wanted) ? [index] : []))
      : [];
  }, [rows, text]);
  const top = (index: number): number => index * ROW + gaps.filter((gap) => gap < index).length * (GAP - ROW);
  const height = top(rows.length);
  const widest = useMemo(
    () => rows.reduce((most, row) => Math.max(most, "text" in row ? Math.min(row.text.length, LONG) : 0), 0),
    [rows],
  );
  const first = Math.max(0, Math.floor(view.top / ROW) - gaps.length - 20);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / ROW) + 20);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setView((before) => ({ ...before, height: element.clientHeight })));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [follow, height]);

  const scrolled = (): void => {
    const element = box.current;
    if (!element) return;
    setView({ top: element.scrollTop, height: element.clientHeight });
    setFollow(element.scrollHeight - element.scrollTop - element.clientHeight < 24);
  };
  const to = (index: number): void => {
    setFollow(false);
    if (box.current) box.current.scrollTop = Math.max(0, top(index) - box.current.clientHeight / 3);
  };
  const find = (step: number): void => {
    if (hits.length === 0) return;
    const next = (hit + step + hits.length) % hits.length;
    setHit(next);
    to(hits[next] ?? 0);
  };
  const key = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      n: () => find(1),
      N: () => find(-1),
      G: () => setFollow(true),
      g: () => to(0),
      f: () => setFollow(!follow),
    }[event.key];
    if (!act) return;
    event.preventDefault(); // here these letters mean something else than on the page
    act();
  };
  const kept = output.size - task.dropped_bytes;
  return (
    <section className="viewer" aria-label="Output">
      <div className="filters">
        <form
          className="field w-72"
          onSubmit={(event) => {
            event.preventDefault();
            find(1);
          }}
        >
          <Icon name="search" />
          <input
            type="search"
            data-search
            className="mono"
            placeholder="Search the output"
            aria-label="Search the output"
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              setHit(0);
            }}
          />
          {text && <span className="faint">{hits.length === 0 ? "none" : `${hit + 1} of ${hits.length}`}</span>}
        </form>
        <button
          type="button"
          className="btn quiet icon"
          aria-label="Previous match"
          disabled={hits.length === 0}
          onClick={() => find(-1)}
        >
          <Icon name="left" />
        </button>
        <button
          type="button"
          className="btn quiet icon"
          aria-label="Next match"
          disabled={hits.length === 0}
          onClick={() => find(1)}
        >
          <Icon name="right" />
        </button>
        <span className="grow" />
        <span className="faint wide">
          {task.dropped_bytes > 0 ? `${size(output.size)} written, ${size(kept)} kept` : size(output.size)}
        </span>
        <div className="seg" role="group" aria-label="Position">
          <button type="button" onClick={() => to(0)}>
            Start
          </button>
          {gaps.length > 0 && (
            <button type="button" onClick={() => to(gaps[0] ?? 0)}>
              Gap
            </button>
          )}
          <button type="button" onClick={() => setFollow(true)} aria-pressed={follow}>
            {task.state === "running" ? "Follow" : "End"}
          </button>
        </div>
      </div>
      <div
        className="term"
        role="region"
        aria-label={`Output of ${task.title}`}
        tabIndex={0}
        ref={box}
        onScroll={scrolled}
        onKeyDown={key}
      >
        {output.from > 0 && (
          <div className="gap !static">
            <span className="grow">Only the end is shown, from byte {output.from.toLocaleString("en")} on.</span>
            <button type="button" className="btn small" onClick={() => setFromStart(true)}>
              Load from the start
            </button>
          </div>
        )}
        {output.problem && <p className="eof px-5">{output.problem}</p>}
        {!output.loading && rows.length === 0 && !output.problem && (
          <Empty title={task.state === "running" ? "No output yet" : "It wrote nothing"}>
            Output is stored on disk and shown here, also after a restart.
          </Empty>
        )}
        <div className="space" style={{ height, minWidth: `calc(var(--gutter) + ${widest + 4}ch)` }}>
          {rows.slice(first, last).map((row, index) => (
            <Row
              key={first + index}
              row={row}
              top={top(first + index)}
              wanted={text.toLowerCase()}
              current={hits[hit] === first + index}
              task={task.id}
            />
          ))}
        </div>
      </div>
      {!follow && task.state === "running" && (
        <button type="button" className="btn newer !bottom-4" onClick={() => setFollow(true)}>
          New output
          <Icon name="down" />
        </button>
      )}
    </section>
  );
}

function Row({
  row,
  top,
  wanted,
  current,
  task,
}: {
  readonly row: OutputRow;
  readonly top: number;
  readonly wanted: string;
  readonly current: boolean;
  readonly task: string;
}): ReactNode {
  const [whole, setWhole] = useState(false);
  if ("gap" in row) return <GapBand gap={row.gap} top={top} task={task} />;
  const long = row.text.length > LONG;
  const shown = long ? row.text.slice(0, LONG) : row.text;
  return (
    <div className={`row ${current ? "cur" : ""}`} style={{ top }}>
      <i>{row.offset?.toLocaleString("en") ?? ""}</i>
      <span>
        {spans(shown).map((span, index) => (
          <span key={index} className={span.look}>
            {wanted ? marked(span.text, wanted) : span.text}
          </span>
        ))}
      </span>
      {long && (
        <button type="button" className="why rest" onClick={() => setWhole(true)}>
          {size(row.text.length)} in this line, show the rest
        </button>
      )}
      {whole && <WholeLine text={plain(row.text)} onClose={() => setWhole(false)} />}
    </div>
  );
}

/** A line that is too long for one: in pieces, wrapped. */
function WholeLine({ text, onClose }: { readonly text: string; readonly onClose: () => void }): ReactNode {
  const [from, setFrom] = useState(0);
  const to = Math.min(text.length, from + AT_ONCE);
  return (
    <dialog ref={useModal(".acts button:last-child")} aria-label="The whole line" className="whole" onClose={onClose}>
      <pre tabIndex={0}>{visible(text.slice(from, to))}</pre>
      <div className="acts">
        <span className="faint grow">
          Characters {(from + 1).toLocaleString("en")} to {to.toLocaleString("en")} of{" "}
          {text.length.toLocaleString("en")}
        </span>
        <button
          type="button"
          className="btn"
          disabled={from === 0}
          onClick={() => setFrom(Math.max(0, from - AT_ONCE))}
        >
          Before
        </button>
        <button type="button" className="btn" disabled={to >= text.length} onClick={() => setFrom(to)}>
          After
        </button>
        <button type="button" className="btn" onClick={onClose}>
          Close
        </button>
      </div>
    </dialog>
  );
}

function marked(text: string, wanted: string): ReactNode {
  const parts: ReactNode[] = [];
  const lower = text.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    parts.push(
      text.slice(from, at),
      <mark key={at} className="hit">
        {text.slice(at, at + wanted.length)}
      </mark>,
    );
    from = at + wanted.length;
  }
  return [...parts, text.slice(from)];
}

function GapBand({ gap, top, task }: { readonly gap: Gap; readonly top: number; readonly task: string }): ReactNode {
  return (
    <div className="gap" role="note" style={{ top }}>
      <Icon name="unknown" />
      <span className="grow cut">
        <b>
          bytes {gap.start.toLocaleString("en")}–{(gap.end - 1).toLocaleString("en")} dropped (
          {size(gap.end - gap.start)})
        </b>{" "}
        <span className="muted">The beginning and the end are kept, at their original offsets.</span>
      </span>
      <Why of="task" id={task} />
    </div>
  );
}
