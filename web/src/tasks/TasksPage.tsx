import { type ReactNode, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { bothKnown, type Known, knownValue } from "../api/known";
import type { Overview, TaskView } from "../api/types.gen";
import { Banners } from "../chat/Banner";
import { DrawerButton } from "../shell/drawer";
import { useOverview } from "../shell/queries";
import { plural } from "../text";
import { Bar } from "../ui/Bar";
import { Button, buttonClass } from "../ui/Button";
import { Empty, Loading } from "../ui/Empty";
import { useSettled, useTitle } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { AsOf, Unknown } from "../ui/Known";
import { SearchField } from "../ui/SearchField";
import { Segmented } from "../ui/Segmented";
import shared from "../ui/shared.module.css";
import { toast, toastError } from "../ui/toasts";
import { Prune } from "./Prune";
import { useOutputHits, useTasks } from "./queries";
import { StaleNote } from "./StaleNote";
import styles from "./TasksPage.module.css";
import { TasksTable } from "./TasksTable";
import { archiveWords, canRerun, canStop } from "./taskWords";
import { pinTask, rerunTask, stopTask } from "./useTaskActions";

const STATES = ["running", "failed", "stopped", "lost", "done"] as const;
const KINDS = [
  ["", "Any kind"],
  ["process", "Process"],
  ["agent", "Agent"],
  ["card", "Card"],
] as const;

export default function TasksPage(): ReactNode {
  const [state, setState] = useState("");
  const [kind, setKind] = useState("");
  const [text, setText] = useState("");
  const wanted = useSettled(text.trim(), 250);
  const tasks = useTasks(state, kind, wanted);
  const hits = useOutputHits(wanted);
  const shownHits = knownValue(hits);
  const found = bothKnown(tasks.known, hits); // that nothing fits is said only of both
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [pruning, setPruning] = useState(false);
  const overview = useOverview();
  const table = useRef<HTMLDivElement>(null);
  useTitle("Tasks");
  const filtered = state !== "" || kind !== "" || wanted !== "";
  const selected = tasks.rows.filter((task) => chosen.has(task.id));
  const chosenCount = chosen.size;
  useEffect(() => {
    if (chosenCount === 0) return;
    const key = (event: KeyboardEvent): void => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      if (document.querySelector("[role=menu], [role=dialog]")) return; // one Esc, one thing
      event.preventDefault();
      event.stopPropagation();
      setChosen(new Set());
    };
    document.addEventListener("keydown", key, true);
    return () => document.removeEventListener("keydown", key, true);
  }, [chosenCount]);
  return (
    <div className={shared.page}>
      <Bar>
        <h1>Tasks</h1>
        <span className={`${shared.faint} ${styles.totals}`}>
          <Totals known={overview} />
        </span>
        <span className={shared.grow} />
        <Button onClick={() => setPruning(true)}>Prune…</Button>
        <DrawerButton />
      </Bar>
      <Banners />
      <div className={styles.filters}>
        <Segmented name="State" className={styles.states}>
          <button type="button" aria-pressed={!state} onClick={() => setState("")}>
            All
          </button>
          {STATES.map((name) => (
            <button key={name} type="button" aria-pressed={state === name} onClick={() => setState(name)}>
              {name[0]?.toUpperCase()}
              {name.slice(1)} {countOf(overview, name)}
            </button>
          ))}
        </Segmented>
        <Segmented name="Kind">
          {KINDS.map(([name, word]) => (
            <button key={word} type="button" aria-pressed={kind === name} onClick={() => setKind(name)}>
              {word}
            </button>
          ))}
        </Segmented>
        <SearchField
          className={styles.search}
          name="Search commands, prompts and output"
          value={text}
          onChange={setText}
        />
      </div>
      {chosen.size > 0 && (
        <Selection
          tasks={selected}
          onDone={() => {
            setChosen(new Set());
            table.current?.focus(); // its buttons are gone
          }}
        />
      )}
      <StaleNote />
      {tasks.known.state === "known" && tasks.known.value.length + (shownHits?.length ?? 0) > 0 ? (
        <TasksTable tasks={tasks} hits={shownHits} chosen={chosen} onChoose={setChosen} box={table} />
      ) : found.state === "loading" ? (
        <Loading />
      ) : found.state === "unknown" ? (
        <Unknown reason={found.reason} />
      ) : (
        <Nothing filtered={filtered} searched={wanted !== ""} current={found.current} />
      )}
      {pruning && <Prune onClose={() => setPruning(false)} />}
    </div>
  );
}

