/** The whole log's tail: it says which lists changed, and what somebody should hear about. */
import { now } from "../api/clock";
import { Socket } from "../api/connection";
import { status } from "../api/endpoints";
import { call } from "../api/http";
import { isLookedAt } from "../api/looking";
import { notify } from "../api/notify";
import { queryClient } from "../api/queryClient";
import type { CardView, LogRecord, TaskView } from "../api/types.gen";
import { cardFollower } from "../board/follower";
import { dropSession, refreshSession } from "../chat/queries";
import { dropTask, refreshTask } from "../tasks/queries";
import { byWhom, cardPath, entryWords, plural, withoutMarkdown } from "../text";
import { forget, toast } from "../ui/toasts";

const SOON_MS = 250;
const MANY = 20;
/** What happened longer ago is in the lists; nobody is called for it. */
const NEWS_MS = 60_000;

let stale = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Ask again soon, once for many changes: a list by its name, one thing as `name/id`. */
function changed(...changes: readonly string[]): void {
  for (const change of changes) stale.add(change);
  if (timer === undefined) timer = setTimeout(ask, SOON_MS);
}

function ask(): void {
  timer = undefined;
  const changes = [...stale];
  stale = new Set();
  const tasks = changes.filter((change) => change.startsWith("a-task/"));
  const many = tasks.length > MANY;
  if (many) void queryClient.invalidateQueries({ queryKey: ["tasks"] });
  for (const change of changes) {
    const [name, id = ""] = change.split("/");
    if (name === "a-session") void refreshSession(id);
    else if (name === "a-task") many || void refreshTask(id);
    else void queryClient.invalidateQueries({ queryKey: change.split("/") });
  }
}

const LISTS = [
  "sessions",
  "at-work",
  "tasks",
  "running",
  "ended",
  "inbox",
  "overview",
  "status",
  "stale",
  "outlook",
  "boards",
  "cards",
  "card",
  "nodes",
] as const;

/** Follow the log from where the lists were read on. */
export function followEvents(cursor: number): () => void {
  let socket: Socket | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let left = false;
  const follow = (): void => {
    socket = new Socket({
      address: () => `/v1/events?after=${cursor}`,
      heard: (frame) => {
        for (const record of (frame.events ?? []) as readonly LogRecord[]) {
          if (record.seq <= cursor) continue;
          cursor = record.seq;
          handle(record);
        }
      },
      back: () => {
        void status().catch(() => undefined); // the clocks may have drifted meanwhile
        changed(...LISTS);
      },
      refused: (code) => {
        if (code !== "conflict") return "again";
        void anew(); // the log is shorter than it was: a backup was restored
        return "end";
      },
    });
  };
  const anew = async (): Promise<void> => {
    try {
      cursor = (await status()).seq;
      if (left) return;
      cardFollower()?.forget();
      changed(...LISTS);
      follow();
    } catch {
      if (!left) timer = setTimeout(() => void anew(), 1000);
    }
  };
  follow();
  return () => {
    left = true;
    clearTimeout(timer);
    socket?.close();
  };
}

