/**
 * The cards of the boards: the gateway's list, read once, and the log folded onto it. Where something is missing the
 * card is asked for; where much is, the list.
 */
import { useQuery } from "@tanstack/react-query";
import { call, Refused } from "../api/http";
import { type Known, knownValue, useKnown } from "../api/known";
import { queryClient } from "../api/queryClient";
import type { BoardView, CardDetail, CardView, LogRecord } from "../api/types.gen";
import { cardHappened } from "../log/cards";
import { cardLabel } from "../text";
import { followCards } from "./follower";

const PAGE = 10_000;
const SOON_MS = 60;
const MANY = 40;
/** What a first look needs; the rest comes behind it. */
const FIRST = 400;
const RECENT = 2_000;

export const useBoards = (): Known<readonly BoardView[]> =>
  useKnown({ queryKey: ["boards"], queryFn: async () => (await call("GET /v1/boards")).boards });

/** The board that the first card makes. */
export const DEFAULT_BOARD = "default";

/** What a board is called; before that is known, its id. */
export function boardTitle(boards: Known<readonly BoardView[]>, id: string): string {
  const title = knownValue(boards)?.find((board) => board.id === id)?.title;
  return title || (id === DEFAULT_BOARD ? "Board" : id);
}

/** The most urgent ones at once, then all of them. */
async function all(board: string, status: string): Promise<readonly CardView[]> {
  const key = ["cards", board, status];
  if (queryClient.getQueryData(key) === undefined) {
    const { cards, next } = await call("GET /v1/cards", { query: { board, status, limit: FIRST } });
    if (next === null) return caughtUp(cards, board, status);
    queryClient.setQueryData(key, caughtUp(cards, board, status));
  }
  const found: CardView[] = [];
  for (let offset: number | null = 0; offset !== null; ) {
    const page: { cards: CardView[]; next: number | null } = await call("GET /v1/cards", {
      query: { board, status, offset, limit: PAGE },
    });
    found.push(...page.cards);
    offset = page.next;
  }
  return caughtUp(found, board, status);
}

/** All cards of a board that are not archived; the empty names fit every board and every column. */
export const useCards = (board: string, status = ""): Known<readonly CardView[]> =>
  useKnown({ queryKey: ["cards", board, status], queryFn: () => all(board, status), staleTime: Infinity });

/** By its title, on any board. */
export const useCardSearch = (text: string): Known<readonly CardView[]> =>
  useKnown({
    queryKey: ["card-search", text],
    enabled: text.length > 0,
    queryFn: async () => (await call("GET /v1/cards", { query: { text, limit: 20 } })).cards,
  });

export const useCard = (id: string, enabled = true): Known<CardDetail> =>
  useKnown({
    queryKey: ["card", id],
    enabled,
    queryFn: () => call("GET /v1/cards/{id}", { path: { id } }),
    refetchInterval: (query) =>
      query.state.data?.card.status === "running" ? 5_000 : query.state.data?.card.status === "ready" ? 10_000 : false,
  });

/** The id of the card that an address names by its number or id; null as long as it is not known. */
export function useCardId(name: string, rows: readonly CardView[], ready: boolean): string | null {
  const row = rows.find((one) => one.id === name || cardLabel(one.number, one.id) === name.toUpperCase());
  const asked = useQuery({
    queryKey: ["card-id", name],
    enabled: ready && name !== "" && row === undefined,
    staleTime: Infinity,
    queryFn: async () => (await call("GET /v1/cards/{id}", { path: { id: name } })).card.id,
  });
  return row?.id ?? asked.data ?? (asked.isError ? name : null);
}

// --- what the log says ---------------------------------------------------------------------------

const idOf = (record: LogRecord): string => record.stream.slice(record.stream.indexOf("/") + 1);
let recent: LogRecord[] = [];
let waiting: LogRecord[] = [];
let timer: ReturnType<typeof setTimeout> | undefined;

