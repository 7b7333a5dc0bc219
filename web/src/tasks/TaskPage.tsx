import { type ReactNode, useState } from "react";
import { Link, useLocation } from "wouter";
import { call } from "../api/http";
import { queryClient } from "../api/queryClient";
import type { TaskView } from "../api/types.gen";
import { Banners } from "../chat/Banner";
import { Conversation } from "../chat/Conversation";
import { DrawerButton } from "../shell/TasksDrawer";
import { size } from "../text";
import { Chip } from "../ui/Chip";
import { Confirm } from "../ui/Confirm";
import { Empty, Loading } from "../ui/Empty";
import { useTitle } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { Menu } from "../ui/Menu";
import { STALE, taskState } from "../ui/states";
import { toast, toastError } from "../ui/toasts";
import { Why } from "../ui/Why";
import { download } from "./download";
import { History } from "./History";
import { OutputView } from "./OutputView";
import { useTask } from "./queries";
import { Sparks } from "./Sparks";

export default function TaskPage({ id }: { readonly id: string }): ReactNode {
  const task = useTask(id);
  useTitle(task.data?.title ?? "Task");
  if (task.isError)
    return (
      <div className="page">
        <div className="bar">
          <h1>Task</h1>
        </div>
        <Empty
          title="Task not found"
          action={
            <Link className="btn" href="/tasks">
              All tasks
            </Link>
          }
        >
          {task.error.message}
        </Empty>
      </div>
    );
  return task.data ? (
    <Detail task={task.data} at={task.dataUpdatedAt} />
  ) : (
    <div className="page">
      <div className="bar" />
      <Loading />
    </div>
  );
}

function Detail({ task, at }: { readonly task: TaskView; readonly at: number }): ReactNode {
  const agent = task.kind !== "process";
  const [tab, setTab] = useState(agent && task.worker ? "transcript" : "output");
  return (
    <div className="page">
      <Bar task={task} />
      <Banners />
      {agent && (
        <div className="tabs px-4 bg-panel flex gap-4 border-b border-hairline" role="tablist" aria-label="What it did">
          {["transcript", "output"].map((name) => (
            <button
              key={name}
              type="button"
              role="tab"
              id={`tab-${name}`}
              aria-controls="what"
              aria-selected={tab === name}
              className="h-9 border-b-2 border-transparent aria-selected:border-accent aria-selected:font-semibold text-muted aria-selected:text-ink"
              onClick={() => setTab(name)}
            >
              {name === "transcript" ? "Transcript" : "Output"}
            </button>
          ))}
        </div>
      )}
      <div className="split">
        <div
          id="what"
          className="grid min-h-0 min-w-0"
          {...(agent ? { role: "tabpanel", "aria-labelledby": `tab-${tab}` } : {})}
        >
          {tab === "transcript" ? <Conversation id={task.worker} /> : <OutputView task={task} />}
        </div>
        <Facts task={task} at={at} />
      </div>
    </div>
  );
}