function handle(record: LogRecord): void {
  const [kind = "", id = ""] = record.stream.split("/");
  const { event, seq } = record;
  const news = record.at > now() - NEWS_MS;
  if (kind === "session") changed("sessions", "at-work", `outlook/${id}`);
  if (kind === "task") changed(`a-task/${id}`, `task/${id}`, `history/${id}`, "running", "stale");
  if (kind === "card") {
    cardFollower()?.apply(record);
    changed(`card/${id}`);
    if (event.kind !== "CardCommented" && event.kind !== "RunHeartbeat") changed("inbox");
  }
  switch (event.kind) {
    case "SessionRenamed":
    case "SessionPinned":
    case "SessionArchived":
    case "SessionRestored":
      changed(`a-session/${id}`, "stale", "inbox");
      break;
    case "TurnUndone":
    case "FailureDismissed":
      changed("inbox");
      break;
    case "WaitOpened":
      changed("inbox", "overview");
      if (news && event.purpose !== "retry")
        say(
          seq,
          "waiting",
          "A session waits for you",
          entryWords({ kind: event.purpose, what: event.reason }),
          `/s/${id}`,
          [record.stream],
        );
      break;
    case "ChapterOpened":
      changed("stale", "inbox");
      if (news && event.notify !== false && event.rule !== "person")
        say(seq, "idle", `Chapter ${event.chapter} of a session began`, event.reason, `/s/${id}`, [record.stream]);
      break;
    case "StaleListed":
      changed("stale");
      if (news)
        say(
          seq,
          "waiting",
          `${plural(event.tasks.length, "command")} ${event.tasks.length === 1 ? "is" : "are"} stale`,
          event.reasons[0] ?? "",
          "/home",
        );
      break;
    case "CardCreated":
    case "BoardCreated":
    case "BoardArchived":
      changed("boards", "inbox");
      break;
    case "BoardPaused":
    case "BoardResumed":
      changed("boards", "card", "inbox");
      break;
    case "RunStarted":
    case "RunFinished": // one that failed is tried again by itself, or blocks its card and is told as that
      changed("card"); // there is less room for the others, or more
      break;
    case "CardBlocked":
      if (news && byWhom(event.by) !== "you")
        ofCard(seq, id, "blocked", event.block_kind === "needs_input" ? "needs you" : "is blocked", event.reason);
      break;
    case "CardUnblocked": {
      const row = cardFollower()?.known(id);
      if (row) forget(cardPath(row));
      break;
    }
    case "CardCompleted":
      changed("card");
      if (news && byWhom(event.by) !== "you") ofCard(seq, id, "done", "is done", event.summary);
      break;
    case "WaitAnswered":
      changed("inbox");
      forget(`/s/${id}`);
      break;
    case "RunBound":
      runs.set(id, true);
      break;
    case "RunReleased":
      runs.set(id, false);
      break;
    case "TurnStarted":
      changed("inbox");
      if (runs.get(id) === false) runs.delete(id); // somebody talks to it after its run
      break;
    case "TurnFinished":
      changed("inbox", "overview");
      if (news && !runs.has(id) && !hasTask(id)) notify(seq, "A turn ended", event.reason || event.outcome, `/s/${id}`);
      break;
    case "TaskFinished":
      changed("ended", "overview");
      if (news && event.output == null) ended(seq, id, event.outcome, event.reason);
      break;
    case "SessionDeleted":
      dropSession(event.session);
      changed("sessions", "at-work", "inbox", "status", "stale");
      break;
    case "TaskPruned":
      dropTask(event.task);
      changed("ended", "overview", "status");
      break;
    case "NodeDrained":
    case "NodeEnded":
      changed("nodes", "inbox");
      break;
    case "GatewayStarted":
      changed(...LISTS);
      break;
    default:
  }
}

/** Sessions that work on a card, and whether their run is still open. The card speaks for them. */
const runs = new Map<string, boolean>();

/** Whether a task that runs is at work there: its end is told as the task's. */
const hasTask = (session: string): boolean =>
  queryClient.getQueryData<readonly TaskView[]>(["running"])?.some((task) => task.worker === session) ?? false;

/** What became of a card, by its title. */
function ofCard(seq: number, id: string, look: string, what: string, text: string): void {
  const row = cardFollower()?.known(id);
  const tell = (card: CardView): void =>
    say(seq, look, `${card.title} ${what}`, withoutMarkdown(text), cardPath(card), [
      `card/${id}`,
      `session/${card.session}`,
    ]);
  if (row) tell(row);
  else
    void call("GET /v1/cards/{id}", { path: { id } }).then(
      ({ card }) => tell(card),
      () => undefined,
    );
}

function ended(seq: number, id: string, outcome: string, reason: string): void {
  void call("GET /v1/tasks/{id}", { path: { id } }).then(
    (task) => {
      const how = outcome === "lost" ? "was lost" : outcome === "done" ? "is done" : outcome;
      if (task.foreground || task.kind === "card") return;
      const shownIn = [`task/${id}`, `session/${task.session}`, `session/${task.worker}`];
      say(seq, outcome === "lost" ? "unknown" : outcome, `${task.title} ${how}`, reason, `/tasks/${id}`, shownIn);
    },
    () => undefined,
  );
}

/** Whoever looks at one of the streams that show it is told nothing. */
function say(
  seq: number,
  look: string,
  title: string,
  text: string,
  to: string,
  shownIn: readonly string[] = [],
): void {
  if (!isLookedAt(shownIn)) toast(look, title, text, to);
  notify(seq, title, text, to);
}
