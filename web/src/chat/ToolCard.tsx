import { useQuery } from "@tanstack/react-query";
import { createContext, memo, type ReactNode, useContext, useState } from "react";
import { Link } from "wouter";
import { call as ask } from "../api/http";
import type { TaskView } from "../api/types.gen";
import type { CallView } from "../log/model";
import { TaskChip } from "../tasks/TaskChip";
import { duration, plural } from "../text";
import { AnsiText } from "../ui/AnsiText";
import { styledLines } from "../ui/ansi";
import { Button } from "../ui/Button";
import { visible } from "../ui/blocks";
import { Chip } from "../ui/Chip";
import { Icon } from "../ui/Icon";
import shared from "../ui/shared.module.css";
import { CALLS, type State } from "../ui/states";
import { Since } from "../ui/Time";
import { Why } from "../ui/Why";
import { foldedCalls } from "./foldedCalls";
import styles from "./ToolCard.module.css";

const LINES = 12;
const TAIL_LINES = 6;
const TAIL_MS = 1000;
const MOST_LINES = 2000;

/** The tasks of the session by the call that started them. */
export const TasksOfCalls = createContext<ReadonlyMap<string, TaskView>>(new Map());

/** Neighbouring calls share a frame; many that went well fold. */
export function Calls({
  calls,
  session,
}: {
  readonly calls: readonly CallView[];
  readonly session: string;
}): ReactNode {
  const [open, setOpen] = useState(false);
  const hidden = open ? [] : foldedCalls(calls);
  const took = hidden.reduce((sum, call) => sum + (call.durationMs ?? 0), 0);
  return (
    <div className={styles.calls}>
      {hidden.length > 0 && (
        <button type="button" className={styles.fold} aria-expanded={false} onClick={() => setOpen(true)}>
          <Icon name="right" />
          {plural(hidden.length, "earlier call")}, all done, {duration(took)}
        </button>
      )}
      {calls
        .filter((call) => !hidden.includes(call))
        .map((call) => (
          <ToolCard key={call.call} call={call} session={session} />
        ))}
    </div>
  );
}

/** The call in one line, as a person would say it. */
export const callLine = (call: CallView): string => visible(inOneLine(call));

const MAIN = ["command", "path", "prompt", "text", "question", "pattern", "action"] as const;

function inOneLine(call: CallView): string {
  try {
    const given = JSON.parse(call.arguments) as Record<string, unknown>;
    const main = MAIN.map((name) => given[name]).find((value) => value !== undefined);
    if (typeof main === "string") return call.tool === "terminal" ? main : `${call.tool} ${main}`;
    const rest = Object.values(given)
      .filter((value) => typeof value === "string" || typeof value === "number")
      .join(" ");
    return `${call.tool} ${rest}`.trim();
  } catch {
    return `${call.tool} ${call.arguments}`.trim();
  }
}

export const prettyArguments = (text: string): string => visible(pretty(text));

function pretty(text: string): string {
  try {
    const given = JSON.parse(text) as unknown;
    if (given === null || typeof given !== "object") return text;
    return Object.entries(given)
      .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
      .join("\n");
  } catch {
    return text;
  }
}

/** How it ended, in a word or two: the exit code of a command always. */
function endWords(call: CallView): string {
  if (call.detail) return call.detail;
  return call.exitCode === null ? "" : `exit code ${call.exitCode}`;
}

