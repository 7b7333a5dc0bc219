import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { TaskView } from "../api.gen";
import { Empty } from "../parts/Empty";
import { Icon } from "../parts/Icon";
import { Why } from "../parts/Why";
import { size } from "../words";
import { plain, spans } from "./ansi";
import { type Gap, type OutputRow, useOutput } from "./output";

const ROW = 19;
const GAP = 38;
const LONG = 8192;

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
    return wanted ? rows.flatMap((row, index) => ("text" in row && plain(row.text).toLowerCase().includes(wanted) ? [index] : [])) : [];
  }, [rows, text]);
  const top = (index: number): number => index * ROW + gaps.filter((gap) => gap < index).length * (GAP - ROW);
  const height = top(rows.length);
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
    if (event.key === "n") find(1);
    else if (event.key === "N") find(-1);
    else if (event.key === "G") setFollow(true);
    else if (event.key === "g") to(0);
    else if (event.key === "f") setFollow(!follow);
  };
  const kept = output.size - task.dropped_bytes;
  return (
    <section className="viewer" aria-label="Output">
      <div className="filters">
        <form className="field w-72" onSubmit={(event) => { event.preventDefault(); find(1); }}>
          <Icon name="search" />
          <input type="search" data-search className="mono" placeholder="Search the output" aria-label="Search the output" value={text} onChange={(event) => { setText(event.target.value); setHit(0); }} />
          {text && <span className="faint">{hits.length === 0 ? "none" : `${hit + 1} of ${hits.length}`}</span>}
        </form>
        <button type="button" className="btn quiet icon" aria-label="Previous match" disabled={hits.length === 0} onClick={() => find(-1)}><Icon name="left" /></button>
        <button type="button" className="btn quiet icon" aria-label="Next match" disabled={hits.length === 0} onClick={() => find(1)}><Icon name="right" /></button>
        <span className="grow" />
        <span className="faint wide">{task.dropped_bytes > 0 ? `${size(output.size)} written, ${size(kept)} kept` : size(output.size)}</span>
        <div className="seg" role="group" aria-label="Position">
          <button type="button" onClick={() => to(0)}>Start</button>
          {gaps.length > 0 && <button type="button" onClick={() => to(gaps[0] ?? 0)}>Gap</button>}
          <button type="button" onClick={() => setFollow(true)} aria-pressed={follow}>{task.state === "running" ? "Follow" : "End"}</button>
        </div>
      </div>
      <div className="term" role="region" aria-label={`Output of ${task.title}`} tabIndex={0} ref={box} onScroll={scrolled} onKeyDown={key}>
        {output.from > 0 && (
          <div className="gap !static"><span className="grow">Only the end is shown, from byte {output.from.toLocaleString("en")} on.</span>
            <button type="button" className="btn small" onClick={() => setFromStart(true)}>Load from the start</button></div>
        )}
        {output.problem && <p className="eof px-5">{output.problem}</p>}
        {!output.loading && rows.length === 0 && !output.problem && (
          <Empty title={task.state === "running" ? "No output yet" : "It wrote nothing"}>What a command writes is kept on disk and shown here, also after a restart.</Empty>
        )}
        <div className="space" style={{ height }}>
          {rows.slice(first, last).map((row, index) => (
            <Row key={first + index} row={row} top={top(first + index)} wanted={text.toLowerCase()} current={hits[hit] === first + index} task={task.id} />
          ))}
        </div>
      </div>
      {!follow && task.state === "running" && <button type="button" className="btn newer !bottom-4" onClick={() => setFollow(true)}>New output<Icon name="down" /></button>}
    </section>
  );
}

function Row({ row, top, wanted, current, task }: {
  readonly row: OutputRow; readonly top: number; readonly wanted: string; readonly current: boolean; readonly task: string;
}): ReactNode {
  const [whole, setWhole] = useState(false);
  if ("gap" in row) return <GapBand gap={row.gap} top={top} task={task} />;
  const long = row.text.length > LONG && !whole;
  const shown = long ? row.text.slice(0, LONG) : row.text;
  return (
    <div className={`row ${current ? "cur" : ""}`} style={{ top }}>
      <i>{row.offset?.toLocaleString("en") ?? ""}</i>
      <span>
        {spans(shown).map((span, index) => <span key={index} className={span.look}>{wanted ? marked(span.text, wanted) : span.text}</span>)}
        {long && <button type="button" className="why" onClick={() => setWhole(true)}>show the rest</button>}
      </span>
    </div>
  );
}

function marked(text: string, wanted: string): ReactNode {
  const parts: ReactNode[] = [];
  const lower = text.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), <mark key={at} className="hit">{text.slice(at, at + wanted.length)}</mark>);
    from = at + wanted.length;
  }
  return [...parts, text.slice(from)];
}

function GapBand({ gap, top, task }: { readonly gap: Gap; readonly top: number; readonly task: string }): ReactNode {
  return (
    <div className="gap" role="note" style={{ top }}>
      <Icon name="unknown" />
      <span className="grow cut">
        <b>bytes {gap.start.toLocaleString("en")}–{(gap.end - 1).toLocaleString("en")} dropped ({size(gap.end - gap.start)})</b>{" "}
        <span className="muted">The beginning and the end are kept. Offsets did not shift.</span>
      </span>
      <Why of="task" id={task} />
    </div>
  );
}
