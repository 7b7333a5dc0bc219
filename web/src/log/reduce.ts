/** The fold of one session: records and deltas in, a view out. Pure: the same log gives the same view. */
import type { Delta, InputReceived, InputRevised, LogRecord, NoticeItem, ToolCallFinished } from "../api/types.gen";
import { actorWords } from "../text";
import { chapterHappened } from "./chapters";
import type {
  CallView,
  Item,
  Message,
  Onward,
  OpenTurn,
  QueuedInput,
  SessionView,
  StepItem,
  Tone,
  WaitItem,
} from "./model";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
export type Draft = Mutable<Omit<SessionView, "items" | "queue" | "messages">> & {
  items: Item[];
  queue: QueuedInput[];
  messages: number[];
};

/** Fold records of this session in. What was folded before is left out; a gap is the caller's error. */
export function happened(view: SessionView, records: readonly LogRecord[]): SessionView {
  const fresh = records.filter((record) => record.version > view.version);
  if (fresh.length === 0) return view;
  const draft: Draft = { ...view, items: [...view.items], queue: [...view.queue], messages: [...view.messages] };
  for (const record of fresh) {
    if (record.version !== draft.version + 1) throw new Gap(draft.version + 1, record.version);
    fold(draft, record);
    draft.version = record.version;
  }
  return draft;
}

