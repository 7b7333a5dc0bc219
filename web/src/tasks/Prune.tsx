import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { call } from "../api/http";
import { queryClient } from "../api/queryClient";
import type { PruneResult, PruneTasks } from "../api/types.gen";
import { plural, size } from "../text";
import { Confirm } from "../ui/Confirm";
import shared from "../ui/shared.module.css";
import { toast, toastError } from "../ui/toasts";
import styles from "./Prune.module.css";

const DAY = 86_400_000;
const LISTED = 100;

/** What will go is shown before its button is live; before it is known, nothing is said of it. */
export function Prune({ onClose }: { readonly onClose: () => void }): ReactNode {
  const [days, setDays] = useState("7");
  const [state, setState] = useState("");
  const age = days.trim() === "" ? Number.NaN : Number(days);
  const wanted: PruneTasks = {
    older_than_ms: age * DAY,
    ...(state ? { state: state as NonNullable<PruneTasks["state"]> } : {}),
  };
  const preview = useQuery({
    queryKey: ["prune", wanted],
    staleTime: 0,
    enabled: age >= 0,
    queryFn: () => call("POST /v1/tasks/prune", { body: wanted }),
  });
  const found = preview.isError ? undefined : preview.data;
  const prune = (): void => {
    void call("POST /v1/tasks/prune", { body: { ...wanted, confirm: true } }).then((gone) => {
      toast("done", `${plural(gone.count, "task")} deleted`, `${size(gone.bytes)} of output`);
      for (const name of ["tasks", "overview"]) void queryClient.invalidateQueries({ queryKey: [name] });
    }, toastError);
    onClose();
  };
  return (
    <Confirm
      title="Prune ended tasks"
      verb={found?.count ? `Delete ${plural(found.count, "task")}` : "Delete"}
      disabled={!found?.count}
      onNo={onClose}
      onYes={prune}
    >
      <div className={styles.conditions}>
        <label>
          Older than, days
          <input
            className={shared.input}
            type="number"
            min={0}
            value={days}
            onChange={(event) => setDays(event.target.value)}
          />
        </label>
        <label>
          State
          <select className={shared.input} value={state} onChange={(event) => setState(event.target.value)}>
            <option value="">any</option>
            <option>done</option>
            <option>failed</option>
            <option>stopped</option>
            <option>lost</option>
          </select>
        </label>
      </div>
      <p role="status">{previewWords(age, found, preview.isError ? preview.error.message : "")}</p>
      {found && found.count > 0 && (
        <ul className={styles.list} aria-label="What will be deleted">
          {found.tasks.slice(0, LISTED).map((task) => (
            <li key={task.id} className={shared.cut}>
              {task.title}
            </li>
          ))}
          {found.count > LISTED && <li>and {plural(found.count - LISTED, "more task")}</li>}
        </ul>
      )}
    </Confirm>
  );
}

function previewWords(age: number, found: PruneResult | undefined, problem: string): string {
  if (!(age >= 0)) return "Say how old a task must be: a number of days.";
  if (problem) return problem;
  if (!found) return "Counting…";
  if (found.count === 0) return "No ended task fits. Pinned and running tasks are always kept.";
  const gone = `${plural(found.count, "task")} and ${size(found.bytes)}`;
  return `${gone} will be deleted permanently. Pinned and running tasks are kept.`;
}
