/** What one session looks like: plain values, made by the reducer from the log and by nothing else. */
import type {
  ChapterOpened,
  MessageItem,
  ModeChosen,
  NoticeItem as Notice,
  Problem,
  ShownArgument,
  SummaryItem as Summary,
  Survivor,
  NoteItem as TaskNote,
  Usage,
  WaitAnswered,
} from "../api/types.gen";
import type { Tell } from "../tell";

export type SessionMode = ModeChosen["mode"];

/** A message or the end of a task, as every client of the gateway folds it. */
export type Message = MessageItem | TaskNote;

export type CallState = "queued" | "running" | "done" | "started" | "failed" | "stopped" | "unknown";

export interface CallView {
  readonly call: string;
  readonly tool: string;
  readonly arguments: string;
  readonly state: CallState;
  readonly startedAt: number | null;
  readonly durationMs: number | null;
  readonly output: string;
  readonly files: readonly string[];
  readonly task: string;
  /** The exit code or the signal of its command, where that says something. */
  readonly detail: string;
  readonly exitCode: number | null;
  readonly signal: string;
}

interface At {
  readonly key: string;
  /** The event that it can be linked by. */
  readonly version: number;
  readonly at: number;
}

export interface PersonItem extends At {
  readonly kind: "person";
  readonly text: string;
  readonly by: string;
  readonly joined: boolean;
  /** Who took it back before a turn had taken it. */
  readonly withdrawnBy: string;
  readonly message: Message;
}

/** One step of the agent: what it thought, said and wanted done. */
export interface StepItem extends At {
  readonly kind: "step";
  readonly turn: number;
  readonly step: number;
  readonly who: string;
  readonly model: string;
  readonly text: string;
  readonly thinking: string;
  /** How long it thought; 0 when that is not known. */
  readonly thinkingMs: number;
  readonly calls: readonly CallView[];
  readonly live: boolean;
  /** Why the answer was cut, when it was. */
  readonly cut: string;
  /** The same step was asked again after that. */
  readonly again: boolean;
  readonly problem: Problem | null;
  readonly finish: string;
  readonly askedAt: number;
  readonly usage: Usage | null;
}

export interface WaitItem extends At {
  readonly kind: "wait";
  readonly wait: string;
  readonly turn: number;
  readonly purpose: string;
  readonly reason: string;
  readonly call: CallView | null;
  readonly callId: string;
  readonly choices: readonly string[];
  readonly pattern: string;
  readonly shown: readonly ShownArgument[];
  /** What each choice of an external agent comes to: once, for the session, or a refusal. */
  readonly means: Readonly<Record<string, string>>;
  readonly until: number | null;
  readonly otherwise: string | null;
  readonly answer: {
    readonly text: string;
    readonly by: string;
    readonly at: number;
    readonly note: string;
    readonly actor: WaitAnswered["by"];
  } | null;
}

export interface NoteItem extends At {
  readonly kind: "note";
  readonly text: string;
  readonly task: string;
  readonly message: Message;
}

export type Tone = "plain" | "warning" | "failed";

export interface Onward {
  readonly to: string;
  readonly word: string;
}

/** Something else that happened; `sentences.ts` has the words. */
export interface NoticeItem extends At {
  readonly kind: "notice";
  readonly tone: Tone;
  /** Where there is more about it. */
  readonly onward: Onward | null;
  readonly event: Notice["event"];
}

/** A reset: from here on the model begins anew. */
export interface ChapterItem extends At {
  readonly kind: "chapter";
  readonly chapter: number;
  readonly rule: ChapterOpened["rule"];
  readonly reason: string;
  readonly by: string;
  readonly actor: ChapterOpened["by"];
  readonly kept: readonly Survivor[];
  readonly stopped: readonly Survivor[];
  /** The hand-over, and whether the agent wrote it itself. */
  readonly note: string;
  readonly noteFrom: "" | "digest" | "model";
  readonly undone: boolean;
}

/** The context was made shorter, is being made so, or could not be. */
export type SummaryItem = At & { readonly kind: "summary" } & Required<Omit<Summary, "item" | "version" | "at">>;