/** Nothing is counted that was not heard. */
function Totals({ known }: { readonly known: Known<Overview> }): ReactNode {
  if (known.state !== "known") return null;
  return (
    <>
      {archiveWords(known.value.tasks)} <AsOf known={known} />
    </>
  );
}

function countOf(overview: Known<Overview>, state: string): string {
  const totals = knownValue(overview)?.tasks;
  return totals ? String(totals.find((one) => one.state === state)?.count ?? 0) : "";
}

function Nothing({
  filtered,
  searched,
  current,
}: {
  readonly filtered: boolean;
  readonly searched: boolean;
  readonly current: boolean;
}): ReactNode {
  if (searched)
    return (
      <Empty title="Nothing fits">
        Of each output the first and last 512 KiB were searched, of a running one the last 1 MiB. The page of a task
        searches all of its output.
      </Empty>
    );
  if (filtered) return <Empty title="Nothing fits">Choose another state or kind.</Empty>;
  return (
    <Empty
      title={current ? "No task yet" : "There was no task when the gateway was last heard"}
      action={
        <Link className={buttonClass()} href="/new">
          New session
        </Link>
      }
    >
      Background work is listed here with its output until it is pruned. “Run in background” next to Send starts a task.
    </Empty>
  );
}

/** What can be done with the chosen tasks, with how many of them; what cannot be done with any is not offered. */
function Selection({ tasks, onDone }: { readonly tasks: readonly TaskView[]; readonly onDone: () => void }): ReactNode {
  const running = tasks.filter(canStop);
  const ended = tasks.filter(canRerun);
  const pinned = tasks.filter((task) => task.pinned);
  const unpinned = tasks.filter((task) => !task.pinned);
  const act = (of: readonly TaskView[], done: string, work: (task: TaskView) => Promise<unknown>): void => {
    void Promise.allSettled(of.map(work)).then((results) => {
      const failed = results.filter((result) => result.status === "rejected");
      const count = results.length - failed.length;
      if (count > 0) toast("done", `${plural(count, "task")} ${done}`);
      if (failed[0]) toastError(failed[0].reason);
    });
    onDone();
  };
  return (
    <div className={styles.selection} role="region" aria-label="Chosen tasks">
      <span className={shared.grow}>{tasks.length} chosen</span>
      {running.length > 0 && (
        <Button small danger onClick={() => act(running, "asked to stop", (task) => stopTask(task))}>
          <Icon name="stop" />
          Stop {running.length}
        </Button>
      )}
      {ended.length > 0 && (
        <Button small onClick={() => act(ended, "started again", rerunTask)}>
          <Icon name="refresh" />
          Run {ended.length} again
        </Button>
      )}
      {unpinned.length > 0 && (
        <Button small onClick={() => act(unpinned, "pinned", (task) => pinTask(task, true))}>
          <Icon name="pin" />
          Pin {unpinned.length}
        </Button>
      )}
      {pinned.length > 0 && (
        <Button small onClick={() => act(pinned, "unpinned", (task) => pinTask(task, false))}>
          Unpin {pinned.length}
        </Button>
      )}
      <Button small quiet icon aria-label="Choose none" onClick={onDone}>
        <Icon name="close" />
      </Button>
    </div>
  );
}
