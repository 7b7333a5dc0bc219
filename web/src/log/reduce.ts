/** The fold of one session: records and deltas in, a view out. Pure: the same log gives the same view. */
import type { LogRecord } from "../api/types.gen";
import { actorWords } from "../text";
import { chapterHappened } from "./chapters";
import { type Draft, notice } from "./draft";
import { inputHappened, settle } from "./inputs";
import { type SessionView, strictestMode, type WaitItem } from "./model";
import { dropEmptyLive, findCall, stepHappened } from "./steps";

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
        mode: event.mode ?? "profile",
        inheritedMode: strictestMode(event.rights?.layers?.map((layer) => layer.mode ?? "profile") ?? []),
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
    case "SessionTellSet":
      view.tell = event.tell;
      notice(view, record, event);
      break;
    case "AgentChosen":
      view.profile = event.profile;
      view.model = event.model;
      notice(view, record, event);
      break;
    case "NodeChosen":
      notice(view, record, event);
      break;
    case "ModeChosen":
      view.mode = event.mode;
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
    case "AgentAttached":
      notice(view, record, event, event.context === "unproven" ? "warning" : undefined);
      break;
    case "SessionAdopted":
    case "AgentPlanned":
      notice(view, record, event);
      break;
    case "ResetPostponed":
      notice(view, record, event, "warning");
      break;
    case "DriverOutputRead":
      break;
    case "InputReceived":
    case "InputRevised":
    case "InputWithdrawn":
    case "NoteReceived":
      inputHappened(view, record, event);
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
    case "ModelResponded":
    case "ModelInterrupted":
    case "ModelFailed":
    case "ToolCallStarted":
    case "ToolCallFinished":
      stepHappened(view, record, event);
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
        means: event.means ?? {},
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
      // How far its request came is told at the next start.
      if (view.turn) view.turn = { ...view.turn, suspended: true };
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
    case "TaskTellSet":
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
    case "RunAssigned":
    case "RunReminded":
    case "RunHeartbeat":
    case "RunFinished":
    case "BoardCreated":
    case "BoardPaused":
    case "BoardResumed":
    case "BoardArchived":
    case "GatewayStarted":
    case "GatewayStopped":
    case "NodeDrained":
    case "NodeEnded":
      break;
    default:
      unheard(event);
  }
}

/** Of a gateway that is newer than this page: its version counts, and the banner asks to load the page anew. */
function unheard(_: never): void {
  return;
}

function answered(view: Draft, wait: string, answer: NonNullable<WaitItem["answer"]>): void {
  const index = view.items.findLastIndex((item) => item.kind === "wait" && item.wait === wait);
  const item = view.items[index];
  if (item?.kind === "wait") view.items[index] = { ...item, answer };
  if (view.wait === index) view.wait = null;
}