/** Something is missing in what came. */
export class Gap extends Error {
  constructor(wanted: number, got: number) {
    super(`Event ${wanted} is missing: ${got} came.`);
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

function fold(view: Draft, record: LogRecord): void {
  const { event, version, at } = record;
  const here = { key: `v${version}`, version, at };
  switch (event.kind) {
    case "SessionCreated":
      Object.assign(view, {
        title: event.title,
        profile: event.profile,
        cwd: event.cwd,
        parent: event.origin?.type === "forked" ? event.origin.parent : "",
        task: event.origin?.type === "delegated" ? event.origin.task : "",
      });
      if (event.origin?.type === "forked") notice(view, record, event);
      break;
    case "SessionRenamed":
      view.title = event.title;
      notice(view, record, event);
      break;
    case "SessionArchived":
      view.archived = true;
      notice(view, record, event);
      break;
    case "SessionRestored":
      view.archived = false;
      notice(view, record, event);
      break;
    case "SessionPinned":
      view.pinned = event.pinned;
      notice(view, record, event);
      break;
    case "AgentChosen":
      view.profile = event.profile;
      view.model = event.model;
      notice(view, record, event);
      break;
    case "TurnUndone":
      view.items = view.items.map((item) =>
        item.kind === "end" && item.turn === event.turn ? { ...item, undone: true } : item,
      );
      notice(view, record, event);
      break;
    case "FailureDismissed":
    case "ResetPolicySet":
      notice(view, record, event);
      break;
    case "ResetPostponed":
      notice(view, record, event, "warning");
      break;
    case "DriverOutputRead":
      break;
    case "InputReceived":
      if (!view.title) view.title = event.text.split("\n", 1)[0]?.slice(0, 80) ?? "";
      view.queue.push({
        input: event.input,
        version,
        at,
        text: event.text,
        mode: event.mode,
        by: actorWords(event.by),
        task: event.source === "task" ? (event.ref ?? "") : "",
        message: messageOf(event, version, at),
      });
      break;
    case "InputRevised":
      revise(view, event);
      break;
    case "InputWithdrawn":
      settle(view, [event.input], { state: "withdrawn", withdrawn_by: event.by });
      break;
    case "NoteReceived":
      view.items.push({
        ...here,
        kind: "note",
        text: event.text,
        task: event.task,
        message: {
          item: "note",
          version,
          at,
          text: event.text,
          task: event.task,
          input: "",
          state: "taken",
          turn: 0,
          revisions: [],
          withdrawn_by: null,
        },
      });
      break;
    case "TurnStarted":
      view.turn = {
        turn: event.turn,
        startedAt: at,
        stopping: false,
        suspended: false,
        task: "",
        tokensIn: 0,
        tokensOut: 0,
        cost: null,
      };
      view.wait = null;
      view.profile = event.profile;
      settle(view, event.inputs, { state: "taken", turn: event.turn });
      break;
    case "InputsJoined":
      settle(view, event.inputs, { state: "joined", turn: event.turn });
      break;
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
    case "WaitOpened":
      view.wait = view.items.length;
      view.items.push({
        ...here,
        kind: "wait",
        wait: event.wait,
        turn: event.turn,
        purpose: event.purpose,
        reason: event.reason,
        call: event.call ? findCall(view, event.call) : null,
        callId: event.call ?? "",
        choices: event.choices ?? [],
        pattern: event.pattern ?? "",
        shown: event.shown ?? [],
        until: event.until ?? null,
        otherwise: event.default ?? null,
        answer: null,
      });
      break;
    case "WaitAnswered":
      answered(view, event.wait, {
        text: event.answer,
        by: actorWords(event.by),
        actor: event.by,
        at,
        note: event.note ?? "",
      });
      break;
    case "StopRequested":
      if (view.turn) view.turn = { ...view.turn, stopping: true };
      notice(view, record, event);
      break;
    case "TurnBackgrounded":
      if (view.turn) view.turn = { ...view.turn, task: event.task };
      notice(view, record, event, "plain", { to: `/tasks/${event.task}`, word: "Open task" });
      break;
    case "TurnSuspended":
      if (view.turn) view.turn = { ...view.turn, suspended: true }; // how far its request came is told at the next start
      notice(view, record, event, "warning");
      break;
    case "TurnResumed":
      if (view.turn) view.turn = { ...view.turn, suspended: false };
      dropEmptyLive(view);
      notice(view, record, event, "warning");
      break;
    case "TurnFinished": {
      const turn = view.turn;
      dropEmptyLive(view);
      view.items.push({
        ...here,
        kind: "end",
        turn: event.turn,
        outcome: event.outcome,
        reason: event.reason,
        problem: event.problem ?? null,
        startedAt: turn?.startedAt ?? at,
        model: view.model,
        tokensIn: turn?.tokensIn ?? 0,
        tokensOut: turn?.tokensOut ?? 0,
        cost: turn?.cost ?? null,
        undone: false,
      });
      view.turn = null;
      view.wait = null;
      break;
    }
    case "ChapterOpened":
    case "ChapterRejoined":
    case "ToolResultsTrimmed":
    case "SummaryRequested":
    case "SummaryStarted":
    case "SummaryWritten":
    case "SummaryFailed":
      chapterHappened(view, record, event);
      break;
    case "RunBound":
      view.card = event.card;
      view.run = event.run;
      view.runs = { ...view.runs, [event.run]: version };
      if (event.cwd) view.cwd = event.cwd;
      notice(view, record, event, "plain", { to: `/card/${event.card}`, word: "Open card" });
      break;
    case "RunReleased":
      view.run = 0;
      notice(view, record, event, "plain", { to: `/card/${event.card}`, word: "Open card" });
      break;
    // Of other streams: never in a session's.
    case "SessionDeleted":
    case "TaskStarted":
    case "ProcessStarted":
    case "TaskBackgrounded":
    case "TaskResumed":
    case "TaskStopRequested":
    case "TaskPinned":
    case "TaskFinished":
    case "TaskPruned":
    case "TaskLifetimeSet":
    case "StaleListed":
    case "CardCreated":
    case "CardEdited":
    case "CardCommented":
    case "CardLinked":
    case "CardUnlinked":
    case "CardFollowed":
    case "CardMoved":
    case "CardBlocked":
    case "CardUnblocked":
    case "CardCompleted":
    case "RunStarted":
    case "RunReminded":
    case "RunHeartbeat":
    case "RunFinished":
    case "BoardCreated":
    case "BoardPaused":
    case "BoardResumed":
    case "BoardArchived":
    case "GatewayStarted":
    case "GatewayStopped":
      break;
    default:
      unheard(event);
  }
}

/** Of a gateway that is newer than this page: its version counts, and the banner asks to load the page anew. */
function unheard(_: never): void {
  return;
}

/** Reworded, steered or moved: places count from 1. */
function revise(view: Draft, change: InputRevised): void {
  const index = view.queue.findIndex((queued) => queued.input === change.input);
  const queued = view.queue[index];
  if (queued === undefined) return;
  view.queue.splice(index, 1);
  const text = change.text ?? queued.text;
  const mode = change.mode ?? queued.mode;
  const revisions = [...(queued.message.revisions ?? []), change];
  const message: Message =
    queued.message.item === "message"
      ? { ...queued.message, text, mode: change.mode ?? queued.message.mode, revisions }
      : { ...queued.message, text, revisions };
  const changed = { ...queued, text, mode, message };
  view.queue.splice(change.place == null ? index : change.place - 1, 0, changed);
}

/** An event that is a line of its own. */
export function notice(
  view: Draft,
  record: LogRecord,
  event: NoticeItem["event"],
  tone: Tone = "plain",
  onward: Onward | null = null,
): void {
  const { version, at } = record;
  view.items.push({ key: `v${version}`, version, at, kind: "notice", tone, onward, event });
}

/** A message as it arrives; what becomes of it is added later. */
function messageOf(event: InputReceived, version: number, at: number): Message {
  const queued = {
    version,
    at,
    input: event.input,
    text: event.text,
    state: "queued" as const,
    turn: 0,
    revisions: [],
    withdrawn_by: null,
  };
  const { source = "message", ref = "" } = event;
  return source === "task"
    ? { item: "note", ...queued, task: ref }
    : { item: "message", ...queued, by: event.by, mode: event.mode, source, ref };
}

/** Messages leave the queue and are shown: taken by a turn, joined to one, or withdrawn. */
function settle(view: Draft, inputs: readonly string[], fate: Pick<Message, "state" | "turn" | "withdrawn_by">): void {
  for (const input of inputs) {
    const index = view.queue.findIndex((queued) => queued.input === input);
    const queued = view.queue[index];
    if (queued === undefined) continue;
    view.queue.splice(index, 1);
    const { version, at, text, by, task } = queued;
    const key = `v${version}`;
    const message = { ...queued.message, ...fate };
    const withdrawnBy = fate.withdrawn_by ? actorWords(fate.withdrawn_by) : "";
    if (task) view.items.push({ key, version, at, kind: "note", text, task, message });
    else
      view.items.push({
        key,
        version,
        at,
        kind: "person",
        text,
        by,
        joined: fate.state === "joined",
        withdrawnBy,
        message,
      });
  }
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

function dropEmptyLive(view: Draft): void {
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

function findCall(view: Draft, call: string): CallView | null {
  for (let index = view.items.length - 1; index >= 0; index--) {
    const item = view.items[index];
    const found = item?.kind === "step" ? item.calls.find((known) => known.call === call) : undefined;
    if (found) return found;
  }
  return null;
}

function answered(view: Draft, wait: string, answer: NonNullable<WaitItem["answer"]>): void {
  const index = view.items.findLastIndex((item) => item.kind === "wait" && item.wait === wait);
  const item = view.items[index];
  if (item?.kind === "wait") view.items[index] = { ...item, answer };
  if (view.wait === index) view.wait = null;
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