function Bar({ task }: { readonly task: TaskView }): ReactNode {
  const [killing, setKilling] = useState(false);
  const [, go] = useLocation();
  const running = task.state === "running";
  const path = { id: task.id };
  const rerun = (): void => {
    const what = task.argv.length > 0 ? { argv: task.argv } : { shell: task.command };
    void call("POST /v1/tasks", { body: { ...what, name: task.title, cwd: task.cwd } }).then(
      (started) => go(`/tasks/${started.task}`),
      toastError,
    );
  };
  const save = (): void => void download(task.id, `${task.id}.log`);
  const refresh = (): void => void queryClient.invalidateQueries({ queryKey: ["task", task.id] });
  const stop = (force: boolean): void =>
    void call("POST /v1/tasks/{id}/stop", { path, body: { force } }).then(refresh, toastError);
  const pin = (): void =>
    void call("POST /v1/tasks/{id}/pin", { path, body: { pinned: !task.pinned } }).then(refresh, toastError);
  const copy = (): void =>
    void navigator.clipboard?.writeText(`${location.origin}/tasks/${task.id}`).then(() => toast("done", "Link copied"));
  return (
    <div className="bar">
      <Link className="btn quiet icon" href="/tasks" aria-label="Back to tasks">
        <Icon name="left" />
      </Link>
      <h1 className={`cut ${task.kind === "process" ? "mono !text-[15px]" : ""}`} title={task.command}>
        {task.title}
      </h1>
      <Chip state={taskState(task)} />
      {task.stale && <Chip state={STALE} />}
      <span className="muted wide cut">{running ? task.activity_detail : ending(task)}</span>
      <span className="grow" />
      <button type="button" className="btn quiet wide" aria-pressed={task.pinned} onClick={pin}>
        <Icon name="pin" />
        {task.pinned ? "Unpin" : "Pin"}
      </button>
      <button type="button" className="btn quiet wide" onClick={copy}>
        <Icon name="link" />
        Copy link
      </button>
      {task.kind === "process" && (
        <button type="button" className="btn wide" onClick={save}>
          <Icon name="download" />
          Download {size(task.output_bytes - task.dropped_bytes)}
        </button>
      )}
      {running && (
        <button type="button" className="btn danger" onClick={() => stop(false)}>
          <Icon name="stop" />
          Stop
        </button>
      )}
      {running && task.kind === "process" && (
        <button type="button" className="btn danger wide" onClick={() => setKilling(true)}>
          Kill
        </button>
      )}
      {!running && task.kind === "process" && (
        <button type="button" className="btn primary wide" onClick={rerun}>
          <Icon name="refresh" />
          Run again
        </button>
      )}
      <span className="phone">
        <Menu
          name="Task menu"
          entries={[
            { word: task.pinned ? "Unpin" : "Pin", icon: "pin", act: pin },
            { word: "Copy link", icon: "link", act: copy },
            ...(task.kind === "process" ? [{ word: "Download", icon: "download", act: save }] : []),
            ...(running && task.kind === "process"
              ? [{ word: "Kill", icon: "stop", danger: true, act: () => setKilling(true) }]
              : []),
          ]}
        />
      </span>
      <span className="wide">
        <DrawerButton />
      </span>
      {killing && (
        <Confirm
          title={`Kill ${task.title}?`}
          verb="Kill"
          onNo={() => setKilling(false)}
          onYes={() => {
            setKilling(false);
            stop(true);
          }}
        >
          <p>All its processes are killed at once.</p>
        </Confirm>
      )}
    </div>
  );
}

function ending(task: TaskView): string {
  const code = task.exit_code === null ? "" : `exit ${task.exit_code}`;
  return [
    code,
    task.reason.startsWith("exit code") ? "" : task.reason,
    task.ended_by && !task.reason.includes(task.ended_by) ? `by ${task.ended_by}` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

function Facts({ task, at }: { readonly task: TaskView; readonly at: number }): ReactNode {
  const ended = task.finished_at !== null;
  const facts: readonly (readonly [string, ReactNode])[] = [
    [
      "Task",
      <span key="id" className="mono">
        {task.id}
      </span>,
    ],
    [
      "Command",
      <div key="c" className="mono whitespace-pre-wrap max-h-32 overflow-auto" tabIndex={0}>
        {task.command}
      </div>,
    ],
    [
      "Directory",
      <span key="d" className="mono">
        {task.cwd}
      </span>,
    ],
    ["Process", task.pid ?? (task.kind === "process" ? "unknown" : "–")],
    ["Lifetime", task.lifetime],
    ["Exit code", task.exit_code ?? (ended && task.kind === "process" ? "unknown" : "–")],
    ["Files", task.files === null ? "unknown" : task.files.length > 0 ? task.files.join(", ") : "none changed"],
    ...(task.summary ? [["Summary", task.summary] as const] : []),
    ...(task.survivors.length > 0 ? [["Left behind", task.survivors.join(", ")] as const] : []),
  ];
  return (
    <aside className="facts" aria-label="About this task">
      <section>
        <h2>{ended ? "Why it ended" : "What it does"}</h2>
        <p className="mt-1">
          {ended
            ? task.reason || "unknown"
            : `${taskState(task).word}${task.activity_evidence ? `: ${task.activity_evidence}` : ""}`}
        </p>
        {task.stale && (
          <p className="mt-1">
            <Chip state={STALE} /> {task.stale}. Nobody waits for it any more; it goes on until somebody stops it.
          </p>
        )}
        {task.evidence && <p className="muted mt-1">{task.evidence}</p>}
        <p className="mt-1">
          <Why of="task" id={task.id} word={ended ? "Show the evidence" : "Why?"} />
        </p>
      </section>
      {!ended && <Sparks task={task} at={at} />}
      <History task={task} />
      <section>
        <h2>Facts</h2>
        <dl>{facts.map(([name, value]) => [<dt key={`t${name}`}>{name}</dt>, <dd key={name}>{value}</dd>])}</dl>
      </section>
    </aside>
  );
}
