import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { bothKnown, type Known, mapKnown } from "../api/known";
import type { SessionView, TaskView } from "../api/types.gen";
import { Banners } from "../chat/Banner";
import { newSession } from "../chat/newSession";
import { useAtWork } from "../chat/queries";
import { NodeName } from "../nodes/NodeName";
import { DrawerButton } from "../shell/drawer";
import { overlay } from "../shell/overlay";
import { useInbox } from "../shell/queries";
import { useRunning } from "../tasks/queries";
import { StartedBy } from "../tasks/StartedBy";
import { TaskChip } from "../tasks/TaskChip";
import { agentSession } from "../tasks/taskWords";
import { taskName } from "../text";
import { Bar } from "../ui/Bar";
import { Button } from "../ui/Button";
import { Chip } from "../ui/Chip";
import { useTitle } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { AsOf, asOfText, Show } from "../ui/Known";
import shared from "../ui/shared.module.css";
import { rowState } from "../ui/states";
import { Since } from "../ui/Time";
import { FirstSteps } from "./FirstSteps";
import { HealthPanel } from "./HealthPanel";
import styles from "./HomePage.module.css";
import { LastDay } from "./LastDay";
import { NeedsYou } from "./NeedsYou";
import { SinceLastLook } from "./SinceLastLook";
import { StaleCommands } from "./StaleCommands";

/** What runs: tasks, and sessions at work that no task stands for. */
interface Running {
  readonly tasks: readonly TaskView[];
  readonly sessions: readonly SessionView[];
}

function useRunningNow(): Known<Running> {
  return mapKnown(bothKnown(useRunning(), useAtWork()), ([tasks, atWork]) => ({
    tasks,
    sessions: atWork.filter((row) => row.state !== "waiting" && !isWorker(row, tasks)),
  }));
}

/** Its task stands for it. */
export const isWorker = (row: SessionView, tasks: readonly TaskView[]): boolean =>
  row.task !== "" || tasks.some((task) => task.worker === row.id);

const KINDS: Readonly<Record<string, string>> = { process: "command", agent: "agent", card: "card" };

const total = ({ tasks, sessions }: Running): number => tasks.length + sessions.length;

export default function HomePage(): ReactNode {
  const [, go] = useLocation();
  const inbox = useInbox();
  const running = useRunningNow();
  useTitle("Home");
  return (
    <div className={shared.page}>
      <Bar>
        <h1>Home</h1>
        <span className={styles.facts}>
          {factsOf(mapKnown(bothKnown(running, inbox), ([now, needs]) => [total(now), needs.total] as const))}
        </span>
        <span className={shared.grow} />
        <button type="button" className={`${shared.field} ${styles.find}`} onClick={() => overlay.set("palette")}>
          <Icon name="search" />
          <span className={styles.findText}>Find anything</span>
          <span className={shared.kbd}>Ctrl K</span>
        </button>
        <DrawerButton />
        <Button primary onClick={() => newSession(go)}>
          <Icon name="plus" />
          New session
        </Button>
      </Bar>
      <Banners />
      <section className={styles.columns} aria-label="Overview">
        <div className={styles.column}>
          <FirstSteps />
          <NeedsYou inbox={inbox} />
          <SinceLastLook />
        </div>
        <div className={styles.column}>
          <RunningNow running={running} />
          <StaleCommands />
          <LastDay />
          <HealthPanel />
        </div>
      </section>
    </div>
  );
}

function factsOf(known: Known<readonly [number, number]>): string {
  if (known.state === "loading") return "";
  if (known.state === "unknown") return "not known, offline";
  const [running, needs] = known.value;
  const facts = `${running} running, ${needs} ${needs === 1 ? "needs" : "need"} you`;
  return known.current ? facts : `${facts}, ${asOfText(known.asOf)}`;
}

function RunningNow({ running }: { readonly running: Known<Running> }): ReactNode {
  return (
    <section className={`${shared.panel} ${styles.running}`} aria-label="Running now">
      <header>
        <h2>Running now</h2>
        <span className={shared.faint}>{(running.state === "known" && total(running.value)) || ""}</span>
        <AsOf known={running} />
        <span className={shared.grow} />
        <Link href="/tasks">All tasks</Link>
      </header>
      <Show known={running}>
        {(now) =>
          total(now) === 0 ? (
            <p className={shared.muted}>Nothing is running. Tasks keep running after you close this page.</p>
          ) : (
            <>
              {now.sessions.map((row) => (
                <div key={row.id} className={styles.now} data-why={`session/${row.id}`}>
                  <Chip state={rowState(row)} />
                  <Link className={shared.cut} href={`/s/${row.id}`} dir="auto">
                    {row.title || "New session"}
                  </Link>
                  <span className={shared.faint}>
                    <Since at={row.updated_at} />
                  </span>
                  <span className={styles.sub}>
                    <span className={shared.cut}>{row.preview.replaceAll(/\s+/g, " ")}</span>
                    <NodeName node={row.host} />
                  </span>
                </div>
              ))}
              {now.tasks.map((task) => (
                <div key={task.id} className={styles.now} data-why={`task/${task.id}`}>
                  <TaskChip task={task} />
                  <Link
                    className={`${shared.cut} ${task.kind === "process" ? shared.mono : ""}`}
                    href={`/tasks/${task.id}`}
                    dir="auto"
                  >
                    {taskName(task)}
                  </Link>
                  <span className={shared.faint}>
                    <Since at={task.started_at} />
                  </span>
                  <span className={styles.sub}>
                    <span className={shared.cut}>
                      {task.activity_detail || (agentSession(task) ? "process" : KINDS[task.kind])} ·{" "}
                      <StartedBy task={task} />
                    </span>
                    <NodeName node={task.node} />
                  </span>
                </div>
              ))}
            </>
          )
        }
      </Show>
    </section>
  );
}
