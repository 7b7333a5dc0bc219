import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { changeQueued, removeQueued } from "../api/endpoints";
import { call, newId } from "../api/http";
import { again, discard, outbox, post } from "../api/outbox";
import { drop, load, save } from "../api/storage";
import { useStore } from "../api/store";
import type { InputRevised, QueueEdit } from "../api/types.gen";
import { type QueuedInput, type SessionView, stateOf, type WaitItem } from "../log/model";
import { Button } from "../ui/Button";
import { Chip } from "../ui/Chip";
import { focusOnMount } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import line from "../ui/line.module.css";
import shared from "../ui/shared.module.css";
import { Time } from "../ui/Time";
import { toast, toastError } from "../ui/toasts";
import styles from "./Composer.module.css";
import entry from "./Entry.module.css";
import { MODE_WORDS, modeInForce } from "./modes";
import { sendAnswer } from "./WaitCard";

interface Editing {
  readonly input: string;
  readonly text: string;
}

/** What the text becomes when it is sent. */
type Meaning = "message" | "comment" | "answer" | "unclear";

function meaningOf(view: SessionView, wait: WaitItem | null): Meaning {
  if (wait?.purpose === "question") return "answer";
  if (wait?.purpose === "approval") return "unclear"; // a reason to refuse it, or a message for later
  return view.run > 0 ? "comment" : "message"; // what is said to a worker becomes a comment on its card
}

const WORDS: Readonly<Record<Meaning, { readonly hint: string; readonly send: string }>> = {
  message: { hint: "Enter sends, Shift+Enter adds a line", send: "Send" },
  comment: { hint: "Enter sends, Shift+Enter adds a line", send: "Comment" },
  answer: { hint: "A question is open: Enter answers it", send: "Answer" },
  unclear: { hint: "An approval is open. What is this text?", send: "Queue as a message" },
};

export function Composer({ view, onSent }: { readonly view: SessionView; readonly onSent: () => void }): ReactNode {
  const id = view.session;
  const [text, setText] = useState(() => load(`draft.${id}`, ""));
  const [busy, setBusy] = useState(false);
  const [asked, setAsked] = useState(false);
  const [editing, setEditing] = useState<Editing | null>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const running = view.turn !== null;
  const worker = view.run > 0;
  const open = view.items[view.wait ?? -1];
  const wait = open?.kind === "wait" ? open : null;
  const meaning = meaningOf(view, wait);
  useEffect(() => (text ? save(`draft.${id}`, text) : drop(`draft.${id}`)), [id, text]);
  useEffect(() => {
    if (matchMedia("(min-width: 721px)").matches) area.current?.focus({ preventScroll: true });
  }, []);

  /** Wait for the gateway; the text goes only when it was taken, and only if nobody typed on. */
  const hold = async (what: () => Promise<void>): Promise<void> => {
    if (!text.trim() || busy) return;
    setBusy(true);
    try {
      await what();
      setText((now) => (now === text ? "" : now));
      setAsked(false);
      onSent();
    } catch (error) {
      toastError(error);
    } finally {
      setBusy(false);
    }
  };
  const queue = (): void => {
    if (!text.trim()) return;
    post(id, text, "queue");
    setText("");
    setAsked(false);
    onSent();
  };
  const send = (): void => {
    if (meaning === "answer" && wait) void hold(() => sendAnswer(wait.wait, text));
    else if (meaning === "unclear") setAsked(text.trim() !== "");
    else queue();
  };
  const refuse = (): void => {
    if (wait) void hold(() => sendAnswer(wait.wait, "deny", text));
  };
  const background = (): Promise<void> =>
    hold(async () => {
      if (worker) return;
      const body = { prompt: text, session: id, profile: view.profile, cwd: view.cwd };
      await call("POST /v1/tasks/agents", { body, key: newId() });
    });
  const stop = (): void => void call("POST /v1/sessions/{id}/stop", { path: { id } }).catch(toastError);
  const detach = (): void =>
    void call("POST /v1/sessions/{id}/detach", { path: { id } }).then(
      ({ task }) => toast("working", "Detached", "The turn continues as a background task.", `/tasks/${task}`),
      toastError,
    );

  const key = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) void background();
      else send();
    } else if (event.key === "." && (event.ctrlKey || event.metaKey) && running) {
      event.preventDefault();
      stop();
    } else if (event.key === "ArrowUp" && text === "" && !event.altKey) {
      const last = view.queue.at(-1);
      if (!last) return;
      event.preventDefault();
      setEditing({ input: last.input, text: last.text });
    }
  };
  const mode = modeInForce(view);
  const message = `Message ${view.profile || "the agent"}${mode === "profile" ? "" : `, which is ${MODE_WORDS[mode]}`}`;
  const placeholder = { message, comment: "Comment for the worker", answer: "Your answer", unclear: message }[meaning];
  return (
    <div className={styles.composer} data-composer data-keep-clear>
      <Queue
        session={id}
        queue={view.queue}
        editing={editing}
        onEdit={(next) => {
          setEditing(next);
          if (!next) area.current?.focus();
        }}
      />
      {worker && (
        <p className={styles.worker} data-worker>
          <Icon name="card" />
          <span className={shared.grow}>
            Run {view.run} of a card works in this session. Your message becomes a comment on the card, and the worker
            reads it at its next step.
          </span>
          <Link href={`/card/${view.card}`}>Open card</Link>
        </p>
      )}
      <div className={styles.box}>
        <textarea
          ref={area}
          rows={1}
          dir="auto"
          aria-label="Message"
          placeholder={placeholder}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={key}
        />
        <div className={styles.buttons}>
          <span
            className={`${styles.hint} ${shared.cut} ${asked ? styles.asks : ""}`}
            role={asked ? "alert" : undefined}
          >
            {meaning === "unclear" && !text.trim() ? "An approval is open. Answer it above" : WORDS[meaning].hint}
          </span>
          <span className={shared.grow} />
          {running && !worker && (
            <Button danger aria-label="Stop the turn" disabled={view.turn?.stopping} onClick={stop}>
              <Icon name="stop" />
              {view.turn?.stopping ? "Stopping" : "Stop"}
            </Button>
          )}
          {meaning === "unclear" && text.trim() !== "" && (
            <Button disabled={busy} onClick={refuse}>
              Refuse and say this
            </Button>
          )}
          {meaning === "message" && running && !view.turn?.task && stateOf(view) === "running" && !text.trim() && (
            <Button onClick={detach}>
              <Icon name="detach" />
              Detach
            </Button>
          )}
          {meaning === "message" && !(running && !text.trim()) && (
            <Button
              disabled={!text.trim() || busy}
              onClick={() => void background()}
              aria-label="Run in background"
              title="Ctrl+Enter"
            >
              <Icon name="detach" />
              <span className={shared.notOnPhone}>Run in background</span>
              <span className={shared.phoneOnly}>Background</span>
            </Button>
          )}
          <Button primary disabled={!text.trim() || busy} onClick={meaning === "unclear" ? queue : send}>
            <Icon name="send" />
            {WORDS[meaning].send}
          </Button>
        </div>
      </div>
    </div>
  );
}

