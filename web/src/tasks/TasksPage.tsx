import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { call } from "../api/http";
import { knownValue } from "../api/known";
import type { List } from "../api/pagedList";
import type { OutputHit, TaskView } from "../api/types.gen";
import { Banners } from "../chat/Banner";
import { useSessions } from "../chat/queries";
import { useOverview } from "../shell/queries";
import { archiveWords, DrawerButton } from "../shell/TasksDrawer";
import { day, size } from "../text";
import { Chip } from "../ui/Chip";
import { Empty, Loading } from "../ui/Empty";
import { useSettled, useTitle } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { STALE, taskState } from "../ui/states";
import { Since, Time } from "../ui/Time";
import { toastError } from "../ui/toasts";
import { Why } from "../ui/Why";
import { useRows } from "../ui/window";
import { Prune } from "./Prune";
import { useRunning, useTasks } from "./queries";
import { StaleNote } from "./StaleNote";

const STATES = ["running", "failed", "stopped", "lost", "done"] as const;
const GUESS = { band: 28, row: 36 };

const NONE: readonly TaskView[] = [];

export default function TasksPage(): ReactNode {
  const [state, setState] = useState("");
  const [kind, setKind] = useState("");
  const [text, setText] = useState("");
  const wanted = useSettled(text.trim(), 250);
  const tasks = useTasks(state, kind, wanted);
  const hits = useOutputSearch(wanted);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [pruning, setPruning] = useState(false);
  const totals = knownValue(useOverview())?.tasks ?? [];
  useTitle("Tasks");
  const of = (name: string): number => totals.find((one) => one.state === name)?.count ?? 0;
  const act = (what: "stop" | "pin"): void => {
    for (const id of chosen)
      void call(what === "stop" ? "POST /v1/tasks/{id}/stop" : "POST /v1/tasks/{id}/pin", { path: { id } }).catch(
        toastError,
      );
    setChosen(new Set());
  };
  const none = tasks.loaded && tasks.rows.length === 0 && hits.length === 0;
  const empty = none && !state && !kind && !wanted;
  return (
    <div className="page">
      <div className="bar">
        <h1>Tasks</h1>
        <span className="faint wide">{archiveWords(totals)}</span>
        <span className="grow" />
        {chosen.size > 0 && (
          <>
            <button type="button" className="btn danger" onClick={() => act("stop")}>
              <Icon name="stop" />
              Stop {chosen.size}
            </button>
            <button type="button" className="btn" onClick={() => act("pin")}>
              <Icon name="pin" />
              Pin {chosen.size}
            </button>
          </>
        )}
        <button type="button" className="btn" onClick={() => setPruning(true)}>
          Prune…
        </button>
        <DrawerButton />
      </div>
      <Banners />
      <div className="filters">
        <div className="seg" role="group" aria-label="State">
          <button type="button" aria-pressed={!state} onClick={() => setState("")}>
            All
          </button>
          {STATES.map((name) => (
            <button key={name} type="button" aria-pressed={state === name} onClick={() => setState(name)}>
              {name[0]?.toUpperCase()}
              {name.slice(1)} {of(name)}
            </button>
          ))}
        </div>
        <div className="seg" role="group" aria-label="Kind">
          {[
            ["", "Any kind"],
            ["process", "Process"],
            ["agent", "Agent"],
            ["card", "Card"],
          ].map(([name = "", word = ""]) => (
            <button key={word} type="button" aria-pressed={kind === name} onClick={() => setKind(name)}>
              {word}
            </button>
          ))}
        </div>
        <span className="grow" />
        <div className="field w-80">
          <Icon name="search" />
          <input
            type="search"
            data-search
            placeholder="Search commands, prompts and output"
            aria-label="Search commands, prompts and output"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          <span className="kbd wide">/</span>
        </div>
      </div>
      <StaleNote />
      {tasks.isLoading ? (
        <Loading />
      ) : none ? (
        <Empty title={empty ? "No task yet" : "Nothing fits"}>
          {empty
            ? "Background work is listed here with its output until it is pruned. “Run in background” next to Send starts a task."
            : "Choose another state or kind, or search for something else."}
        </Empty>
      ) : (
        <Table tasks={tasks} hits={hits} chosen={chosen} onChoose={setChosen} />
      )}
      {pruning && <Prune onClose={() => setPruning(false)} />}
    </div>
  );
}

const NOTHING: readonly OutputHit[] = [];

function useOutputSearch(q: string): readonly OutputHit[] {
  const found = useQuery({
    queryKey: ["output", q],
    enabled: q.length > 2,
    queryFn: () => call("GET /v1/tasks/search", { query: { q, limit: 100 } }),
  });
  return (q.length > 2 ? found.data?.hits : undefined) ?? NOTHING;
}

type Line =
  | { readonly kind: "band"; readonly name: string }
  | { readonly kind: "row"; readonly task: TaskView }
  | { readonly kind: "row"; readonly hit: OutputHit };

/** What runs, then the others by the day of their start, then where else the text was found. */
function inOrder(tasks: readonly TaskView[], hits: readonly OutputHit[]): readonly Line[] {
  const open = tasks.filter((task) => task.state === "running");
  const lines: Line[] =
    open.length > 0
      ? [{ kind: "band", name: `Open ${open.length}` }, ...open.map((task) => ({ kind: "row", task }) as const)]
      : [];
  let before = "";
  for (const task of tasks) {
    if (task.state === "running") continue;
    const name = `Started ${day(task.started_at).replace("Today", "today").replace("Yesterday", "yesterday")}`;
    if (name !== before) lines.push({ kind: "band", name });
    before = name;
    lines.push({ kind: "row", task });
  }
  const known = new Set(tasks.map((task) => task.id));
  const others = hits.filter((hit) => !known.has(hit.task));
  if (others.length > 0)
    lines.push(
      { kind: "band", name: `In the output of ${others.length}` },
      ...others.map((hit) => ({ kind: "row", hit }) as const),
    );
  return lines;
}

