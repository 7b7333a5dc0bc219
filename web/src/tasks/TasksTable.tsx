/** The table of tasks. Where room is short, columns give way in order of importance; a phone has two lines a task. */
import { type KeyboardEvent, type ReactNode, type RefObject, useEffect, useMemo } from "react";
import { Link, useLocation } from "wouter";
import { knownValue } from "../api/known";
import type { List } from "../api/pagedList";
import type { OutputHit, TaskView } from "../api/types.gen";
import { NodeName } from "../nodes/NodeName";
import { day, size, taskName } from "../text";
import { Menu } from "../ui/Menu";
import shared from "../ui/shared.module.css";
import { Since, Time } from "../ui/Time";
import { useVirtualRows } from "../ui/virtualRows";
import { Why } from "../ui/Why";
import { useRunning } from "./queries";
import { StartedBy } from "./StartedBy";
import { TaskChip } from "./TaskChip";
import styles from "./TasksPage.module.css";
import { exitWords, isOpen } from "./taskWords";
import { useTaskActions } from "./useTaskActions";

const HEAD = 32;
const BAND = 28;
const ROW = 37;
const NO_TASKS: readonly TaskView[] = [];
const NO_HITS: readonly OutputHit[] = [];

type Line =
  | { readonly kind: "band"; readonly name: string }
  | { readonly kind: "task"; readonly task: TaskView }
  | { readonly kind: "hit"; readonly hit: OutputHit };

export function TasksTable({
  tasks,
  hits,
  chosen,
  onChoose,
  box,
}: {
  readonly tasks: List<TaskView>;
  /** Undefined before they are known. */
  readonly hits: readonly OutputHit[] | undefined;
  readonly chosen: ReadonlySet<string>;
  readonly onChoose: (chosen: ReadonlySet<string>) => void;
  readonly box: RefObject<HTMLDivElement | null>;
}): ReactNode {
  const { rows, more, loadMore } = tasks;
  const measured = knownValue(useRunning()) ?? NO_TASKS;
  const lines = useMemo(() => {
    // What it is doing is measured more often than it changes.
    const now = new Map(measured.map((task) => [task.id, task]));
    const shown = rows.map((task) => (isOpen(task) ? (now.get(task.id) ?? task) : task));
    return inOrder(shown, (more ? undefined : hits) ?? NO_HITS);
  }, [rows, measured, more, hits]);
  const view = useVirtualRows({
    scroller: box,
    count: lines.length,
    rowKey: (index) => keyOf(lines[index]),
    estimate: (index) => (lines[index]?.kind === "band" ? BAND : ROW),
    margin: HEAD,
  });
  const last = view.rows.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more && last > lines.length - 20) loadMore();
  }, [more, last, lines.length, loadMore]);
  const toggle = (id: string): void => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    onChoose(next);
  };
  const all = rows.length > 0 && rows.every((task) => chosen.has(task.id));
  return (
    <div className={styles.box} ref={box} tabIndex={0} role="region" aria-label="Tasks">
      <table className={styles.table} aria-rowcount={more ? -1 : lines.length + 1}>
        <thead>
          <tr>
            <th className={styles.check}>
              <input
                type="checkbox"
                aria-label={all ? "Choose none" : "Choose all that are loaded"}
                checked={all}
                onChange={() => onChoose(all ? new Set() : new Set(rows.map((task) => task.id)))}
              />
            </th>
            <th>State</th>
            <th className={styles.name}>Task</th>
            <th className={styles.kind}>Kind</th>
            <th className={styles.from}>From</th>
            <th className={styles.started}>Started</th>
            <th className={styles.lasted}>Lasted</th>
            <th className={styles.exit}>Exit</th>
            <th className={styles.output}>Output</th>
            <th className={styles.menu}>
              <span className={shared.srOnly}>Actions</span>
            </th>
          </tr>
        </thead>
        <tbody style={{ paddingTop: view.above, paddingBottom: view.below }}>
          {view.rows.map(({ index, key }) => {
            const line = lines[index];
            if (!line) return null;
            const place = { "data-index": index, "aria-rowindex": index + 2, ref: view.measure };
            if (line.kind === "band")
              return (
                <tr key={key} className={styles.band} {...place}>
                  <td>{line.name}</td>
                </tr>
              );
            if (line.kind === "hit") return <HitRow key={key} hit={line.hit} place={place} />;
            const { task } = line;
            return (
              <TaskRow
                key={key}
                task={task}
                place={place}
                chosen={chosen.has(task.id)}
                onToggle={() => toggle(task.id)}
              />
            );
          })}
        </tbody>
      </table>
      {more && (
        <p className={styles.more} role="status">
          Loading more…
        </p>
      )}
    </div>
  );
}

