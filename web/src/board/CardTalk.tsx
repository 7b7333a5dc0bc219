/** Words about a card: comments, and the answer to what blocks it. */
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import type { CardDetail, CardView } from "../api.gen";
import { call, newId } from "../net/http";
import { drop, load, save } from "../net/keep";
import { Icon } from "../parts/Icon";
import { complain } from "../parts/toasts";
import { Since, Time } from "../parts/Time";
import { Why } from "../parts/Why";
import { plural } from "../words";

/** What is being written outlives the tab. */
function useDraft(name: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => load(name, ""));
  useEffect(() => (text ? save(name, text) : drop(name)), [name, text]);
  return [text, setText];
}

/** First of all: what it asks, and the answer. */
export function Unblock({ detail }: { readonly detail: CardDetail }): ReactNode {
  const { card } = detail;
  const [text, setText] = useDraft(`answer.${card.id}`);
  const [busy, setBusy] = useState(false);
  const next = useQuery({ queryKey: ["card-context", card.id, card.version], queryFn: () => call("GET /v1/cards/{id}/context", { path: { id: card.id } }) }).data;
  const last = detail.runs.at(-1);
  const since = detail.comments.filter((one) => one.at >= card.moved_at).length;
  const asks = card.block_kind === "needs_input" && last?.outcome === "blocked";
  const go = (fresh: boolean): void => {
    setBusy(true);
    void call("POST /v1/cards/{id}/unblock", { path: { id: card.id }, key: newId(), body: { text: text.trim() || null, fresh } })
      .then(() => setText(""), complain).finally(() => setBusy(false));
  };
  return (
    <section className="block" aria-label="What it waits for">
      <div className="row"><b>{asks ? `${card.profile} asks` : "It is blocked"}</b><span className="note-by"><Time at={card.moved_at} />, <Since at={card.moved_at} /> ago</span><span className="grow" /><Why of="card" id={card.id} /></div>
      <blockquote>{card.reason}</blockquote>
      <textarea className="input" rows={3} aria-label="Answer or comment" placeholder="Your answer. It becomes a comment and the worker's next words." value={text} onChange={(event) => setText(event.target.value)} />
      <div className="row acts">
        <button type="button" className="btn primary" disabled={busy} onClick={() => go(false)}><Icon name="play" />Unblock and continue</button>
        <button type="button" className="btn" disabled={busy} onClick={() => go(true)}>Start fresh instead</button>
        <button type="button" className="btn quiet" disabled={busy || !text.trim()} onClick={() => comment(card, text.trim(), () => setText(""))}>Comment</button>
      </div>
      {next && <p className="then">{whatNext(next.resumes, next.fresh_because, next.refused, since)}</p>}
    </section>
  );
}

function whatNext(resumes: number, fresh: string, refused: string, comments: number): string {
  const said = comments > 0 ? ` and gets the ${plural(comments, "comment")} since the block and this one, in order` : " and gets your words";
  if (refused) return `It cannot go on: ${refused}.`;
  if (resumes > 0) return `Continues the session of run ${resumes}: the worker keeps all that it did${said}.`;
  return fresh ? `Begins anew: ${fresh}. The worker gets a written hand-over${said}.` : `A first run: the worker reads the card${said}.`;
}

function comment(card: CardView, text: string, done: () => void): void {
  void call("POST /v1/cards/{id}/comments", { path: { id: card.id }, key: newId(), body: { text } }).then(done, complain);
}

export function Talk({ card }: { readonly card: CardView }): ReactNode {
  const [text, setText] = useDraft(`comment.${card.id}`);
  const send = (): void => {
    if (text.trim()) comment(card, text.trim(), () => setText(""));
  };
  return (
    <form className="talk-box" onSubmit={(event) => { event.preventDefault(); send(); }}>
      <textarea className="input" rows={2} aria-label="Comment" placeholder={card.status === "running" ? "Comment: the worker hears it at its next step" : "Comment: the next worker reads it"} value={text}
        onChange={(event) => setText(event.target.value)} onKeyDown={(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); send(); } }} />
      <button type="submit" className="btn" disabled={!text.trim()}>Comment</button>
    </form>
  );
}
