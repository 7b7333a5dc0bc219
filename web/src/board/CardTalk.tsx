/** Words about a card: comments, and the answer to what blocks it. */
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { call } from "../api/http";
import { drop, load, save } from "../api/storage";
import type { CardDetail, CardView } from "../api/types.gen";
import { plural } from "../text";
import { Button } from "../ui/Button";
import { Icon } from "../ui/Icon";
import { MarkdownText } from "../ui/MarkdownText";
import shared from "../ui/shared.module.css";
import { Since, Time } from "../ui/Time";
import { toastError } from "../ui/toasts";
import { Why } from "../ui/Why";
import styles from "./CardTalk.module.css";
import cardStyles from "./card.module.css";

interface Draft {
  readonly text: string;
  readonly busy: boolean;
  readonly setText: (text: string) => void;
  /** Said once, however often somebody presses; gone from here when it was taken. */
  readonly send: (how: (text: string) => Promise<unknown>) => void;
}

/** What is being written outlives the tab. */
function useDraft(name: string): Draft {
  const [text, setText] = useState(() => load(name, ""));
  const sending = useRef(false);
  const [busy, setBusy] = useState(false);
  useEffect(() => (text ? save(name, text) : drop(name)), [name, text]);
  const send = (how: (text: string) => Promise<unknown>): void => {
    if (sending.current) return;
    sending.current = true;
    setBusy(true);
    void how(text.trim())
      .then(() => setText((now) => (now === text ? "" : now)), toastError)
      .finally(() => {
        sending.current = false;
        setBusy(false);
      });
  };
  return { text, busy, setText, send };
}

/** First of all: what it asks, and the answer. */
export function Unblock({ detail }: { readonly detail: CardDetail }): ReactNode {
  const { card } = detail;
  const { text, busy, setText, send } = useDraft(`answer.${card.id}`);
  const next = useQuery({
    queryKey: ["card-context", card.id, card.version],
    queryFn: () => call("GET /v1/cards/{id}/context", { path: { id: card.id } }),
  }).data;
  const last = detail.runs.at(-1);
  const since = detail.comments.filter((one) => one.at >= card.moved_at).length;
  const asks = card.block_kind === "needs_input" && last?.outcome === "blocked";
  const go = (fresh: boolean): void =>
    send((said) => call("POST /v1/cards/{id}/unblock", { path: { id: card.id }, body: { text: said || null, fresh } }));
  return (
    <section className={styles.question} aria-label="What it waits for">
      <div className={shared.row}>
        <b>{asks ? `${card.profile} asks` : "It is blocked"}</b>
        <span className={cardStyles.note}>
          <Time at={card.moved_at} />, <Since at={card.moved_at} /> ago
        </span>
        <span className={shared.grow} />
        <Why of="card" id={card.id} />
      </div>
      <blockquote>
        <MarkdownText text={card.reason} live={false} />
      </blockquote>
      <textarea
        className={shared.input}
        dir="auto"
        rows={3}
        aria-label="Answer or comment"
        placeholder="Your answer. It becomes a comment, and the worker's next message."
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <div className={`${shared.row} ${styles.actions}`} data-keep-clear>
        <Button primary disabled={busy} onClick={() => go(false)}>
          <Icon name="play" />
          Unblock and continue
        </Button>
        <Button disabled={busy} onClick={() => go(true)}>
          Start fresh instead
        </Button>
        <Button quiet disabled={busy || !text.trim()} onClick={() => send((said) => comment(card, said))}>
          Comment
        </Button>
      </div>
      {next && <p className={styles.next}>{whatNext(next.resumes, next.fresh_because, next.refused, since)}</p>}
    </section>
  );
}

function whatNext(resumes: number, fresh: string, refused: string, comments: number): string {
  const said =
    comments > 0
      ? ` and gets the ${plural(comments, "comment")} since the block and this one, in order`
      : " and gets your words";
  if (refused) return `This card cannot continue: ${refused}.`;
  if (resumes > 0) return `Continues the session of run ${resumes}: the worker keeps all that it did${said}.`;
  return fresh
    ? `Starts a new session: ${fresh}. The worker gets a written hand-over${said}.`
    : `A first run: the worker reads the card${said}.`;
}

const comment = (card: CardView, text: string): Promise<unknown> =>
  call("POST /v1/cards/{id}/comments", { path: { id: card.id }, body: { text } });

export function Talk({ card }: { readonly card: CardView }): ReactNode {
  const { text, busy, setText, send } = useDraft(`comment.${card.id}`);
  const say = (): void => {
    if (text.trim()) send((said) => comment(card, said));
  };
  return (
    <form
      className={styles.comment}
      onSubmit={(event) => {
        event.preventDefault();
        say();
      }}
    >
      <textarea
        className={shared.input}
        dir="auto"
        rows={2}
        aria-label="Comment"
        placeholder={
          card.status === "running"
            ? "Comment: the worker reads it at its next step"
            : "Comment: the next worker reads it"
        }
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            say();
          }
        }}
      />
      <Button type="submit" disabled={busy || !text.trim()}>
        Comment
      </Button>
    </form>
  );
}