/** An event of a card's stream. */
function applyCardEvent(record: LogRecord): void {
  recent.push(record);
  if (recent.length > RECENT) recent = recent.slice(-RECENT / 2);
  waiting.push(record);
  if (timer === undefined) timer = setTimeout(fold, SOON_MS);
}

/** What was heard is not so any more: the log is shorter than it was. */
function forgetCards(): void {
  recent = [];
  waiting = [];
}

/** A list may be older than what was heard while it was asked for. */
function caughtUp(list: readonly CardView[], board: string, status: string): readonly CardView[] {
  const rows = new Map(list.map((row) => [row.id, row]));
  const changed = new Map<string, CardView>();
  for (const record of recent) {
    const id = idOf(record);
    const row = changed.get(id) ?? rows.get(id);
    const next = cardHappened(row, record);
    if (next !== null && next !== row) changed.set(id, next);
  }
  return changed.size === 0 ? list : laid(list, changed, board, status);
}

/** The row of a card in whatever list has it. */
function known(id: string): CardView | undefined {
  for (const [, rows] of queryClient.getQueriesData<readonly CardView[]>({ queryKey: ["cards"] })) {
    const found = rows?.find((row) => row.id === id);
    if (found) return found;
  }
  return undefined;
}

function fold(): void {
  timer = undefined;
  const records = waiting;
  waiting = [];
  const before = new Map<string, CardView>();
  const ids = new Set(records.map(idOf));
  for (const [, rows] of queryClient.getQueriesData<readonly CardView[]>({ queryKey: ["cards"] })) {
    for (const row of rows ?? []) {
      if (ids.has(row.id) && (before.get(row.id)?.version ?? 0) < row.version) before.set(row.id, row);
    }
  }
  const after = new Map<string, CardView>(before);
  const missing = new Set<string>();
  const whole = queryClient
    .getQueriesData<readonly CardView[]>({ queryKey: ["cards"] })
    .some(([key, rows]) => rows && key[2] === ""); // else only blocked ones are shown
  for (const record of records) {
    const id = idOf(record);
    const next = cardHappened(after.get(id), record);
    if (next === null) {
      if (whole || record.event.kind === "CardBlocked") missing.add(id);
    } else after.set(id, next);
  }
  put(after);
  if (missing.size > MANY) void queryClient.invalidateQueries({ queryKey: ["cards"] });
  else for (const id of missing) void fetched(id);
}

async function fetched(id: string): Promise<void> {
  try {
    const { card } = await queryClient.fetchQuery({
      queryKey: ["card", id],
      queryFn: () => call("GET /v1/cards/{id}", { path: { id } }),
      staleTime: 0,
    });
    put(new Map([[id, card]]));
  } catch (error) {
    if (!(error instanceof Refused)) void queryClient.invalidateQueries({ queryKey: ["cards"] });
  }
}

/** Rows as they are now, in every list that they fit into; never an older one over a newer. */
function put(rows: ReadonlyMap<string, CardView>): void {
  if (rows.size === 0) return;
  for (const [key, list] of queryClient.getQueriesData<readonly CardView[]>({ queryKey: ["cards"] })) {
    if (list) queryClient.setQueryData(key, laid(list, rows, String(key[1]), String(key[2])));
  }
}

export function laid(
  list: readonly CardView[],
  rows: ReadonlyMap<string, CardView>,
  board: string,
  status: string,
): readonly CardView[] {
  const left = new Map(rows);
  const fits = (card: CardView): boolean =>
    card.status !== "archived" && (!board || card.board === board) && (!status || card.status === status);
  const next = list.flatMap((row) => {
    const change = left.get(row.id);
    if (!change) return [row];
    left.delete(row.id);
    const newer = change.version >= row.version ? change : row;
    return fits(newer) ? [newer] : [];
  });
  for (const row of left.values()) {
    if (fits(row)) next.push(row);
  }
  return next;
}

followCards({ apply: applyCardEvent, forget: forgetCards, known });
