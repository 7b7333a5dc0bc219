import { memo, type ReactNode, useState } from "react";
import { Link } from "wouter";
import type { CallView } from "../log/model";
import { spans } from "../tasks/ansi";
import { duration, plural } from "../text";
import { visible } from "../ui/blocks";
import { Chip } from "../ui/Chip";
import { Icon } from "../ui/Icon";
import { CALLS, type State } from "../ui/states";
import { Since } from "../ui/Time";
import { Why } from "../ui/Why";

const LINES = 12;
const FOLD = 6;

/** Neighbouring calls share a frame; many that went well fold. */
export function Calls({
  calls,
  session,
}: {
  readonly calls: readonly CallView[];
  readonly session: string;
}): ReactNode {
  const [open, setOpen] = useState(false);
  const finished = calls.filter((call) => call.state === "done" || call.state === "started");
  const folds = !open && finished.length >= FOLD;
  const hidden = folds ? finished.slice(0, -1) : [];
  const took = hidden.reduce((sum, call) => sum + (call.durationMs ?? 0), 0);
  return (
    <div className="calls">
      {folds && (
        <button type="button" className="fold tool !flex w-full px-3 h-8" onClick={() => setOpen(true)}>
          <Icon name="right" />
          {plural(hidden.length, "earlier call")}, none failed, {duration(took)}
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

function inOneLine(call: CallView): string {
  try {
    const given = JSON.parse(call.arguments) as Record<string, unknown>;
    const main = given.command ?? given.path ?? given.prompt ?? given.question ?? given.pattern ?? given.action;
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

const ToolCard = memo(function ToolCard({
  call,
  session,
}: {
  readonly call: CallView;
  readonly session: string;
}): ReactNode {
  const [chosen, setOpen] = useState<boolean | null>(null);
  const open = chosen ?? (call.state === "failed" || call.state === "unknown");
  const [all, setAll] = useState(false);
  const state = CALLS[call.state] as State;
  const output = call.output.replace(/\n+$/, "");
  const lines = output.split("\n");
  const shown = all ? lines : lines.slice(-LINES);
  const line = callLine(call);
  const took = call.durationMs === null ? null : duration(call.durationMs);
  const known = call.state !== "queued";
  return (
    <div className={`tool ${call.state === "unknown" ? "unknown" : ""}`}>
      <header>
        <Chip state={state} />
        <span className="cmd cut grow" title={line}>
          {line}
        </span>
        <span className="took">
          {call.detail && `${call.detail} · `}
          {took ?? (call.startedAt !== null && call.state === "running" ? <Since at={call.startedAt} /> : "")}
        </span>
        {call.state === "unknown" && <Why of="session" id={session} />}
        <button
          type="button"
          className="btn quiet small icon"
          aria-expanded={open}
          disabled={!known}
          aria-label={`${open ? "Hide" : "Show"} details of ${call.tool}`}
          onClick={() => setOpen(!open)}
        >
          <Icon name={open ? "down" : "right"} />
        </button>
      </header>
      {open && (
        <>
          <div className="args">{prettyArguments(call.arguments)}</div>
          {output && (
            <div className="out" tabIndex={0} role="region" aria-label={`Output of ${call.tool}`}>
              {lines.length > shown.length && (
                <button type="button" className="why" onClick={() => setAll(true)}>
                  {plural(lines.length - shown.length, "line")} before
                </button>
              )}
              {shown.map((text, index) => (
                <div key={index}>
                  {spans(text).map((span, at) => (
                    <span key={at} className={span.look}>
                      {span.text}
                    </span>
                  ))}
                  {text === "" && "\n"}
                </div>
              ))}
            </div>
          )}
          {(call.task || call.files.length > 0 || call.state === "unknown") && (
            <footer>
              <span className="cut grow">
                {call.state === "unknown"
                  ? "It may or may not have happened. It was not repeated."
                  : call.files.length > 0
                    ? `Changed: ${call.files.join(", ")}`
                    : ""}
              </span>
              {call.task && <Link href={`/tasks/${call.task}`}>Open task</Link>}
            </footer>
          )}
        </>
      )}
      {!open && call.task && call.state === "running" && (
        <footer>
          <span className="grow" />
          <Link href={`/tasks/${call.task}`}>Open task</Link>
        </footer>
      )}
    </div>
  );
});
