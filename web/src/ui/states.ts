/** A state is colour, shape and word, in the same order, everywhere. */
import type { CardView, InboxEntry, SessionView, Status, TaskView, WaitView } from "../api/types.gen";

export interface State {
  /** The colour's name. */
  readonly look: string;
  readonly icon: string;
  readonly word: string;
}

const make = (look: string, word: string, icon = look): State => ({ look, icon, word });

export const CALLS: Readonly<Record<string, State>> = {
  queued: make("queued", "Intended"),
  running: make("working", "Running"),
  done: make("done", "Done"),
  failed: make("failed", "Failed"),
  unknown: make("unknown", "Unknown"),
  stopped: make("stopped", "Stopped"),
  started: make("working", "Started", "clock"),
};

export function sessionState(state: string, turnState: string | null): State {
  switch (state) {
    case "running":
      return make("working", "Working");
    case "waiting":
      return make("waiting", "Waiting");
    case "suspended":
      return make("queued", "Suspended", "clock");
    case "queued":
      return make("queued", "Queued");
    case "compacting":
      return make("working", "Compacting");
    default:
  }
  if (turnState === "failed") return make("failed", "Failed");
  if (turnState === "stopped") return make("stopped", "Stopped");
  if (turnState === "done") return make("done", "Done");
  return make("idle", "Idle");
}

export const rowState = (row: SessionView): State => sessionState(row.state, row.turn_state);

export const taskIcon = ({ kind }: Pick<TaskView, "kind">): string => (kind === "process" ? "terminal" : kind);

/** `waiting` has the sessions that wait for a person. */
export function taskState(task: TaskView, waiting?: ReadonlySet<string>): State {
  switch (task.state) {
    case "done":
      return make("done", "Done");
    case "failed":
      return make("failed", "Failed");
    case "stopped":
      return task.blocked ? make("blocked", "Blocked") : make("stopped", "Stopped");
    case "lost":
      return make("unknown", "Lost");
    case "unknown": // its node is away
      return make("unknown", "Unknown");
    default:
  }
  if (waiting?.has(task.worker)) return make("waiting", "Waiting");
  switch (task.activity) {
    case "serving":
      return /not in use/.test(task.activity_detail)
        ? make("idle", "Serving, unused", "serving")
        : make("serving", "Serving");
    case "idle":
      return make("idle", "Idle");
    case "waiting":
      return make("waiting", "Waiting");
    case "working":
      return make("working", "Working");
    default:
      return make("working", task.kind === "process" ? "Running" : "Working");
  }
}

const KINDS: Readonly<Record<string, string>> = {
  needs_input: "Needs input",
  dependency: "Dependency",
  capability: "Capability",
  transient: "Transient",
};

/** Where a card stands; `cools` while it waits after a failure that is not its own. */
export function cardState(card: Pick<CardView, "status" | "block_kind">, cools = false): State {
  if (cools) return make("waiting", "Cooling down");
  switch (card.status) {
    case "running":
      return make("working", "Working");
    case "blocked":
      return make("blocked", KINDS[card.block_kind] ?? "Blocked");
    case "done":
      return make("done", "Done");
    case "review":
      return make("waiting", "Review");
    case "scheduled":
      return make("queued", "Scheduled", "clock");
    case "ready":
      return make("queued", "Ready");
    case "archived":
      return make("idle", "Archived");
    case "triage":
      return make("idle", "Triage");
    default:
      return make("queued", "Todo");
  }
}

export function runState(outcome: string): State {
  switch (outcome) {
    case "":
      return make("working", "Working");
    case "done":
      return make("done", "Done");
    case "blocked":
      return make("blocked", "Blocked");
    case "stopped":
      return make("stopped", "Stopped");
    case "lost":
      return make("unknown", "Lost");
    default:
      return make("failed", "Failed");
  }
}

export const STALE = make("waiting", "Stale", "clock");

/** What waits for a person, by its kind. */
export function entryState({ kind }: Pick<InboxEntry, "kind">): State {
  switch (kind) {
    case "blocked_card":
      return make("blocked", "Blocked");
    case "card_in_review":
      return make("waiting", "Review");
    case "card_not_startable":
    case "session_not_startable":
      return make("blocked", "Cannot start");
    case "failed_turn":
      return make("failed", "Failed");
    default:
      return waitState({ purpose: kind });
  }
}

export function waitState(wait: Pick<WaitView, "purpose">): State {
  if (wait.purpose === "question") return make("waiting", "Question");
  if (wait.purpose === "approval") return make("waiting", "Approval");
  if (wait.purpose === "retry") return make("waiting", "Cooling down");
  if (wait.purpose === "login") return make("waiting", "Log-in");
  if (wait.purpose === "quota") return make("waiting", "Quota");
  return make("waiting", "Waiting for you");
}

export const WELL: State = { look: "done", icon: "done", word: "All well" };

/** Of the gateway, as it says itself. */
export function gatewayState({ writable, problem }: Pick<Status, "writable" | "problem">): State {
  if (!writable) return { look: "failed", icon: "failed", word: "Read-only" };
  return problem ? { look: "failed", icon: "failed", word: "Has a problem" } : WELL;
}
