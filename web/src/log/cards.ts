/** The fold of a card as a board shows it: the same word as the gateway's own list, sooner. Pure. */
import type { CardView, LogRecord } from "../api/types.gen";
import { actorWords, cardLabel } from "../text";

/**
 * A card after one more event of its stream. The card itself when it knew that already; null when something between
 * is missing, and the gateway has to be asked.
 */
export function cardHappened(card: CardView | undefined, record: LogRecord): CardView | null {
  const { event, version, at } = record;
  if (card === undefined) {
    if (event.kind !== "CardCreated" || version !== 1) return null;
    return {
      id: event.card,
      number: event.number ?? 0,
      board: event.board,
      title: event.title,
      profile: event.profile ?? "",
      workspace: event.workspace ?? "scratch",
      priority: event.priority ?? 0,
      tell: event.tell ?? "default",
      node: event.node ?? "",
      host: "",
      status: event.status,
      reason: "",
      block_kind: "",
      scheduled_at: null,
      again_at: null,
      run: 0,
      session: "",
      comments: 0,
      warning: "",
      created_by: actorWords(event.by),
      created_at: at,
      moved_at: at,
      updated_at: at,
      version,
    };
  }
  if (version <= card.version) return card;
  if (version !== card.version + 1 || (event.kind === "RunAssigned" && !event.node)) return null;
  return { ...card, ...changes(card, record), updated_at: at, version };
}

function changes(card: CardView, { event, at }: LogRecord): Partial<CardView> {
  switch (event.kind) {
    case "CardEdited":
      return {
        title: event.title ?? card.title,
        profile: event.profile ?? card.profile,
        workspace: event.workspace ?? card.workspace,
        priority: event.priority ?? card.priority,
        tell: event.tell ?? card.tell ?? "default",
        node: event.node ?? card.node ?? "",
      };
    case "CardCommented":
      return { comments: card.comments + 1 };
    case "CardMoved":
      return {
        status: event.status,
        reason: event.reason,
        block_kind: "",
        scheduled_at: event.status === "scheduled" ? (event.at ?? null) : null,
        moved_at: at,
      };
    case "CardBlocked":
      return {
        status: "blocked",
        reason: event.reason,
        block_kind: event.block_kind,
        scheduled_at: null,
        moved_at: at,
      };
    case "CardUnblocked":
      return { status: "ready", reason: event.reason ?? "", block_kind: "", again_at: null, warning: "", moved_at: at };
    case "CardCompleted":
      return { status: "done", reason: event.summary, block_kind: "", scheduled_at: null, moved_at: at };
    case "RunAssigned":
      return { host: event.node };
    case "RunStarted":
      return {
        status: "running",
        reason: "",
        block_kind: "",
        run: event.run,
        session: event.session,
        warning: event.fresh_reason ?? "",
        host: event.node ?? "",
        again_at: null,
        moved_at: at,
      };
    case "RunFinished":
      return {
        status: card.status === "running" ? "ready" : card.status,
        reason: event.reason,
        again_at: event.retry_at ?? null,
        moved_at: at,
      };
    default:
      return {}; // links, followers, notes of a run: nothing that stands on its face
  }
}

export const COLUMNS = ["triage", "todo", "scheduled", "ready", "running", "blocked", "review", "done"] as const;
export type Column = (typeof COLUMNS)[number];

/** Most urgent first, as they are started; what is done by when it was. */
export function order(column: Column): (a: CardView, b: CardView) => number {
  if (column === "done") return (a, b) => b.moved_at - a.moved_at || byId(a, b);
  if (column === "scheduled") return (a, b) => (a.scheduled_at ?? 0) - (b.scheduled_at ?? 0) || byId(a, b);
  return (a, b) => b.priority - a.priority || a.created_at - b.created_at || byId(a, b);
}

const byId = (a: CardView, b: CardView): number => (a.id < b.id ? -1 : 1);

export interface Wanted {
  readonly text: string;
  readonly profile: string;
}

/** By a text in its title or its number, or by the beginning of its id. */
export const fits = (card: CardView, words: string): boolean =>
  `${card.title}\n${cardLabel(card.number, "")}`.toLowerCase().includes(words) || card.id.startsWith(words);

/** The cards by column, each in its order; `moving` are on their way to another one. */
export function columns(
  cards: readonly CardView[],
  { text, profile }: Wanted,
  moving: ReadonlyMap<string, string>,
): ReadonlyMap<Column, readonly CardView[]> {
  const found = new Map<Column, CardView[]>(COLUMNS.map((column) => [column, []]));
  const words = text.trim().toLowerCase();
  for (const card of cards) {
    if (profile && card.profile !== profile) continue;
    if (words && !fits(card, words)) continue;
    found.get((moving.get(card.id) ?? card.status) as Column)?.push(card);
  }
  for (const [column, rows] of found) rows.sort(order(column));
  return found;
}
