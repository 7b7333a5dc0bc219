import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { call } from "../api/http";
import { queryClient } from "../api/queryClient";
import type { PruneTasks } from "../api/types.gen";
import { plural, size } from "../text";
import { Confirm } from "../ui/Confirm";
import { toast, toastError } from "../ui/toasts";

const DAY = 86_400_000;

/** What will go is shown before its button is live. */
export function Prune({ onClose }: { readonly onClose: () => void }): ReactNode {
  const [days, setDays] = useState("7");
  const [state, setState] = useState("");
  const wanted: PruneTasks = {
    older_than_ms: Math.max(0, Number(days) || 0) * DAY,
    ...(state ? { state: state as NonNullable<PruneTasks["state"]> } : {}),
  };
  const preview = useQuery({
    queryKey: ["prune", wanted],
    staleTime: 0,
    queryFn: () => call("POST /v1/tasks/prune", { body: wanted }),
  });
  const count = preview.data?.count ?? 0;
  const prune = (): void => {
    void call("POST /v1/tasks/prune", { body: { ...wanted, confirm: true } }).then((gone) => {
      toast("done", `${plural(gone.count, "task")} deleted`, `${size(gone.bytes)} of output`);
      void queryClient.invalidateQueries({ queryKey: ["tasks"] });
    }, toastError);
    onClose();
  };
  return (
    <Confirm
      title="Prune ended tasks"
      verb={`Delete ${plural(count, "task")}`}
      disabled={count === 0}
      onNo={onClose}
      onYes={prune}
    >
      <div className="flex gap-3 items-end my-3">
        <label className="flex flex-col gap-1">
          Older than, days
          <input
            className="input w-28"
            type="number"
            min={0}
            value={days}
            onChange={(event) => setDays(event.target.value)}
          />
        </label>
        <label className="flex flex-col gap-1">
          State
          <select className="input w-32" value={state} onChange={(event) => setState(event.target.value)}>
            <option value="">any</option>
            <option>done</option>
            <option>failed</option>
            <option>stopped</option>
            <option>lost</option>
          </select>
        </label>
      </div>
      <p>
        {preview.isLoading
          ? "Counting…"
          : preview.isError
            ? preview.error.message
            : `${plural(count, "task")} and ${size(preview.data?.bytes ?? 0)} of output will be deleted permanently. Pinned and running tasks are kept.`}
      </p>
      {count > 0 && (
        <ul className="mt-2 max-h-52 overflow-auto mono text-12">
          {preview.data?.tasks.slice(0, 100).map((task) => (
            <li key={task.id} className="cut">
              {task.title}
            </li>
          ))}
        </ul>
      )}
    </Confirm>
  );
}
