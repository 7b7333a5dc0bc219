/** What is said of a task, and what can be done with it. */
import type { TaskCount, TaskView } from "../api/types.gen";
import { asYou, byWhom, moment, plural, size, withoutMarkdown } from "../text";

/** Who stopped it, for "stopped by you"; empty if it ended by itself. */
export function stoppedBy(task: Pick<TaskView, "ended_by">): string {
  const [, who = "", how] = /^(.*?)(?: \((.*)\))?$/.exec(task.ended_by) ?? [];
  if (who === "") return "";
  return `stopped by ${byWhom(who)}${how ? ` (${how})` : ""}`;
}

/** How it ended, in the words of whoever reads it: nobody is called "web". */
export function endWords(task: Pick<TaskView, "state" | "reason" | "exit_code" | "ended_by">): string {
  const reason = asYou(task.reason).replace(/^blocked \([\w ]+\): /, ""); // the chip says the rest
  if (reason) return reason;
  const stopped = stoppedBy(task);
  if (stopped) return stopped;
  return task.exit_code === null ? "unknown" : `exit code ${task.exit_code}`;
}

/** The exit code: a number, "unknown" if nobody saw it, or "–" where there is none. */
export function exitWords(task: Pick<TaskView, "kind" | "state" | "exit_code" | "signal">): string {
  if (task.exit_code !== null) return String(task.exit_code);
  if (task.kind !== "process" || task.state === "running") return "–";
  return task.signal || (task.state === "lost" ? "unknown" : "–");
}

/** How it was started: by a person, by an agent, by the board. */
export type Starter = "you" | "agent" | "board" | "other";

export function starter(task: Pick<TaskView, "started_by" | "kind">): Starter {
  if (task.kind === "card") return "board";
  if (byWhom(task.started_by) === "you") return "you";
  if (/^(the agent of session|run \d+ of card)/.test(task.started_by)) return "agent";
  return "other";
}

/** The session in which an external agent works by this process; empty for every other task. */
export const agentSession = (task: Pick<TaskView, "call" | "started_by" | "kind">): string =>
  (task.kind === "process" && task.call === "agent" && /^the agent of session (\w+)/.exec(task.started_by)?.[1]) || "";

/** Not ended, as far as anybody knows: `unknown` while its node is away. */
export const isOpen = (task: Pick<TaskView, "state">): boolean => task.state === "running" || task.state === "unknown";
export const canStop = (task: TaskView): boolean => isOpen(task);
export const canKill = (task: TaskView): boolean => canStop(task) && task.kind === "process";
/** Whether its end will be told by itself: the end of a card's run and of a session's turn is told by those. */
export const canBeTold = (task: TaskView): boolean =>
  task.kind === "agent" ? task.worker === task.id : task.kind === "process" && task.state === "running";
export const hasOutput = (task: TaskView): boolean => task.kind === "process" && task.output_bytes > 0;

/** An ended command, or an agent that had a session of its own. */
export const canRerun = (task: TaskView): boolean =>
  !isOpen(task) &&
  task.left_by === "" &&
  (task.kind === "process" || (task.kind === "agent" && task.worker === task.id));

/** How much is in the archive, as the gateway counts it. */
export function archiveWords(totals: readonly TaskCount[]): string {
  const sum = (of: "count" | "bytes"): number => totals.reduce((all, one) => all + one[of], 0);
  return `${plural(sum("count"), "task")}, ${size(sum("bytes"))} of output`;
}

export function howItEnded(task: TaskView, when = true): string {
  const parts = when ? [moment(task.finished_at ?? task.started_at)] : [];
  if (task.state === "stopped" && task.ended_by) parts.push(stoppedBy(task));
  else if (task.exit_code !== null) parts.push(`exit ${task.exit_code}`);
  else if (task.reason) parts.push(task.kind === "card" ? withoutMarkdown(endWords(task)) : endWords(task));
  if (task.output_bytes > 0) parts.push(size(task.output_bytes));
  return parts.join(" · ");
}
