/** What a card waits for, and what waits for it. */
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { call } from "../api/http";
import { knownValue } from "../api/known";
import type { CardDetail, CardView } from "../api/types.gen";
import { fits } from "../log/cards";
import { cardLabel, cardPath } from "../text";
import { Button } from "../ui/Button";
import { Chip } from "../ui/Chip";
import { focusOnMount } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { Unknown } from "../ui/Known";
import shared from "../ui/shared.module.css";
import { cardState } from "../ui/states";
import { toastError } from "../ui/toasts";
import styles from "./CardLinks.module.css";
import cardStyles from "./card.module.css";
import { useCards } from "./queries";

export function Links({ detail }: { readonly detail: CardDetail }): ReactNode {
  const { card, parents, children } = detail;
  const [text, setText] = useState<string | null>(null);
  const cards = useCards(card.board);
  const all = knownValue(cards) ?? [];
  const path = { id: card.id };
  const words = (text ?? "").trim().toLowerCase();
  const linked = new Set([card.id, ...parents.map((one) => one.id)]);
  const offers = words ? all.filter((one) => !linked.has(one.id) && fits(one, words)).slice(0, 6) : [];
  const link = (parent: string): void =>
    void call("POST /v1/cards/{id}/links", { path, body: { parent } }).then(() => setText(null), toastError);
  const unlink = (parent: string): void =>
    void call("POST /v1/cards/{id}/unlink", { path, body: { parent } }).catch(toastError);
  return (
    <>
      <h3 className={cardStyles.heading}>Linked cards</h3>
      {parents.length + children.length === 0 && text === null && <p className={shared.muted}>No linked cards.</p>}
      <ul className={styles.linked}>
        {parents.map((one) => (
          <Row
            key={one.id}
            card={one}
            word="before this"
            act={
              <Button quiet small icon aria-label={`Do not wait for ${one.title}`} onClick={() => unlink(one.id)}>
                <Icon name="close" />
              </Button>
            }
          />
        ))}
        {children.map((one) => (
          <Row key={one.id} card={one} word="after this" />
        ))}
      </ul>
      {text === null ? (
        <Button small quiet className={styles.add} onClick={() => setText("")}>
          <Icon name="plus" />
          Wait for another card
        </Button>
      ) : (
        <div className={styles.find}>
          <input
            className={shared.input}
            aria-label="Wait for which card"
            placeholder="Title or number of the card to wait for"
            ref={focusOnMount}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Escape") {
                event.preventDefault();
                setText(null);
              }
            }}
          />
          {cards.state === "unknown" && <Unknown reason={cards.reason} />}
          {cards.state === "known" && words && offers.length === 0 && <p className={shared.muted}>No card fits.</p>}
          <ul className={styles.linked}>
            {offers.map((one) => (
              <li key={one.id}>
                <button type="button" className={`${shared.row} ${shared.fullWidth}`} onClick={() => link(one.id)}>
                  <Chip state={cardState(one)} />
                  <span className={`${shared.cut} ${shared.grow} ${styles.offer}`}>{one.title}</span>
                  <span className={`${styles.id} ${shared.mono}`}>{cardLabel(one.number, one.id)}</span>
                </button>
              </li>
            ))}
          </ul>
        </div>
      )}
    </>
  );
}

function Row({
  card,
  word,
  act,
}: {
  readonly card: CardView;
  readonly word: string;
  readonly act?: ReactNode;
}): ReactNode {
  return (
    <li className={shared.row}>
      <Chip state={cardState(card)} />
      <span className={`${styles.id} ${shared.mono}`}>{cardLabel(card.number, card.id)}</span>
      <Link className={`${shared.cut} ${shared.grow}`} href={cardPath(card)}>
        {card.title}
      </Link>
      <span className={shared.faint}>{word}</span>
      <span className={styles.act}>{act}</span>
    </li>
  );
}
