/** What becomes of a message: it waits in the queue, is changed or withdrawn there, and joins a turn. */
import type { InputReceived, InputRevised, InputWithdrawn, LogRecord, NoteReceived } from "../api/types.gen";
import { actorWords } from "../text";
import type { Draft } from "./draft";
import type { Message } from "./model";

type InputEvent = InputReceived | InputRevised | InputWithdrawn | NoteReceived;

export function inputHappened(view: Draft, record: LogRecord, event: InputEvent): void {
  const { version, at } = record;
  switch (event.kind) {
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
        key: `v${version}`,
        version,
        at,
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
  }
}

/** Reworded, steered or moved: places count from 1. */
function revise(view: Draft, change: InputRevised): void {
  const index = view.queue.findIndex((queued) => queued.input === change.input);
  const queued = view.queue[index];
  if (queued === undefined) return;
  view.queue.splice(index, 1);
  const text = change.text ?? queued.text;
  const mode = change.mode ?? queued.mode;
  const revisions = [...(queued.message.revisions ?? []), { ...change, reason: change.reason ?? "" }];
  const message: Message =
    queued.message.item === "message"
      ? { ...queued.message, text, mode: change.mode ?? queued.message.mode, revisions }
      : { ...queued.message, text, revisions };
  const changed = { ...queued, text, mode, message };
  view.queue.splice(change.place == null ? index : change.place - 1, 0, changed);
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
export function settle(
  view: Draft,
  inputs: readonly string[],
  fate: Pick<Message, "state" | "turn" | "withdrawn_by">,
): void {
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
