/** The steps of a turn: what the model was asked, what it said, which tools it called. */
import type {
  Delta,
  LogRecord,
  ModelFailed,
  ModelInterrupted,
  ModelRequested,
  ModelResponded,
  ToolCallFinished,
  ToolCallStarted,
} from "../api/types.gen";
import type { Draft } from "./draft";
import type { CallView, Item, OpenTurn, SessionView, StepItem } from "./model";

type StepEvent = ModelRequested | ModelResponded | ModelInterrupted | ModelFailed | ToolCallStarted | ToolCallFinished;

export function stepHappened(view: Draft, record: LogRecord, event: StepEvent): void {
  const { version, at } = record;
  const here = { key: `v${version}`, version, at };
  switch (event.kind) {
    case "ModelRequested":
      dropEmptyLive(view);
      askedAgain(view, event.turn, event.step);
      view.model = event.model;
      view.spoken = { text: 0, thinking: 0 };
      view.items.push({
        ...here,
        kind: "step",
        turn: event.turn,
        step: event.step,
        who: view.profile,
        model: event.model,
        text: "",
        thinking: "",
        thinkingMs: 0,
        calls: [],
        live: true,
        cut: "",
        again: false,
        problem: null,
        finish: "",
        askedAt: at,
        usage: null,
      });
      break;
    case "ModelResponded": {
      const calls = event.calls.map(
        (call): CallView => ({
          ...call,
          state: "queued",
          startedAt: null,
          durationMs: null,
          output: "",
          files: [],
          task: "",
          detail: "",
          exitCode: null,
          signal: "",
        }),
      );
      const said = {
        text: event.text,
        thinking: event.thinking,
        thinkingMs: event.thinking_ms ?? 0,
        finish: event.finish_reason,
        calls,
        live: false,
        usage: event.usage,
        version,
        at,
      };
      const change = { ...said, cut: event.finish_reason === "length" ? "the model's length limit" : "" };
      if (!changeStep(view, event.turn, event.step, change)) {
        view.items.push({
          ...here,
          kind: "step",
          turn: event.turn,
          step: event.step,
          who: view.profile,
          model: view.model,
          problem: null,
          askedAt: at,
          again: false,
          ...change,
        });
      }
      if (event.text.trim()) view.messages.push(version);
      if (view.turn) view.turn = spent(view.turn, event.usage);
      view.context = (event.usage.input_tokens ?? 0) + (event.usage.output_tokens ?? 0) || view.context;
      break;
    }
    case "ModelInterrupted":
      if (!event.text && !event.thinking) dropLive(view, event.turn, event.step);
      else
        changeStep(view, event.turn, event.step, {
          text: event.text,
          thinking: event.thinking,
          live: false,
          cut: event.reason || "it was interrupted",
          version,
          at,
        });
      break;
    case "ModelFailed":
      changeStep(view, event.turn, event.step, {
        live: false,
        problem: event.problem,
        text: event.text ?? "",
        version,
        at,
      });
      break;
    case "ToolCallStarted":
      changeCall(view, event.call, { state: "running", startedAt: at });
      break;
    case "ToolCallFinished":
      changeCall(view, event.call, {
        ...callResult(event),
        exitCode: event.exit_code ?? null,
        signal: event.signal ?? "",
        output: event.output,
        durationMs: event.duration_ms,
        files: event.files ?? [],
        task: event.task ?? "",
      });
      break;
  }
}

/** A piece of an answer that is being spoken: it belongs to the live step, at its offset, once. */
export function spoken(view: SessionView, delta: Delta): SessionView {
  const index = liveStep(view.items);
  const step = view.items[index];
  if (step?.kind !== "step" || step.turn !== delta.turn || step.step !== delta.step) return view;
  const text = joined(step.text, view.spoken.text, delta.offset, delta.text);
  const thinking = joined(step.thinking, view.spoken.thinking, delta.thinking_offset, delta.thinking);
  if (text === null || thinking === null) return view; // a piece is missing; the whole answer comes as an event
  const items = [...view.items];
  items[index] = { ...step, text: text.whole, thinking: thinking.whole };
  return { ...view, items, spoken: { text: text.length, thinking: thinking.length } };
}

