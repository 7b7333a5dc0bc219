import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import type { Known } from "../api/known";
import { useLooking } from "../api/looking";
import type { TaskView } from "../api/types.gen";
import { Banners } from "../chat/Banner";
import { Conversation } from "../chat/Conversation";
import { DrawerButton } from "../shell/drawer";
import { size, taskName } from "../text";
import { Bar } from "../ui/Bar";
import { Button, buttonClass } from "../ui/Button";
import { Chip } from "../ui/Chip";
import { Empty } from "../ui/Empty";
import { useTitle } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { AsOf, Show } from "../ui/Known";
import { Menu } from "../ui/Menu";
import shared from "../ui/shared.module.css";
import { STALE } from "../ui/states";
import { type TabEntry, Tabs } from "../ui/Tabs";
import { Why } from "../ui/Why";
import { History } from "./History";
import { OutputView } from "./OutputView";
import { useTask } from "./queries";
import { Sparks } from "./Sparks";
import { StartedBy } from "./StartedBy";
import { TaskChanges } from "./TaskChanges";
import { useTaskState } from "./TaskChip";
import styles from "./TaskPage.module.css";
import { canKill, canRerun, canStop, endWords, exitWords, hasOutput } from "./taskWords";
import { useTaskActions } from "./useTaskActions";

export default function TaskPage({ id }: { readonly id: string }): ReactNode {
  const { known, query } = useTask(id);
  useLooking(`task/${id}`);
  useTitle(known.state === "known" ? known.value.title : "Task");
  if (known.state === "known") return <Detail known={known} task={known.value} at={query.dataUpdatedAt} />;
  return (
    <div className={shared.page}>
      <Bar>
        <Back />
        <h1>Task</h1>
      </Bar>
      <Banners />
      {known.state === "unknown" && known.missing ? (
        <Empty
          title="There is no such task"
          action={
            <Link className={buttonClass()} href="/tasks">
              All tasks
            </Link>
          }
        >
          {known.reason}
        </Empty>
      ) : (
        <Show known={known}>{() => null}</Show>
      )}
    </div>
  );
}

type Tab = "transcript" | "output" | "changes";

const hasChanges = (task: TaskView): boolean => task.finished_at !== null && (task.files?.length ?? 0) > 0;

const Back = (): ReactNode => (
  <Link className={buttonClass({ quiet: true, icon: true })} href="/tasks" aria-label="Back to tasks">
    <Icon name="left" />
  </Link>
);

function Detail({
  known,
  task,
  at,
}: {
  readonly known: Known<TaskView>;
  readonly task: TaskView;
  readonly at: number;
}): ReactNode {
  const [tab, setTab] = useState<Tab>(task.kind === "process" ? "output" : "transcript");
  const tabs: readonly TabEntry<Tab>[] = [
    ...(task.kind === "process"
      ? []
      : [{ id: "transcript", word: "Transcript", panel: () => <Conversation id={task.worker} bare /> } as const]),
    { id: "output", word: "Output", panel: () => <OutputView task={task} /> },
    ...(hasChanges(task)
      ? [{ id: "changes", word: `Changes ${task.files?.length}`, panel: () => <TaskChanges task={task} /> } as const]
      : []),
  ];
  return (
    <div className={shared.page}>
      <TaskBar known={known} task={task} />
      {tab !== "transcript" && <Banners /> /* a transcript has its own */}
      <div className={styles.split}>
        {tabs.length === 1 ? (
          <OutputView task={task} />
        ) : (
          <Tabs name="What it did" chosen={tab} onChoose={setTab} tabs={tabs} />
        )}
        <About task={task} at={at} onChanges={() => setTab("changes")} />
      </div>
    </div>
  );
}

const TELL: Readonly<Record<string, string>> = { always: "Told always", never: "Never told" };

function TaskBar({ known, task }: { readonly known: Known<TaskView>; readonly task: TaskView }): ReactNode {
  const actions = useTaskActions(task);
  const words = task.state === "running" ? task.activity_detail : endWords(task);
  return (
    <Bar className={styles.bar}>
      <Back />
      <h1
        className={`${shared.cut} ${styles.title} ${task.kind === "process" ? styles.commandTitle : ""}`}
        title={task.command}
        dir="auto"
      >
        {taskName(task)}
      </h1>
      <Chip state={useTaskState(task)} />
      {task.stale && <Chip state={STALE} />}
      <AsOf known={known} />
      <span className={styles.words}>{words}</span>
      <span className={styles.room} />
      <span className={styles.roomy}>
        <Button quiet aria-pressed={task.pinned} onClick={actions.pin}>
          <Icon name="pin" />
          {task.pinned ? "Unpin" : "Pin"}
        </Button>
        {actions.tell.length > 0 && (
          <Menu
            name="Tell me"
            entries={actions.tell}
            trigger={
              <Button quiet>
                <Icon name={task.tell === "never" ? "muted" : "bell"} />
                {TELL[task.tell ?? ""] ?? "Tell me"}
              </Button>
            }
          />
        )}
        <Button quiet onClick={actions.copyLink}>
          <Icon name="link" />
          Copy link
        </Button>
        {hasOutput(task) && (
          <Button onClick={actions.save}>
            <Icon name="download" />
            Download {size(task.output_bytes - task.dropped_bytes)}
          </Button>
        )}
        {canKill(task) && (
          <Button danger onClick={actions.askToKill}>
            Kill
          </Button>
        )}
      </span>
      {canStop(task) && (
        <Button danger className={styles.stop} onClick={actions.stop}>
          <Icon name="stop" />
          {task.kind === "process" ? "Stop" : "Stop the task"}
        </Button>
      )}
      {canRerun(task) && (
        <Button primary className={styles.rerun} onClick={actions.rerun}>
          <Icon name="refresh" />
          Run again
        </Button>
      )}
      <span className={styles.narrow}>
        <Menu name="Task menu" entries={actions.entries} />
      </span>
      <DrawerButton />
      {actions.question}
    </Bar>
  );
}

