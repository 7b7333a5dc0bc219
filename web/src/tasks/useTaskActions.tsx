/** What can be done with a task, for its page and for its row: nothing that cannot be done is offered. */
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { call } from "../api/http";
import { queryClient } from "../api/queryClient";
import type { TaskView } from "../api/types.gen";
import { type Tell, tellEntries } from "../tell";
import { size } from "../text";
import { Confirm } from "../ui/Confirm";
import type { MenuEntry } from "../ui/Menu";
import { toast, toastError } from "../ui/toasts";
import { download } from "./download";
import { refreshTask } from "./queries";
import { canBeTold, canKill, canRerun, canStop, hasOutput } from "./taskWords";

export interface TaskActions {
  readonly stop: () => void;
  readonly pin: () => void;
  /** What else to be told of its end, if it can be chosen here. */
  readonly tell: readonly MenuEntry[];
  readonly rerun: () => void;
  readonly copyLink: () => void;
  readonly save: () => void;
  readonly askToKill: () => void;
  readonly entries: readonly MenuEntry[];
  /** The question before a kill, while it is asked. */
  readonly question: ReactNode;
}

const refresh = (id: string): void => {
  void queryClient.invalidateQueries({ queryKey: ["task", id] });
  void refreshTask(id);
};

export const stopTask = async (task: TaskView, force = false): Promise<void> => {
  await call("POST /v1/tasks/{id}/stop", { path: { id: task.id }, body: { force } });
  refresh(task.id);
};

export const pinTask = async (task: TaskView, pinned: boolean): Promise<void> => {
  await call("POST /v1/tasks/{id}/pin", { path: { id: task.id }, body: { pinned } });
  refresh(task.id);
};

const tellTask = async (task: TaskView, tell: Tell): Promise<void> => {
  await call("POST /v1/tasks/{id}/tell", { path: { id: task.id }, body: { tell } });
  refresh(task.id);
};

export const rerunTask = async (task: TaskView): Promise<string> =>
  (await call("POST /v1/tasks/{id}/rerun", { path: { id: task.id } })).task;

export function useTaskActions(task: TaskView): TaskActions {
  const [killing, setKilling] = useState(false);
  const [, go] = useLocation();
  const stop = (force = false): void => void stopTask(task, force).catch(toastError);
  const pin = (): void => void pinTask(task, !task.pinned).catch(toastError);
  const tell = (choice: Tell): void => void tellTask(task, choice).catch(toastError);
  const rerun = (): void => void rerunTask(task).then((id) => go(`/tasks/${id}`), toastError);
  const copyLink = (): void =>
    void navigator.clipboard
      ?.writeText(`${location.origin}/tasks/${task.id}`)
      .then(() => toast("done", "Link copied"), toastError);
  const save = (): void => void download(task.id, `${task.id}.log`);
  const askToKill = (): void => setKilling(true);
  const telling = canBeTold(task) ? tellEntries(task.tell, tell) : [];
  const entries: readonly MenuEntry[] = [
    ...(canRerun(task) ? [{ word: "Run again", icon: "refresh", act: rerun }] : []),
    { word: task.pinned ? "Unpin" : "Pin", icon: "pin", act: pin },
    { word: "Copy link", icon: "link", act: copyLink },
    ...telling,
    ...(hasOutput(task)
      ? [{ word: `Download ${size(task.output_bytes - task.dropped_bytes)}`, icon: "download", act: save }]
      : []),
    ...(canStop(task) ? [{ word: "Stop", icon: "stop", danger: true, act: () => stop() }] : []),
    ...(canKill(task) ? [{ word: "Kill…", icon: "stop", danger: true, act: askToKill }] : []),
  ];
  const question = killing && (
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
  );
  return { stop: () => stop(), pin, tell: telling, rerun, copyLink, save, askToKill, entries, question };
}