/** Why the agent does not take a message while it works; empty if it was not refused. */
function postponed(revisions: readonly InputRevised[] | undefined): string {
  return revisions?.at(-1)?.reason ?? "";
}

/** What waits for the turn's end: still ours to change. */
function Queue({
  session,
  queue,
  editing,
  onEdit,
}: {
  readonly session: string;
  readonly queue: readonly QueuedInput[];
  readonly editing: Editing | null;
  readonly onEdit: (editing: Editing | null) => void;
}): ReactNode {
  if (queue.length === 0) return null;
  const change = (input: string, what: QueueEdit): void => void changeQueued(session, input, what).catch(toastError);
  const move = (event: KeyboardEvent, input: string, index: number): void => {
    const step = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0;
    if (!event.altKey || step === 0) return;
    event.preventDefault();
    change(input, { place: Math.max(1, Math.min(queue.length, index + 1 + step)) });
  };
  return (
    <div className={styles.queue} role="list" aria-label="Queued messages">
      {queue.map(({ input, text, mode, message }, index) => (
        <div key={input} className={styles.queued} role="listitem" onKeyDown={(event) => move(event, input, index)}>
          <Icon name="grip" />
          <span className={styles.place}>{index + 1}</span>
          {editing?.input === input ? (
            <form
              className={styles.change}
              onSubmit={(event) => {
                event.preventDefault();
                if (editing.text.trim()) change(input, { text: editing.text });
                onEdit(null);
              }}
              onKeyDown={(event) => {
                if (event.key === "Escape") {
                  event.preventDefault();
                  onEdit(null);
                }
              }}
            >
              <input
                ref={focusOnMount}
                aria-label="Queued message"
                value={editing.text}
                onChange={(event) => onEdit({ input, text: event.target.value })}
              />
              <Button type="submit" small>
                Save
              </Button>
            </form>
          ) : (
            <span className={`${shared.cut} ${shared.grow}`} title={text}>
              {text}
            </span>
          )}
          {mode === "queue" && postponed(message.revisions) ? (
            <span className={`${shared.faint} ${shared.cut}`} title={postponed(message.revisions)}>
              waits for the next turn
            </span>
          ) : mode === "queue" ? (
            <Button quiet small onClick={() => change(input, { mode: "steer" })}>
              <Icon name="steer" />
              Steer now
            </Button>
          ) : (
            <span className={shared.faint}>{mode === "steer" ? "joins next" : "interrupts"}</span>
          )}
          <Button
            quiet
            small
            icon
            className={shared.notOnPhone}
            aria-label="Edit"
            onClick={() => onEdit({ input, text })}
          >
            <Icon name="edit" />
          </Button>
          <Button
            quiet
            small
            icon
            aria-label="Remove"
            onClick={() => void removeQueued(session, input).catch(toastError)}
          >
            <Icon name="close" />
          </Button>
        </div>
      ))}
    </div>
  );
}

/** Messages of this session that the gateway has not taken yet. */
export function Outbox({ session }: { readonly session: string }): ReactNode {
  return useStore(outbox)
    .filter((message) => message.session === session)
    .map((message) => (
      <article key={message.id} className={`${line.line} ${entry.entry}`} data-kind="outbox">
        <span className={`${line.knot} ${line.you}`} />
        <div className={entry.who}>
          <b>You</b>
          <Time at={message.at} />
        </div>
        <div className={`${entry.said} ${entry.prose}`} dir="auto">
          {message.text}
        </div>
        <p className={`${entry.meta} ${styles.sending}`}>
          {message.problem ? (
            <>
              <Chip state={{ look: "failed", icon: "failed", word: "Not taken" }} />
              <span>{message.problem}</span>
              <button type="button" onClick={() => again(message.id)}>
                Send again
              </button>
              <button type="button" onClick={() => discard(message.id)}>
                Discard
              </button>
            </>
          ) : (
            <>
              <Chip state={{ look: "queued", icon: "queued", word: "Waits in this browser" }} />
              <span>sent once, when the gateway answers</span>
            </>
          )}
        </p>
      </article>
    ));
}