function About({
  task,
  at,
  onChanges,
}: {
  readonly task: TaskView;
  readonly at: number;
  readonly onChanges: () => void;
}): ReactNode {
  const ended = task.finished_at !== null;
  const doing = `${useTaskState(task).word}${task.activity_evidence ? `: ${task.activity_evidence}` : ""}`;
  return (
    <aside className={styles.about} aria-label="About this task">
      <section>
        <h2>{ended ? "Why it ended" : "What it does"}</h2>
        <p>{ended ? endWords(task) : doing}</p>
        {task.stale && (
          <p>
            <Chip state={STALE} /> {task.stale}. Nobody waits for it any more; it goes on until somebody stops it.
          </p>
        )}
        {task.evidence && <p className={shared.muted}>{task.evidence}</p>}
        <p>
          <Why of="task" id={task.id} word={ended ? "Show the evidence" : "Why?"} />
        </p>
      </section>
      {!ended && <Sparks task={task} at={at} />}
      <History task={task} />
      <Changes files={task.files} ended={ended} onOpen={onChanges} />
      <Facts task={task} />
    </aside>
  );
}

const LIFETIMES: Readonly<Record<string, string>> = {
  session: "as long as its session",
  chapter: "until its session is reset",
  persist: "until it ends",
  until: "until a fixed time",
};
const FEW = 12;

/** The files that it changed, where that is known: in a git repository, by its status before and after. */
function Changes({
  files,
  ended,
  onOpen,
}: {
  readonly files: readonly string[] | null;
  readonly ended: boolean;
  readonly onOpen: () => void;
}): ReactNode {
  const [all, setAll] = useState(false);
  if (!ended) return null;
  const shown = all ? (files ?? []) : (files ?? []).slice(0, FEW);
  const rest = (files?.length ?? 0) - shown.length;
  return (
    <section>
      <h2>Changed files {files?.length || ""}</h2>
      {files === null && <p className={shared.muted}>Not known: only changes in a Git repository are recorded.</p>}
      {files?.length === 0 && <p className={shared.muted}>None.</p>}
      {shown.length > 0 && (
        <ul className={styles.files}>
          {shown.map((file) => (
            <li key={file}>{file}</li>
          ))}
        </ul>
      )}
      {rest > 0 && (
        <button type="button" className={shared.link} onClick={() => setAll(true)}>
          {rest} more
        </button>
      )}
      {shown.length > 0 && (
        <p>
          <button type="button" className={shared.link} onClick={onOpen}>
            Show the changes
          </button>
        </p>
      )}
    </section>
  );
}

function Facts({ task }: { readonly task: TaskView }): ReactNode {
  const agent = task.kind !== "process";
  return (
    <section>
      <h2>Facts</h2>
      <dl className={styles.facts}>
        <Fact name="Task">
          <span className={shared.mono}>{task.id}</span>
        </Fact>
        <Fact name="From">
          <StartedBy task={task} />
        </Fact>
        <Fact name={agent ? "Prompt" : "Command"}>
          <div className={styles.command} tabIndex={0} role="region" aria-label={agent ? "Prompt" : "Command"}>
            {task.command}
          </div>
        </Fact>
        {agent && task.worker && (
          <Fact name="Session">
            <Link href={`/s/${task.worker}`}>Open its chat</Link>
          </Fact>
        )}
        <Fact name="Directory">
          <span className={shared.mono}>{task.cwd}</span>
        </Fact>
        {task.node && <Fact name="Node">{task.node}</Fact>}
        {!agent && <Fact name="Process">{task.pid ?? "unknown"}</Fact>}
        {task.ports.length > 0 && <Fact name="Ports">{task.ports.join(", ")}</Fact>}
        {!agent && <Fact name="Lifetime">{LIFETIMES[task.lifetime] ?? task.lifetime}</Fact>}
        {!agent && <Fact name={task.signal ? "Ended by" : "Exit code"}>{exitWords(task)}</Fact>}
        {task.summary && <Fact name="Summary">{task.summary}</Fact>}
        {task.survivors.length > 0 && <Fact name="Left behind">{task.survivors.join(", ")}</Fact>}
      </dl>
    </section>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }): ReactNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