const keyOf = (line: Line | undefined): string =>
  line === undefined
    ? ""
    : line.kind === "band"
      ? line.name
      : line.kind === "task"
        ? line.task.id
        : `hit ${line.hit.task}`;

/** What runs, then the others by the day of their start, then where else the text was found. */
function inOrder(tasks: readonly TaskView[], hits: readonly OutputHit[]): readonly Line[] {
  const open = tasks.filter(isOpen);
  const lines: Line[] = open.length > 0 ? [{ kind: "band", name: `Open ${open.length}` }] : [];
  lines.push(...open.map((task) => ({ kind: "task", task }) as const));
  let before = "";
  for (const task of tasks) {
    if (isOpen(task)) continue;
    const name = `Started ${day(task.started_at).replace("Today", "today").replace("Yesterday", "yesterday")}`;
    if (name !== before) lines.push({ kind: "band", name });
    before = name;
    lines.push({ kind: "task", task });
  }
  const known = new Set(tasks.map((task) => task.id));
  const others = hits.filter((hit) => !known.has(hit.task));
  if (others.length > 0) lines.push({ kind: "band", name: `In the output of ${others.length}` });
  lines.push(...others.map((hit) => ({ kind: "hit", hit }) as const));
  return lines;
}

interface Place {
  readonly "data-index": number;
  readonly "aria-rowindex": number;
  readonly ref: (element: Element | null) => void;
}

function TaskRow({
  task,
  place,
  chosen,
  onToggle,
}: {
  readonly task: TaskView;
  readonly place: Place;
  readonly chosen: boolean;
  readonly onToggle: () => void;
}): ReactNode {
  const [, go] = useLocation();
  const actions = useTaskActions(task);
  const open = (target: EventTarget): void => {
    if (!(target as HTMLElement).closest("a, button, input, [role=menu], [role=dialog]")) go(`/tasks/${task.id}`);
  };
  const key = (event: KeyboardEvent): void => {
    if (event.key !== "x" || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    onToggle();
  };
  const failed = task.state === "failed" || task.state === "lost";
  return (
    <tr
      className={chosen ? styles.chosen : ""}
      data-why={`task/${task.id}`}
      onClick={(event) => open(event.target)}
      onKeyDown={key}
      {...place}
    >
      <td className={styles.check}>
        <input type="checkbox" aria-label={`Choose ${task.title}`} checked={chosen} onChange={onToggle} />
      </td>
      <td>
        <TaskChip task={task} />
      </td>
      <td className={styles.name}>
        <span className={styles.called}>
          <Link
            data-row-link
            className={`${styles.link} ${shared.cut} ${task.kind === "process" ? styles.command : ""}`}
            href={`/tasks/${task.id}`}
            dir="auto"
            title={task.stale ? `${task.command}\nStale: ${task.stale}` : task.command}
          >
            {taskName(task)}
          </Link>
          <NodeName node={task.node} />
        </span>
        <span className={styles.facts}>
          <Time at={task.started_at} /> · <Since at={task.started_at} until={task.finished_at} />
          {task.exit_code !== null && ` · exit ${task.exit_code}`} · <StartedBy task={task} />
        </span>
      </td>
      <td className={styles.kind}>{task.kind}</td>
      <td className={styles.from}>
        <StartedBy task={task} />
      </td>
      <td className={styles.started}>
        <Time at={task.started_at} />
      </td>
      <td className={styles.lasted}>
        <Since at={task.started_at} until={task.finished_at} />
      </td>
      <td className={styles.exit}>
        {exitWords(task)} {failed && <Why of="task" id={task.id} />}
      </td>
      <td className={styles.output}>{task.output_bytes > 0 ? size(task.output_bytes) : "–"}</td>
      <td className={styles.menu}>
        <Menu name={`Actions for ${task.title}`} entries={actions.entries} small />
        {actions.question}
      </td>
    </tr>
  );
}

/** Found in what it wrote. */
function HitRow({ hit, place }: { readonly hit: OutputHit; readonly place: Place }): ReactNode {
  return (
    <tr data-why={`task/${hit.task}`} {...place}>
      <td className={styles.check} />
      <td>
        <span className={shared.muted}>in the output</span>
      </td>
      <td className={styles.name}>
        <Link data-row-link className={`${styles.link} ${styles.command}`} href={`/tasks/${hit.task}`}>
          {hit.title}
        </Link>
        <span className={`${shared.mono} ${styles.facts}`}>{hit.snippet}</span>
      </td>
      <td className={`${shared.mono} ${styles.snippet}`}>{hit.snippet}</td>
      <td className={styles.menu} />
    </tr>
  );
}