const ToolCard = memo(function ToolCard({
  call,
  session,
}: {
  readonly call: CallView;
  readonly session: string;
}): ReactNode {
  const [chosen, setOpen] = useState<boolean | null>(null);
  const open = chosen ?? (call.state === "failed" || call.state === "unknown");
  const task = useContext(TasksOfCalls).get(call.call);
  const line = callLine(call);
  const known = call.state !== "queued";
  const id = call.task || task?.id || "";
  return (
    <div
      className={`${styles.tool} ${call.state === "unknown" ? styles.unknown : ""}`}
      role="group"
      aria-label={`Call of ${call.tool}: ${line.slice(0, 80)}`}
    >
      <div className={styles.head}>
        <Chip state={CALLS[call.state] as State} />
        <span className={`${styles.line} ${shared.cut} ${shared.grow}`} title={line}>
          {line}
        </span>
        <span className={styles.took}>
          {[endWords(call), call.durationMs === null ? "" : duration(call.durationMs)].filter(Boolean).join(" · ")}
          {call.durationMs === null && call.startedAt !== null && call.state === "running" && (
            <Since at={call.startedAt} />
          )}
        </span>
        {call.state === "started" && task && <TaskChip task={task} />}
        {call.state === "unknown" && <Why of="session" id={session} />}
        <Button
          quiet
          small
          icon
          aria-expanded={open}
          disabled={!known}
          aria-label={`${open ? "Hide" : "Show"} details of ${call.tool}`}
          onClick={() => setOpen(!open)}
        >
          <Icon name={open ? "down" : "right"} />
        </Button>
      </div>
      {open && <div className={styles.arguments}>{prettyArguments(call.arguments)}</div>}
      {call.state === "running" && task?.kind === "process" && <Tail task={task.id} />}
      {open && <Output call={call} />}
      <Footer call={call} open={open} task={id} />
    </div>
  );
});

/** The last lines of a command that runs. */
function Tail({ task }: { readonly task: string }): ReactNode {
  const found = useQuery({
    queryKey: ["tail", task],
    queryFn: () => ask("GET /v1/tasks/{id}/output", { path: { id: task }, query: { tail: TAIL_LINES } }),
    refetchInterval: TAIL_MS,
  }).data;
  const text = found?.text.replace(/\n+$/, "");
  return text ? <Lines text={text} name="Last lines" /> : null;
}

/** What the agent read has no colours; the gateway keeps the output that had some. */
function useColoured(call: CallView): string {
  const found = useQuery({
    queryKey: ["coloured", call.task],
    enabled: call.tool === "terminal" && call.task !== "" && call.state !== "started",
    staleTime: Infinity,
    queryFn: () => ask("GET /v1/tasks/{id}/output", { path: { id: call.task }, query: { tail: MOST_LINES } }),
  }).data?.text;
  if (!found?.includes("\u001b[")) return call.output;
  const remarks = /(?:\n\[[^\n]*\])+\s*$/.exec(call.output)?.[0] ?? ""; // what the runtime says below it
  return found.replace(/\n+$/, "") + remarks;
}

function Output({ call }: { readonly call: CallView }): ReactNode {
  const [all, setAll] = useState(false);
  const output = useColoured(call).replace(/\n+$/, "");
  if (!output) return null;
  const lines = output.split("\n");
  const shown = all ? lines : lines.slice(-LINES);
  return (
    <Lines text={shown.join("\n")} name={`Output of ${call.tool}`}>
      {lines.length > shown.length && (
        <button type="button" className={shared.linkButton} onClick={() => setAll(true)}>
          {plural(lines.length - shown.length, "line")} before
        </button>
      )}
    </Lines>
  );
}

function Lines({
  text,
  name,
  children,
}: {
  readonly text: string;
  readonly name: string;
  readonly children?: ReactNode;
}): ReactNode {
  return (
    <div className={styles.output} tabIndex={0} role="group" aria-label={name} dir="ltr">
      {children}
      {styledLines(text).map(({ line, style }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines of a text that only grows
        <div key={index}>
          <AnsiText text={line} style={style} />
          {line === "" && "\n"}
        </div>
      ))}
    </div>
  );
}

function Footer({
  call,
  open,
  task,
}: {
  readonly call: CallView;
  readonly open: boolean;
  readonly task: string;
}): ReactNode {
  const unknown = call.state === "unknown";
  const runs = call.state === "running" || call.state === "started";
  if (!(open && (task || call.files.length > 0 || unknown)) && !(runs && task)) return null;
  const changed = call.files.length > 0 ? `Changed: ${call.files.join(", ")}` : "";
  return (
    <div className={styles.foot}>
      <span className={`${shared.cut} ${shared.grow}`}>
        {unknown ? "It may or may not have happened. It was not repeated." : changed}
      </span>
      {task && <Link href={`/tasks/${task}`}>Open task</Link>}
    </div>
  );
}