function joined(
  known: string,
  length: number,
  offset: number,
  piece: string,
): { whole: string; length: number } | null {
  if (offset > length) return null;
  const points = [...piece];
  if (offset + points.length <= length) return { whole: known, length }; // heard before
  const fresh = points.slice(length - offset);
  return { whole: known + fresh.join(""), length: offset + points.length };
}

/** Where the step stands that is being spoken; it is in the open turn, so the search ends with that. */
function liveStep(items: readonly Item[]): number {
  for (let index = items.length - 1; index >= 0; index--) {
    const item = items[index];
    if (item?.kind === "end") return -1;
    if (item?.kind === "step" && item.live) return index;
  }
  return -1;
}

function changeStep(view: Draft, turn: number, step: number, change: Partial<StepItem>): boolean {
  const index = liveStep(view.items);
  const known = view.items[index];
  if (known?.kind !== "step" || known.turn !== turn || known.step !== step) return false;
  view.items[index] = { ...known, ...change };
  return true;
}

export function dropEmptyLive(view: Draft): void {
  const index = liveStep(view.items);
  const step = view.items[index];
  if (step?.kind !== "step") return;
  if (step.text || step.thinking) view.items[index] = { ...step, live: false, cut: "it was interrupted" };
  else view.items.splice(index, 1);
}

/** What was cut or failed before is tried once more. */
function askedAgain(view: Draft, turn: number, step: number): void {
  for (let index = view.items.length - 1; index >= 0; index--) {
    const item = view.items[index];
    if (item?.kind === "end") return;
    if (item?.kind !== "step") continue;
    if (item.turn === turn && item.step === step) view.items[index] = { ...item, again: true };
    return;
  }
}

/** Nothing came of a request. */
function dropLive(view: Draft, turn: number, step: number): void {
  const index = liveStep(view.items);
  const known = view.items[index];
  if (known?.kind === "step" && known.turn === turn && known.step === step) view.items.splice(index, 1);
}

function changeCall(view: Draft, call: string, change: Partial<CallView>): void {
  for (let index = view.items.length - 1; index >= 0; index--) {
    const item = view.items[index];
    if (item?.kind !== "step" || !item.calls.some((known) => known.call === call)) continue;
    const calls = item.calls.map((known) => (known.call === call ? { ...known, ...change } : known));
    view.items[index] = { ...item, calls };
    return;
  }
}

export function findCall(view: Draft, call: string): CallView | null {
  for (let index = view.items.length - 1; index >= 0; index--) {
    const item = view.items[index];
    const found = item?.kind === "step" ? item.calls.find((known) => known.call === call) : undefined;
    if (found) return found;
  }
  return null;
}

function spent(
  turn: OpenTurn,
  usage: { input_tokens?: number; output_tokens?: number; cost?: number | null },
): OpenTurn {
  const cost = usage.cost ?? null;
  return {
    ...turn,
    tokensIn: turn.tokensIn + (usage.input_tokens ?? 0),
    tokensOut: turn.tokensOut + (usage.output_tokens ?? 0),
    cost: cost === null ? turn.cost : (turn.cost ?? 0) + cost,
  };
}

/** How a call ended, as people see it: a command that failed looks failed. `detail` is its exit code or signal. */
export function callResult(event: ToolCallFinished): Pick<CallView, "state" | "detail"> {
  const detail = event.signal || (event.exit_code ? `exit code ${event.exit_code}` : "");
  if (event.stopped) return { state: "stopped", detail };
  if (event.outcome !== "done") return { state: event.outcome, detail };
  if (event.running) return { state: "started", detail: "" };
  return { state: detail ? "failed" : "done", detail };
}
