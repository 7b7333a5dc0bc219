/** A card as it stands in its column. */
import { memo, type ReactNode } from "react";
import { Link } from "wouter";
import { knownValue } from "../api/known";
import type { BoardView, CardView } from "../api/types.gen";
import { NodeName } from "../nodes/NodeName";
import { age, asYou, byWhom, cardLabel, coming, withoutMarkdown } from "../text";
import { Chip } from "../ui/Chip";
import { Icon } from "../ui/Icon";
import { lookClass } from "../ui/looks";
import shared from "../ui/shared.module.css";
import { cardState } from "../ui/states";
import { Why } from "../ui/Why";
import styles from "./CardFace.module.css";
import { useCard } from "./queries";
import { Reason } from "./Reason";

export interface FaceProps {
  readonly card: CardView;
  readonly board: BoardView | undefined;
  /** By the half minute, so that nothing jumps. */
  readonly now: number;
  readonly selected: boolean;
  readonly to: string;
}

const cools = (card: CardView, now: number): boolean =>
  card.status === "ready" && card.again_at !== null && card.again_at > now;

export const CardFace = memo(function CardFace({
  card,
  board,
  now,
  selected,
  to,
  link,
}: FaceProps & { readonly link?: (node: HTMLElement | null) => void }): ReactNode {
  const cooling = cools(card, now);
  const state = cardState(card, cooling);
  const reason = faceReason(card, cooling);
  const shown = card.status === "running" || card.status === "blocked" || cooling || card.status === "review";
  return (
    <div
      className={`${styles.card} ${selected ? styles.selected : ""} ${lookClass(state.look)}`}
      data-selected={selected || undefined}
      data-why={`card/${card.id}`}
    >
      <span className={`${shared.row} ${styles.head}`}>
        <span className={styles.id}>{cardLabel(card.number, card.id)}</span>
        <span className={`${shared.faint} ${shared.cut} ${shared.grow} ${styles.profile}`}>
          {card.profile || "no profile"}
        </span>
        <NodeName node={card.host || card.node} title={nodeTitle(card)} />
        {card.priority !== 0 && (
          <span className={styles.priority} title={`Priority ${card.priority}`}>
            {card.priority > 0 ? "▲" : "▼"} {Math.abs(card.priority)}
          </span>
        )}
        {card.comments > 0 && (
          <span className={`${shared.row} ${shared.faint} ${styles.comments}`} data-comments>
            <Icon name="comment" />
            {card.comments}
            <span className={shared.srOnly}> comments</span>
          </span>
        )}
      </span>
      <Link
        className={styles.title}
        href={to}
        draggable={false}
        ref={link ?? null}
        dir="auto"
        data-title
        data-row-link
        data-target
      >
        {card.title}
      </Link>
      {card.warning && card.status === "running" && (
        <Reason look="waiting" short>
          Started fresh: {card.warning}
        </Reason>
      )}
      {reason && (
        <Reason look={state.look} short>
          {withoutMarkdown(reason)}
        </Reason>
      )}
      <span className={styles.foot}>
        {shown && <Chip state={state} />}
        {card.status === "scheduled" && card.scheduled_at !== null && <span>{coming(card.scheduled_at, now)}</span>}
        {(card.status === "ready" || card.status === "todo") && !cooling && <NotStarted card={card} board={board} />}
        {cooling && <span>{age((card.again_at ?? now) - now)} left</span>}
        {!cooling && <span title="In this column for">{age(now - card.moved_at)}</span>}
        {(card.run > 1 || card.status === "running") && <span>run {card.run}</span>}
      </span>
    </div>
  );
});

export const nodeTitle = (card: CardView): string =>
  [card.host && `On node ${card.host}`, card.node && `asks for ${card.node}`].filter(Boolean).join("; ");

function faceReason(card: CardView, cooling: boolean): string {
  if (card.status === "blocked" || card.status === "review" || cooling) return card.reason;
  return card.status === "done" ? (card.reason.split("\n", 1)[0] ?? "") : "";
}

/** Every card that could run and does not says why. */
function NotStarted({ card, board }: { readonly card: CardView; readonly board: BoardView | undefined }): ReactNode {
  const simple =
    card.status !== "ready"
      ? ""
      : board?.paused_by
        ? `Board paused by ${byWhom(board.paused_by)}`
        : card.profile
          ? ""
          : "No profile set";
  const asked = knownValue(useCard(card.id, simple === ""));
  const words =
    simple ||
    asYou(asked?.why ?? "")
      .replace(/ \((?:`|max_)[^)]*\)/, "")
      .replace(/\.$/, "");
  return words ? (
    <>
      <span className={styles.notStarted}>{words}</span>
      <Why of="card" id={card.id} />
    </>
  ) : null;
}
