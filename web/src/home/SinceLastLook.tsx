/**
 * What ended since somebody last looked at this page, newest first. The mark stays where it was while one reads, and
 * moves on when one leaves the page.
 */

import { type ReactNode, useEffect, useRef } from "react";
import { Link } from "wouter";
import { lookedAt, markLooked } from "../api/cursors";
import { bothKnown, type Known, mapKnown } from "../api/known";
import { useStore } from "../api/store";
import type { SessionView, TaskView } from "../api/types.gen";
import { useSessions } from "../chat/queries";
import { useEnded, useTasks } from "../tasks/queries";
import { howItEnded } from "../tasks/taskWords";
import { moment, taskName } from "../text";
import { Button } from "../ui/Button";
import { Chip } from "../ui/Chip";
import { Empty } from "../ui/Empty";
import { AsOf, Show } from "../ui/Known";
import line from "../ui/line.module.css";
import shared from "../ui/shared.module.css";
import { rowState, taskState } from "../ui/states";
import { Time } from "../ui/Time";
import { toastError } from "../ui/toasts";
import { Why } from "../ui/Why";
import { isWorker } from "./HomePage";
import styles from "./SinceLastLook.module.css";

type Ended = { readonly at: number } & ({ readonly task: TaskView } | { readonly row: SessionView });

const MOST = 20;
/** Whoever stays for less has not looked. */
const GLANCE_MS = 2_000;

/** Tell the gateway that somebody looked, when they leave the page or hide it after a while. */
function useLook(hasNew: boolean): void {
  const latest = useRef(hasNew);
  latest.current = hasNew;
  useEffect(() => {
    let since = Date.now();
    const left = (): void => {
      if (latest.current && Date.now() - since > GLANCE_MS) void markLooked().catch(() => undefined);
    };
    const turned = (): void => {
      if (document.visibilityState === "hidden") left();
      else since = Date.now();
    };
    document.addEventListener("visibilitychange", turned);
    return () => {
      document.removeEventListener("visibilitychange", turned);
      left();
    };
  }, []);
}

/** The newest pages of the lists, and whatever ended since the last look, however long ago it began. */
function useEndedWork(since: number): Known<readonly Ended[]> {
  const tasks = bothKnown(useTasks().known, useEnded(since));
  return mapKnown(bothKnown(tasks, useSessions(false).known), ([[newest, late], sessions]) => {
    const known = [...new Map([...newest, ...late].map((task) => [task.id, task])).values()];
    const ended: Ended[] = [
      ...known
        .filter((task) => task.finished_at !== null && !task.foreground)
        .map((task) => ({ at: task.finished_at ?? 0, task })),
      ...sessions
        .filter((row) => row.turn_state && row.turn_state !== "open" && !isWorker(row, known) && row.state === "idle")
        .map((row) => ({ at: row.updated_at, row })),
    ];
    return ended.sort((a, b) => b.at - a.at).slice(0, MOST);
  });
}

export function SinceLastLook(): ReactNode {
  const mark = useStore(lookedAt);
  const ended = useEndedWork(mark);
  const hasNew = ended.state === "known" && ended.value.some((one) => one.at > mark);
  useLook(hasNew);
  return (
    <section className={shared.panel} aria-label="Since you last looked">
      <header>
        <h2>Since you last looked</h2>
        <span className={shared.faint}>{moment(mark)}</span>
        <AsOf known={ended} />
        <span className={shared.grow} />
        {hasNew && (
          <Button quiet small onClick={() => void markLooked().catch(toastError)}>
            Mark as seen
          </Button>
        )}
      </header>
      <Show known={ended} rows={3}>
        {(all) =>
          all.length === 0 ? (
            <Empty title="Nothing has ended yet">Finished turns and tasks are listed here, newest first.</Empty>
          ) : (
            <div className={styles.events}>
              {all
                .filter((one) => one.at > mark)
                .map((one) => (
                  <Row key={idOf(one)} one={one} fresh />
                ))}
              <div className={`${line.line} ${styles.event}`}>
                <span className={`${line.knot} ${styles.hereKnot} ${line.you}`} />
                <span>
                  <b>You were here</b>
                </span>
                <time>{moment(mark)}</time>
              </div>
              {all
                .filter((one) => one.at <= mark)
                .map((one) => (
                  <Row key={idOf(one)} one={one} fresh={false} />
                ))}
            </div>
          )
        }
      </Show>
    </section>
  );
}

const idOf = (one: Ended): string => ("task" in one ? one.task.id : one.row.id);

function Row({ one, fresh }: { readonly one: Ended; readonly fresh: boolean }): ReactNode {
  const state = "task" in one ? taskState(one.task) : rowState(one.row);
  const of = "task" in one ? "task" : "session";
  return (
    <div
      className={`${line.line} ${styles.event} ${fresh ? line.away : ""}`}
      data-fresh={fresh || undefined}
      data-why={`${of}/${idOf(one)}`}
    >
      <span className={`${line.knot} ${styles.knot}`} />
      <span className={shared.row}>
        <Chip state={state} />
        <Link
          className={`${shared.cut} ${"task" in one && one.task.kind === "process" ? shared.mono : ""}`}
          dir="auto"
          href={"task" in one ? `/tasks/${one.task.id}` : `/s/${one.row.id}`}
        >
          {"task" in one ? taskName(one.task) : one.row.title || "New session"}
        </Link>
        {state.word !== "Done" && <Why of={of} id={idOf(one)} />}
      </span>
      <Time at={one.at} />
      <span className={`${styles.detail} ${shared.cut}`}>
        {"task" in one ? howItEnded(one.task, false) : one.row.preview.replaceAll(/\s+/g, " ")}
      </span>
    </div>
  );
}
