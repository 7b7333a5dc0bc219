/** How a task stands, the same on every page. */
import type { ReactNode } from "react";
import type { TaskView } from "../api/types.gen";
import { useWaiting } from "../shell/queries";
import { Chip } from "../ui/Chip";
import { STALE, type State, taskState } from "../ui/states";

export function useTaskState(task: TaskView): State {
  const waiting = useWaiting();
  return taskState(task, waiting);
}

export function TaskChip({ task }: { readonly task: TaskView }): ReactNode {
  const state = useTaskState(task);
  return <Chip state={task.stale ? STALE : state} />;
}