export interface EndItem extends At {
  readonly kind: "end";
  readonly turn: number;
  readonly outcome: string;
  readonly reason: string;
  readonly problem: Problem | null;
  readonly startedAt: number;
  readonly model: string;
  readonly tokensIn: number;
  readonly tokensOut: number;
  readonly cost: number | null;
  /** The model does not see this turn any more. */
  readonly undone: boolean;
}

export type Item = PersonItem | StepItem | WaitItem | NoteItem | NoticeItem | ChapterItem | SummaryItem | EndItem;

export interface QueuedInput {
  readonly input: string;
  readonly version: number;
  readonly at: number;
  readonly text: string;
  readonly mode: string;
  readonly by: string;
  /** The task whose end it tells; empty when it is no such word. */
  readonly task: string;
  readonly message: Message;
}

export interface OpenTurn {
  readonly turn: number;
  readonly startedAt: number;
  readonly stopping: boolean;
  readonly suspended: boolean;
  /** The task that it became. */
  readonly task: string;
  readonly tokensIn: number;
  readonly tokensOut: number;
  readonly cost: number | null;
}

export interface SessionView {
  readonly session: string;
  readonly version: number;
  readonly title: string;
  readonly profile: string;
  readonly model: string;
  readonly cwd: string;
  /** What a person chose that the agent may do at most, and what it inherited: the stricter one is in force. */
  readonly mode: SessionMode;
  readonly inheritedMode: SessionMode;
  readonly parent: string;
  readonly task: string;
  readonly archived: boolean;
  readonly pinned: boolean;
  readonly tell: Tell;
  /** Tokens of the last call of the model, in and out: what it had before its eyes. 0 when it did not say. */
  readonly context: number;
  /** The versions of the resets that hold; the last one can be undone. */
  readonly resets: readonly number[];
  /** A shorter context was asked for, or is being made. */
  readonly compaction: { readonly wanted: boolean; readonly trying: boolean };
  /** The card that it works on, and the open run. */
  readonly card: string;
  readonly run: number;
  /** Where each run of a card begins in it. */
  readonly runs: Readonly<Record<number, number>>;
  readonly items: readonly Item[];
  readonly queue: readonly QueuedInput[];
  readonly turn: OpenTurn | null;
  /** Where the open wait stands in `items`. */
  readonly wait: number | null;
  /** Versions of the finished texts of the agent: what a reader can have missed. */
  readonly messages: readonly number[];
  /** How many characters of the live step have come; the wire counts code points. */
  readonly spoken: { readonly text: number; readonly thinking: number };
}

const MODES: readonly SessionMode[] = ["profile", "ask", "read"];

/** The mode that allows the least. */
export const strictestMode = (modes: readonly SessionMode[]): SessionMode =>
  MODES[Math.max(0, ...modes.map((mode) => MODES.indexOf(mode)))] ?? "profile";

export const AT_REST = { wanted: false, trying: false } as const;

export function emptySession(session: string): SessionView {
  return {
    session,
    version: 0,
    title: "",
    profile: "",
    model: "",
    cwd: "",
    mode: "profile",
    inheritedMode: "profile",
    parent: "",
    task: "",
    archived: false,
    pinned: false,
    tell: "default",
    context: 0,
    resets: [],
    compaction: AT_REST,
    card: "",
    run: 0,
    runs: {},
    items: [],
    queue: [],
    turn: null,
    wait: null,
    messages: [],
    spoken: { text: 0, thinking: 0 },
  };
}

/** Where an event is shown: what was queued early stands where it was taken, so versions do not only grow. */
export function placeOf(items: readonly { readonly version: number }[], version: number): number {
  const exact = items.findIndex((item) => item.version === version);
  return exact >= 0 ? exact : items.findIndex((item) => item.version > version);
}

export function stateOf(view: SessionView): "running" | "waiting" | "suspended" | "queued" | "compacting" | "idle" {
  if (view.turn === null && view.queue.length === 0 && (view.compaction.wanted || view.compaction.trying))
    return "compacting";
  if (view.turn === null) return view.queue.length > 0 ? "queued" : "idle";
  if (view.wait !== null) return "waiting";
  return view.turn.suspended ? "suspended" : "running";
}
