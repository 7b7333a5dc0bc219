/** The background tasks drawer: on every page, its state kept. */
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { lookedAt, markLooked } from "../api/cursors";
import { bothKnown } from "../api/known";
import { useStore } from "../api/store";
import type { Inbox, TaskView } from "../api/types.gen";
import { NodeName } from "../nodes/NodeName";
import { useEnded, useRunning, useTasks } from "../tasks/queries";
import { TaskChip } from "../tasks/TaskChip";
import { archiveWords, howItEnded } from "../tasks/taskWords";
import { entryTitle, entryWords, moment, taskName } from "../text";
import { Bar } from "../ui/Bar";
import { Button } from "../ui/Button";
import { Chip } from "../ui/Chip";
import { Empty } from "../ui/Empty";
import { Icon } from "../ui/Icon";
import { AsOf, Show } from "../ui/Known";
import { Segmented } from "../ui/Segmented";
import shared from "../ui/shared.module.css";
import { entryState, taskIcon } from "../ui/states";
import { Since } from "../ui/Time";
import { toastError } from "../ui/toasts";
import { toggleDrawer } from "./drawer";
import { useInbox, useOverview } from "./queries";
import styles from "./TasksDrawer.module.css";

/** Where the focus goes back to when nothing else is left of where it was. */
const button = (): HTMLElement | null => document.querySelector<HTMLElement>("[data-drawer-button]");

export default function Drawer(): ReactNode {
  const tasks = useTasks();
  const since = useStore(lookedAt);
  const shown = bothKnown(bothKnown(useRunning(), useEnded(since)), bothKnown(tasks.known, useInbox()));
  const overview = useOverview();
  const [kind, setKind] = useState("");
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    title.current?.focus();
    return () => {
      if (!document.activeElement || document.activeElement === document.body)
        (before instanceof HTMLElement && before.isConnected && before !== document.body ? before : button())?.focus();
    };
  }, []);
  const fits = (task: TaskView): boolean => !kind || task.kind === kind;
  return (
    <aside className={styles.drawer} data-drawer aria-label="Background tasks">
      <Bar>
        <h2 className={styles.title} ref={title} tabIndex={-1}>
          Background tasks
        </h2>
        <span className={shared.grow} />
        <Button quiet icon aria-label="Close the panel" onClick={() => toggleDrawer(false)}>
          <Icon name="close" />
        </Button>
      </Bar>
      <div className={styles.kinds}>
        <Segmented name="Kind" small>
          {[
            ["", "All"],
            ["process", "Processes"],
            ["agent", "Agents"],
            ["card", "Cards"],
          ].map(([name = "", word = ""]) => (
            <button key={word} type="button" aria-pressed={kind === name} onClick={() => setKind(name)}>
              {word}
            </button>
          ))}
        </Segmented>
      </div>
      <div className={shared.scroll}>
        <Show known={shown} rows={5}>
          {([[live, late], [rows, inbox]]) => (
            <Groups
              running={live.filter(fits)}
              fresh={late.filter(fits)}
              earlier={rows.filter((task) => task.finished_at !== null && task.finished_at <= since && fits(task))}
              inbox={inbox}
            />
          )}
        </Show>
      </div>
      <footer className={styles.footer}>
        <span className={`${shared.grow} ${shared.cut}`}>
          {overview.state === "known" ? archiveWords(overview.value.tasks) : ""} <AsOf known={overview} />
        </span>
        <Link href="/tasks">All tasks</Link>
      </footer>
    </aside>
  );
}

function Groups({
  running,
  fresh,
  earlier,
  inbox,
}: {
  readonly running: readonly TaskView[];
  readonly fresh: readonly TaskView[];
  readonly earlier: readonly TaskView[];
  readonly inbox: Inbox;
}): ReactNode {
  const [place] = useLocation();
  const needs = inbox.entries;
  if (running.length + fresh.length + earlier.length + needs.length === 0)
    return (
      <Empty title="Nothing in the background">
        “Run in background” beside Send starts one. It outlives this tab and the gateway.
      </Empty>
    );
  return (
    <>
      {needs.length > 0 && (
        <>
          <div className={styles.group}>
            <span>Needs you {inbox.total}</span>
          </div>
          {needs.map((entry) => (
            <Link
              key={entry.kind + entry.id}
              data-row-link
              className={styles.row}
              data-why={entry.stream}
              href={entry.link}
            >
              <span className={`${styles.name} ${styles.said}`} dir="auto">
                {entryWords(entry)}
              </span>
              <Chip state={entryState(entry)} />
              <span className={styles.info}>
                <Icon name={entry.stream.startsWith("card/") ? "card" : "chat"} />
                <span className={shared.cut}>
                  {entryTitle(entry)} · since {moment(entry.since)}
                </span>
                <NodeName node={entry.node} />
              </span>
            </Link>
          ))}
        </>
      )}
      <Group name="Running" tasks={running} place={place} />
      <Group
        name="Ended since you last looked"
        tasks={fresh}
        place={place}
        action={
          <button type="button" className={shared.link} onClick={() => void markLooked().catch(toastError)}>
            Mark as seen
          </button>
        }
      />
      <Group name="Earlier" tasks={earlier} place={place} />
    </>
  );
}

function Group({
  name,
  tasks,
  place,
  action,
}: {
  readonly name: string;
  readonly tasks: readonly TaskView[];
  readonly place: string;
  readonly action?: ReactNode;
}): ReactNode {
  if (tasks.length === 0) return null;
  return (
    <>
      <div className={styles.group}>
        <span>
          {name} {tasks.length}
        </span>
        {action}
      </div>
      {tasks.slice(0, 60).map((task) => (
        <Row key={task.id} task={task} current={place === `/tasks/${task.id}`} />
      ))}
    </>
  );
}

function Row({ task, current }: { readonly task: TaskView; readonly current: boolean }): ReactNode {
  return (
    <Link
      data-row-link
      className={`${styles.row} ${current ? styles.selected : ""}`}
      data-why={`task/${task.id}`}
      href={`/tasks/${task.id}`}
    >
      <span className={`${styles.name} ${task.kind === "process" ? "" : styles.said}`} dir="auto">
        {taskName(task)}
      </span>
      <TaskChip task={task} />
      <span className={styles.info}>
        <Icon name={taskIcon(task)} />
        <span className={shared.cut}>
          {task.state === "running" ? (
            <>
              <Since at={task.started_at} />
              {(task.stale || task.activity_detail) && ` · ${task.stale || task.activity_detail}`}
            </>
          ) : (
            howItEnded(task)
          )}
        </span>
        <NodeName node={task.node} />
      </span>
    </Link>
  );
}
