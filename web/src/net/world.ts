/** The whole log's tail: it says which lists changed, and what somebody should hear about. */
import type { LogRecord } from "../api.gen";
import { toast } from "../parts/toasts";
import { call } from "./http";
import { Socket } from "./link";
import { notify } from "./notify";
import { queries } from "./queries";

let stale = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Ask again soon, once for many changes. */
function changed(...names: readonly string[]): void {
  for (const name of names) stale.add(name);
  timer ??= setTimeout(() => {
    timer = undefined;
    const now = stale;
    stale = new Set();
    for (const name of now) void queries.invalidateQueries({ queryKey: name.split("/") });
  }, 250);
}

export async function followWorld(): Promise<() => void> {
  // Never ahead of the log: deleted events leave gaps in seq, so there are at most as many events as the last seq.
  let cursor = (await call("GET /v1/status")).events;
  const began = Date.now();
  const socket = new Socket({
    address: () => `/v1/events?after=${cursor}`,
    heard: (frame) => {
      for (const record of (frame.events ?? []) as readonly LogRecord[]) {
        if (record.seq <= cursor) continue;
        told(record, record.at >= began - 1000);
        cursor = record.seq;
      }
    },
    back: () => changed("sessions", "tasks", "inbox", "status", "me"),
  });
  return () => socket.close();
}

function told(record: LogRecord, fresh: boolean): void {
  const [kind = "", id = ""] = record.stream.split("/");
  const event = record.event;
  if (kind === "session") changed("sessions", `session/${id}`);
  if (kind === "task") changed("tasks", `task/${id}`, `history/${id}`);
  switch (event.kind) {
    case "WaitOpened":
      changed("inbox");
      if (fresh && event.purpose !== "retry" && !watched(id)) say("waiting", "A session waits for you", event.reason, `/s/${id}`);
      break;
    case "WaitAnswered":
      changed("inbox");
      break;
    case "TurnFinished":
      changed("inbox");
      if (fresh && !watched(id)) notify("A turn ended", event.reason || event.outcome, `/s/${id}`);
      break;
    case "TaskFinished":
      if (fresh && event.output == null && location.pathname !== `/tasks/${id}`) ended(id, event.outcome, event.reason);
      break;
    case "SessionDeleted":
    case "TaskPruned":
    case "GatewayStarted":
      changed("sessions", "tasks", "inbox", "status");
      break;
    default:
  }
}

function ended(id: string, outcome: string, reason: string): void {
  void call("GET /v1/tasks/{id}", { path: { id } }).then((task) => {
    if (!task.foreground) say(outcome === "lost" ? "unknown" : outcome, `${task.title} ${outcome === "lost" ? "was lost" : outcome === "done" ? "is done" : outcome}`, reason, `/tasks/${id}`);
  }, () => undefined);
}

function say(look: string, title: string, text: string, to: string): void {
  toast(look, title, text, to);
  notify(title, text, to);
}

/** Whether somebody looks at this session right now. */
function watched(session: string): boolean {
  return document.visibilityState === "visible" && location.pathname === `/s/${session}`;
}
