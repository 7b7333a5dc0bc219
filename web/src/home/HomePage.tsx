import { type ReactNode, useState } from "react";
import { Link, useLocation } from "wouter";
import { lookedAt, markLooked } from "../api/cursors";
import { call, newId } from "../api/http";
import { useStore } from "../api/store";
import type { InboxEntry, SessionView, TaskView, WaitView } from "../api/types.gen";
import { Banners } from "../chat/Banner";
import { newSession } from "../chat/newSession";
import { useAtWork, useSessions } from "../chat/queries";
import { Answers, ShownArguments } from "../chat/WaitCard";
import { floating } from "../shell/overlay";
import { useInbox, useStatus } from "../shell/queries";
import { DrawerButton, howItEnded } from "../shell/TasksDrawer";
import { useEnded, useRunning, useTasks } from "../tasks/queries";
import { moment, plural } from "../text";
import { Chip } from "../ui/Chip";
import { Empty, Loading } from "../ui/Empty";
import { useTitle } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { entryState, rowState, taskState } from "../ui/states";
import { Since, Time } from "../ui/Time";
import { toastError } from "../ui/toasts";
import { Why } from "../ui/Why";
import { LastDay } from "./LastDay";
import { StaleCommands } from "./StaleCommands";

export default function Home(): ReactNode {
  const [, go] = useLocation();
  const inbox = useInbox();
  useTitle("Home");
  const running = useRunning();
  const working = useAtWork().filter((row) => row.state !== "waiting" && !isWorker(row, running));
  const needs = inbox.data?.total ?? 0;
  return (
    <div className="page">
      <div className="bar">
        <h1>Home</h1>
        <span className="faint wide">
          {running.length + working.length} running, {needs} {needs === 1 ? "needs" : "need"} you
        </span>
        <span className="grow" />
        <button type="button" className="field wide w-60" onClick={() => floating.set("palette")}>
          <Icon name="search" />
          <span className="grow text-left">Find anything</span>
          <span className="kbd">Ctrl K</span>
        </button>
        <DrawerButton />
        <button type="button" className="btn primary" onClick={() => void newSession(go)}>
          <Icon name="plus" />
          New session
        </button>
      </div>
      <Banners />
      <div className="cols2" tabIndex={0} role="region" aria-label="Overview">
        <div className="stack-v">
          <section className="panel" aria-label="Needs you">
            <header>
              <h2>Needs you</h2>
              <span className="faint">{needs || ""}</span>
            </header>
            {inbox.isLoading ? (
              <Loading rows={1} />
            ) : (
              needs === 0 && (
                <p className="muted">
                  Nothing needs you. Questions, approvals, failed turns and blocked cards are listed here.
                </p>
              )
            )}
            {inbox.data?.entries.map((entry) => (
              <Need
                key={entry.kind + entry.id}
                entry={entry}
                wait={inbox.data.waits.find((wait) => wait.id === entry.id)}
              />
            ))}
            {inbox.data && inbox.data.entries.length < needs && (
              <p className="muted">{needs - inbox.data.entries.length} more are not shown.</p>
            )}
          </section>
          <Ended />
        </div>
        <div className="stack-v">
          <section className="panel" aria-label="Running now">
            <header>
              <h2>Running now</h2>
              <span className="faint">{running.length + working.length || ""}</span>
              <span className="grow" />
              <Link href="/tasks">All tasks</Link>
            </header>
            {running.length + working.length === 0 && (
              <p className="muted">Nothing is running. Tasks keep running after you close this page.</p>
            )}
            {working.map((row) => (
              <div key={row.id} className="now" data-why={`session/${row.id}`}>
                <Chip state={rowState(row)} />
                <Link className="cut" href={`/s/${row.id}`}>
                  {row.title || "New session"}
                </Link>
                <span className="faint">
                  <Time at={row.updated_at} />
                </span>
                <span className="sub cut">{row.preview.replaceAll(/\s+/g, " ")}</span>
              </div>
            ))}
            {running.map((task) => (
              <div key={task.id} className="now" data-why={`task/${task.id}`}>
                <Chip state={taskState(task)} />
                <Link className={`cut ${task.kind === "process" ? "mono" : ""}`} href={`/tasks/${task.id}`}>
                  {task.title}
                </Link>
                <span className="faint">
                  <Since at={task.started_at} />
                </span>
                <span className="sub cut">{task.activity_detail || task.kind}</span>
              </div>
            ))}
          </section>
          <StaleCommands />
          <LastDay />
          <Health />
        </div>
      </div>
    </div>
  );
}