function Table({
  tasks,
  hits,
  chosen,
  onChoose,
}: {
  readonly tasks: List<TaskView>;
  readonly hits: readonly OutputHit[];
  readonly chosen: ReadonlySet<string>;
  readonly onChoose: (chosen: ReadonlySet<string>) => void;
}): ReactNode {
  const { rows, more, loadMore } = tasks;
  const measured = knownValue(useRunning()) ?? NONE;
  const sessions = useSessions(false).rows;
  const box = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => {
    const now = new Map(measured.map((task) => [task.id, task])); // what it is doing is measured more often than it changes
    return inOrder(
      rows.map((task) => (task.state === "running" ? (now.get(task.id) ?? task) : task)),
      more ? NOTHING : hits,
    );
  }, [rows, measured, more, hits]);
  const kinds = useMemo(() => lines.map((line) => line.kind), [lines]);
  const shown = useRows(box, kinds, GUESS);
  useEffect(() => {
    if (more && shown.last > lines.length - 20) loadMore();
  }, [more, shown.last, lines.length, loadMore]);
  const toggle = (id: string): void => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    onChoose(next);
  };
  const titleOf = (session: string): string => sessions.find((row) => row.id === session)?.title || "a session";
  return (
    <div className="grid-wrap" ref={box}>
      <table aria-rowcount={more ? -1 : lines.length + 1}>
        <colgroup>
          <col className="w-10" />
          <col className="w-36" />
          <col />
          <col className="w-22" />
          <col className="w-52" />
          <col className="w-26" />
          <col className="w-26" />
          <col className="w-22" />
          <col className="w-32" />
        </colgroup>
        <thead>
          <tr>
            <th>
              <span className="sr">Choose</span>
            </th>
            <th>State</th>
            <th>Task</th>
            <th>Kind</th>
            <th>From</th>
            <th className="num">Started</th>
            <th className="num">Lasted</th>
            <th className="num">Exit</th>
            <th className="num">Output</th>
          </tr>
        </thead>
        <tbody>
          {shown.above > 0 && (
            <tr className="space" aria-hidden="true">
              <td colSpan={9} style={{ height: shown.above }} />
            </tr>
          )}
          {lines.slice(shown.first, shown.last).map((line, index) => {
            const place = shown.first + index + 2;
            if (line.kind === "band")
              return (
                <tr key={line.name} className="band" data-kind="band" aria-rowindex={place}>
                  <td colSpan={9}>{line.name}</td>
                </tr>
              );
            if ("hit" in line) return <HitRow key={line.hit.task} hit={line.hit} place={place} />;
            const { task } = line;
            return (
              <Row
                key={task.id}
                task={task}
                place={place}
                from={titleOf(task.session)}
                chosen={chosen.has(task.id)}
                onToggle={() => toggle(task.id)}
              />
            );
          })}
          {shown.below > 0 && (
            <tr className="space" aria-hidden="true">
              <td colSpan={9} style={{ height: shown.below }} />
            </tr>
          )}
        </tbody>
      </table>
      {more && (
        <p className="faint px-4 py-2" role="status">
          Loading more…
        </p>
      )}
    </div>
  );
}

function Row({
  task,
  place,
  from,
  chosen,
  onToggle,
}: {
  readonly task: TaskView;
  readonly place: number;
  readonly from: string;
  readonly chosen: boolean;
  readonly onToggle: () => void;
}): ReactNode {
  const [, go] = useLocation();
  return (
    <tr
      className={chosen ? "sel" : ""}
      data-kind="row"
      data-why={`task/${task.id}`}
      aria-rowindex={place}
      onClick={(event) => {
        if (!(event.target as HTMLElement).closest("a, button, input, .pop")) go(`/tasks/${task.id}`);
      }}
    >
      <td>
        <input type="checkbox" aria-label={`Choose ${task.title}`} checked={chosen} onChange={onToggle} />
      </td>
      <td>
        <Chip state={task.stale ? STALE : taskState(task)} />
      </td>
      <td>
        <Link
          className={`task ${task.kind === "process" ? "mono" : ""}`}
          href={`/tasks/${task.id}`}
          title={task.stale ? `${task.command}\nStale: ${task.stale}` : task.command}
        >
          {task.title}
        </Link>
      </td>
      <td className="muted">{task.kind}</td>
      <td className="muted">{task.session ? <Link href={`/s/${task.session}`}>{from}</Link> : "You, in background"}</td>
      <td className="num">
        <Time at={task.started_at} />
      </td>
      <td className="num">
        <Since at={task.started_at} until={task.finished_at} />
      </td>
      <td className="num">{task.exit_code ?? (task.state === "lost" ? "unknown" : "–")}</td>
      <td className="num">
        {task.state === "failed" || task.state === "lost" ? <Why of="task" id={task.id} /> : null}{" "}
        {task.output_bytes > 0 ? size(task.output_bytes) : "–"}
      </td>
    </tr>
  );
}

/** Found in what it wrote. */
function HitRow({ hit, place }: { readonly hit: OutputHit; readonly place: number }): ReactNode {
  return (
    <tr data-kind="row" data-why={`task/${hit.task}`} aria-rowindex={place}>
      <td />
      <td className="muted">in the output</td>
      <td>
        <Link className="task mono" href={`/tasks/${hit.task}`}>
          {hit.title}
        </Link>
      </td>
      <td colSpan={5} className="muted mono">
        {hit.snippet}
      </td>
      <td className="num">
        <Time at={hit.at} />
      </td>
    </tr>
  );
}
