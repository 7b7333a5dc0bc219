import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import type { TaskView } from "../api.gen";
import { Banners } from "../chat/Banner";
import { call } from "../net/http";
import { queries, useSessions, useTasks } from "../net/queries";
import { Chip } from "../parts/Chip";
import { Empty, Loading } from "../parts/Empty";
import { useTitle } from "../parts/hooks";
import { Icon } from "../parts/Icon";
import { taskState } from "../parts/states";
import { Since, Time } from "../parts/Time";
import { complain } from "../parts/toasts";
import { Why } from "../parts/Why";
import { DrawerButton } from "../shell/drawer";
import { day, plural, size } from "../words";
import { Prune } from "./Prune";

const STATES = ["running", "failed", "stopped", "lost", "done"] as const;

export default function TasksPage(): ReactNode {
  const tasks = useTasks();
  const [state, setState] = useState("");
  const [kind, setKind] = useState("");
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [pruning, setPruning] = useState(false);
  const inOutput = useOutputSearch(text);
  useTitle("Tasks");
  const all = tasks.data?.tasks ?? [];
  const wanted = text.trim().toLowerCase();
  const shown = all.filter((task) => (!state || task.state === state) && (!kind || task.kind === kind)
    && (!wanted || `${task.title} ${task.command}`.toLowerCase().includes(wanted) || inOutput.has(task.id)));
  const of = (name: string): number => all.filter((task) => task.state === name).length;
  const act = (what: "stop" | "pin"): void => {
    for (const id of chosen) void call(what === "stop" ? "POST /v1/tasks/{id}/stop" : "POST /v1/tasks/{id}/pin", { path: { id } })
      .then(() => queries.invalidateQueries({ queryKey: ["tasks"] }), complain);
    setChosen(new Set());
  };
  return (
    <div className="page">
      <div className="bar">
        <h1>Tasks</h1>
        <span className="faint wide">{plural(all.length, "task")} · {size(all.reduce((sum, task) => sum + task.output_bytes - task.dropped_bytes, 0))} of output</span>
        <span className="grow" />
        {chosen.size > 0 && <><button type="button" className="btn danger" onClick={() => act("stop")}><Icon name="stop" />Stop {chosen.size}</button><button type="button" className="btn" onClick={() => act("pin")}><Icon name="pin" />Pin {chosen.size}</button></>}
        <button type="button" className="btn" onClick={() => setPruning(true)}>Prune…</button>
        <DrawerButton />
      </div>
      <Banners />
      <div className="filters">
        <div className="seg" role="group" aria-label="State">
          <button type="button" aria-pressed={!state} onClick={() => setState("")}>All</button>
          {STATES.map((name) => <button key={name} type="button" aria-pressed={state === name} onClick={() => setState(name)}>{name[0]?.toUpperCase()}{name.slice(1)} {of(name)}</button>)}
        </div>
        <div className="seg" role="group" aria-label="Kind">
          {[["", "Any kind"], ["process", "Process"], ["agent", "Agent"]].map(([name = "", word = ""]) => <button key={word} type="button" aria-pressed={kind === name} onClick={() => setKind(name)}>{word}</button>)}
        </div>
        <span className="grow" />
        <div className="field w-80"><Icon name="search" /><input type="search" data-search placeholder="Search commands, prompts and output" aria-label="Search commands, prompts and output" value={text} onChange={(event) => setText(event.target.value)} /><span className="kbd wide">/</span></div>
      </div>
      {tasks.isLoading ? <Loading /> : shown.length === 0 ? (
        <Empty title={all.length === 0 ? "No task yet" : "Nothing fits"}>{all.length === 0 ? "Whatever runs in the background is kept here with its output, until it is pruned. “Run in background” beside Send starts one." : "Choose another state or kind, or search for something else."}</Empty>
      ) : <Table tasks={shown} chosen={chosen} onChoose={setChosen} />}
      {pruning && <Prune onClose={() => setPruning(false)} />}
    </div>
  );
}

function useOutputSearch(text: string): ReadonlySet<string> {
  const [q, setQ] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setQ(text.trim()), 250);
    return () => clearTimeout(timer);
  }, [text]);
  const found = useQuery({ queryKey: ["output", q], enabled: q.length > 2, queryFn: () => call("GET /v1/tasks/search", { query: { q, limit: 100 } }) });
  return new Set((q ? found.data?.hits : undefined)?.map((hit) => hit.task) ?? []);
}

function Table({ tasks, chosen, onChoose }: {
  readonly tasks: readonly TaskView[]; readonly chosen: ReadonlySet<string>; readonly onChoose: (chosen: ReadonlySet<string>) => void;
}): ReactNode {
  const [, go] = useLocation();
  const sessions = useSessions(false).data?.sessions ?? [];
  const toggle = (id: string): void => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    onChoose(next);
  };
  const band = (task: TaskView): string => (task.state === "running" ? "Open" : `Ended ${day(task.finished_at ?? task.started_at).replace("Today", "today").replace("Yesterday", "yesterday")}`);
  const sorted = [...tasks.filter((task) => task.state === "running"), ...tasks.filter((task) => task.state !== "running").sort((a, b) => (b.finished_at ?? 0) - (a.finished_at ?? 0))];
  const rows: ReactNode[] = [];
  let before = "";
  for (const task of sorted) {
    const name = band(task);
    if (name !== before) rows.push(<tr key={name} className="band"><td colSpan={9}>{name} {sorted.filter((one) => band(one) === name).length}</td></tr>);
    before = name;
    const from = task.session ? (sessions.find((row) => row.id === task.session)?.title ?? "a session") : "You, in background";
    rows.push(
      <tr key={task.id} className={chosen.has(task.id) ? "sel" : ""} onClick={(event) => { if (!(event.target as HTMLElement).closest("a, button, input")) go(`/tasks/${task.id}`); }}>
        <td><input type="checkbox" aria-label={`Choose ${task.title}`} checked={chosen.has(task.id)} onChange={() => toggle(task.id)} /></td>
        <td><Chip state={taskState(task)} /></td>
        <td><Link className={`task ${task.kind === "process" ? "mono" : ""}`} href={`/tasks/${task.id}`} title={task.command}>{task.title}</Link></td>
        <td className="muted">{task.kind}</td>
        <td className="muted">{task.session ? <Link href={`/s/${task.session}`}>{from}</Link> : from}</td>
        <td className="num"><Time at={task.started_at} /></td>
        <td className="num"><Since at={task.started_at} until={task.finished_at} /></td>
        <td className="num">{task.exit_code ?? (task.state === "lost" ? "unknown" : "–")}</td>
        <td className="num">{task.state === "failed" || task.state === "lost" ? <Why of="task" id={task.id} /> : null} {task.output_bytes > 0 ? size(task.output_bytes) : "–"}</td>
      </tr>,
    );
  }
  return (
    <div className="grid-wrap">
      <table aria-rowcount={sorted.length}>
        <colgroup><col className="w-10" /><col className="w-36" /><col /><col className="w-22" /><col className="w-52" /><col className="w-26" /><col className="w-26" /><col className="w-22" /><col className="w-32" /></colgroup>
        <thead><tr><th><span className="sr">Choose</span></th><th>State</th><th>Task</th><th>Kind</th><th>From</th><th className="num">Started</th><th className="num">Lasted</th><th className="num">Exit</th><th className="num">Output</th></tr></thead>
        <tbody>{rows}</tbody>
      </table>
    </div>
  );
}