/** One entry of the inbox: what it is, and what can be done about it here. */
function Need({ entry, wait }: { readonly entry: InboxEntry; readonly wait: WaitView | undefined }): ReactNode {
  const [busy, setBusy] = useState(false);
  const dismiss = (): void => {
    setBusy(true);
    call("POST /v1/sessions/{id}/dismiss", { path: { id: entry.id }, body: {}, key: newId() }).catch(
      (error: unknown) => {
        toastError(error);
        setBusy(false);
      },
    );
  };
  const failed = entry.kind === "failed_turn";
  return (
    <div className="need" data-why={entry.stream}>
      <Chip state={entryState(entry)} />
      <span className="q">{entry.what}</span>
      <span className="sub">
        <Link href={entry.link}>{entry.title || "New session"}</Link> · since {moment(entry.since)}
        {wait?.until ? ` · until ${moment(wait.until)}` : ""}
      </span>
      {wait && wait.shown.length > 0 && (
        <div className="sub">
          <ShownArguments shown={wait.shown} />
        </div>
      )}
      <span className="acts">
        {wait ? (
          <Answers few wait={{ ...wait, wait: wait.id }} />
        ) : (
          <Link className="btn small" href={entry.link}>
            {entry.kind === "blocked_card" ? "Answer" : "Open"}
          </Link>
        )}
        {failed && (
          <button type="button" className="btn quiet small" disabled={busy} onClick={dismiss}>
            Dismiss
          </button>
        )}
      </span>
    </div>
  );
}

/** Its task stands for it. */
const isWorker = (row: SessionView, tasks: readonly TaskView[]): boolean =>
  row.task !== "" || tasks.some((task) => task.worker === row.id);

type Happening = { readonly at: number } & ({ readonly task: TaskView } | { readonly row: SessionView });

/** What ended: the newest pages of the lists, and whatever ended since the last look, however long ago it began. */
function Ended(): ReactNode {
  const since = useStore(lookedAt);
  const tasks = useTasks();
  const late = useEnded(since);
  const sessions = useSessions(false).rows;
  const known = [...new Map([...tasks.rows, ...late].map((task) => [task.id, task])).values()];
  const ended: Happening[] = [
    ...known
      .filter((task) => task.finished_at !== null && !task.foreground)
      .map((task) => ({ at: task.finished_at ?? 0, task })),
    ...sessions
      .filter(
        (row) =>
          row.turn_state &&
          ["done", "failed", "stopped"].includes(row.turn_state) &&
          !isWorker(row, known) &&
          row.state === "idle",
      )
      .map((row) => ({ at: row.updated_at, row })),
  ]
    .sort((a, b) => b.at - a.at)
    .slice(0, 20);
  const fresh = ended.filter((one) => one.at > since);
  const before = ended.filter((one) => one.at <= since);
  return (
    <section className="panel" aria-label="Since you last looked">
      <header>
        <h2>Since you last looked</h2>
        <span className="faint">{moment(since)}</span>
        <span className="grow" />
        {fresh.length > 0 && (
          <button type="button" className="btn quiet small" onClick={() => void markLooked().catch(toastError)}>
            Mark as seen
          </button>
        )}
      </header>
      {tasks.isLoading ? (
        <Loading rows={3} />
      ) : ended.length === 0 ? (
        <Empty title="Nothing has ended yet">Finished turns and tasks are listed here, newest first.</Empty>
      ) : (
        <div className="py-2">
          {fresh.map((one) => (
            <Event key={"task" in one ? one.task.id : one.row.id} one={one} fresh />
          ))}
          <div className="line ev">
            <span className="knot you" />
            <span className="t">
              <b>You were here</b>
            </span>
            <time>{moment(since)}</time>
          </div>
          {before.map((one) => (
            <Event key={"task" in one ? one.task.id : one.row.id} one={one} fresh={false} />
          ))}
        </div>
      )}
    </section>
  );
}

function Event({ one, fresh }: { readonly one: Happening; readonly fresh: boolean }): ReactNode {
  const state = "task" in one ? taskState(one.task) : rowState(one.row);
  const to = "task" in one ? `/tasks/${one.task.id}` : `/s/${one.row.id}`;
  return (
    <div
      className={`line ev ${fresh ? "away" : ""}`}
      data-why={"task" in one ? `task/${one.task.id}` : `session/${one.row.id}`}
    >
      <span className="knot" />
      <span className="t row">
        <Chip state={state} />
        <Link className={`cut ${"task" in one && one.task.kind === "process" ? "mono" : ""}`} href={to}>
          {"task" in one ? one.task.title : one.row.title || "New session"}
        </Link>
        {state.word !== "Done" && (
          <Why of={"task" in one ? "task" : "session"} id={"task" in one ? one.task.id : one.row.id} />
        )}
      </span>
      <Time at={one.at} />
      <span className="sub cut">
        {"task" in one ? howItEnded(one.task, false) : one.row.preview.replaceAll(/\s+/g, " ")}
      </span>
    </div>
  );
}

function Health(): ReactNode {
  const status = useStatus().data;
  if (!status) return null;
  const well = status.writable && !status.problem;
  return (
    <section className="panel" aria-label="Health">
      <header>
        <h2>Health</h2>
        <span className="grow" />
        <Chip
          state={
            well
              ? { look: "done", icon: "done", word: "All well" }
              : { look: "failed", icon: "failed", word: "Read-only" }
          }
        />
      </header>
      {!well && <p>{status.problem}</p>}
      <dl className="health">
        <div>
          <dt>Gateway</dt>
          <dd>since {moment(status.started_at)}</dd>
        </div>
        <div>
          <dt>Version</dt>
          <dd>{status.version}</dd>
        </div>
        <div>
          <dt>Sessions</dt>
          <dd>{plural(status.sessions, "open one", "open")}</dd>
        </div>
        <div>
          <dt>Log</dt>
          <dd>{plural(status.events, "event")}</dd>
        </div>
      </dl>
    </section>
  );
}
