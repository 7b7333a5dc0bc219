/** The columns: windowed lists, between which cards are dragged with the mouse, a finger or the keys. */
import {
  DndContext,
  type DragEndEvent,
  DragOverlay,
  type DragStartEvent,
  KeyboardSensor,
  MouseSensor,
  TouchSensor,
  useDraggable,
  useDroppable,
  useSensor,
  useSensors,
} from "@dnd-kit/core";
import { type ReactNode, type RefObject, useEffect, useMemo, useRef, useState } from "react";
import { load, save } from "../api/storage";
import type { BoardView, CardView } from "../api/types.gen";
import { COLUMNS, type Column } from "../log/cards";
import { plural } from "../text";
import { Menu } from "../ui/Menu";
import shared from "../ui/shared.module.css";
import { useVirtualRows } from "../ui/virtualRows";
import { AskLimit } from "./AskLimit";
import { CardFace, type FaceProps } from "./CardFace";
import styles from "./Columns.module.css";
import { announcements, byColumn, collide, HOW_TO_CARRY } from "./dragging";
import { useKeptFocus, walk } from "./focus";
import { WORDS } from "./moves";

const GUESS = 96;
const GAP = 6;
const OPEN = 206 + 8;
const STRIP = 34 + 8;
/** Of these one can do without, the first first. */
const SPARE: readonly Column[] = ["triage", "scheduled", "done", "todo", "review"];

interface Shared {
  readonly board: BoardView | undefined;
  readonly now: number;
  readonly selected: string;
  readonly to: (card: CardView) => string;
  readonly menu: (card: CardView) => ReactNode;
}

interface Props extends Shared {
  readonly columns: ReadonlyMap<Column, readonly CardView[]>;
  readonly onMove: (card: CardView, to: Column) => void;
  /** On a phone one at a time. */
  readonly only: Column | null;
}

type Shut = Readonly<Partial<Record<Column, boolean>>>;
/** How many cards a column should have at most, as somebody set it in this browser. */
type ColumnLimits = Readonly<Partial<Record<Column, number>>>;
/** Brings a card of a column into view. */
type Seekers = Map<Column, (id: string) => void>;

export function Columns({ columns, onMove, only, ...rest }: Props): ReactNode {
  const [lifted, setLifted] = useState<CardView | null>(null);
  const [shut, setShut] = useState<Shut>(() => load("board.shut", {}));
  const limitsName = `board.limits.${rest.board?.id ?? ""}`;
  const [limits, setLimits] = useState<ColumnLimits>(() => load(limitsName, {}));
  const row = useRef<HTMLDivElement>(null);
  const width = useWidth(row, only === null);
  const holder = useMemo(
    () => COLUMNS.find((column) => columns.get(column)?.some((card) => card.id === rest.selected)) ?? null,
    [columns, rest.selected],
  );
  const closed = useMemo(() => folded(columns, shut, width, holder), [columns, shut, width, holder]);
  const seekers = useRef<Seekers>(new Map());
  const seek = useRef((_: string): void => undefined);
  seek.current = (id) => {
    const column = COLUMNS.find((one) => columns.get(one)?.some((card) => card.id === id));
    if (column && closed.has(column)) row.current?.querySelector<HTMLElement>(`[data-column="${column}"]`)?.focus();
    else if (column) seekers.current.get(column)?.(id);
  };
  useKeptFocus(seek);
  useEffect(() => {
    if (holder === null || (only === null && width === 0)) return; // not here, or not laid out yet
    seek.current(rest.selected);
    const card = row.current?.querySelector(`[data-card="${rest.selected}"]`);
    card?.closest("[data-column]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    card?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [rest.selected, only, width, holder]);
  const sensors = useSensors(
    useSensor(MouseSensor, { activationConstraint: { distance: 6 } }),
    useSensor(TouchSensor, { activationConstraint: { delay: 220, tolerance: 8 } }),
    useSensor(KeyboardSensor, {
      coordinateGetter: byColumn,
      keyboardCodes: { start: ["Space"], cancel: ["Escape"], end: ["Space", "Enter"] },
    }),
  );
  const fold = (column: Column, closed: boolean): void => {
    const next = { ...shut, [column]: closed };
    setShut(next);
    save("board.shut", next);
  };
  const limit = (column: Column, most: number | null): void => {
    const { [column]: _, ...others } = limits;
    const next = most === null ? others : { ...others, [column]: most };
    setLimits(next);
    save(limitsName, next);
  };
  const began = ({ active }: DragStartEvent): void => setLifted((active.data.current as { card: CardView }).card);
  const ended = ({ active, over }: DragEndEvent): void => {
    setLifted(null);
    if (over) onMove((active.data.current as { card: CardView }).card, over.id as Column);
  };
  if (only !== null) {
    return (
      <div
        className={`${styles.columns} ${styles.one}`}
        role="group"
        aria-label="Cards"
        data-column-list
        onKeyDown={walk}
      >
        <Stack column={only} cards={columns.get(only) ?? []} draggable={false} seekers={seekers} {...rest} />
      </div>
    );
  }
  return (
    <DndContext
      sensors={sensors}
      collisionDetection={collide}
      autoScroll={{ acceleration: 6 }}
      onDragStart={began}
      onDragEnd={ended}
      onDragCancel={() => setLifted(null)}
      accessibility={{
        announcements,
        screenReaderInstructions: {
          draggable: HOW_TO_CARRY,
        },
      }}
    >
      <div className={styles.columns} role="group" aria-label="Columns" ref={row} onKeyDown={walk}>
        {COLUMNS.map((column) => {
          const cards = columns.get(column) ?? [];
          return closed.has(column) ? (
            <Shut key={column} column={column} count={cards.length} onOpen={() => fold(column, false)} />
          ) : (
            <Pile
              key={column}
              column={column}
              cards={cards}
              limit={limits[column] ?? null}
              onLimit={(most) => limit(column, most)}
              onShut={() => fold(column, true)}
              seekers={seekers}
              {...rest}
            />
          );
        })}
      </div>
      <DragOverlay dropAnimation={null}>
        {lifted && <CardFace card={lifted} board={rest.board} now={rest.now} selected to="" />}
      </DragOverlay>
    </DndContext>
  );
}

/** How wide the row of columns is, while there is one. */
function useWidth(row: React.RefObject<HTMLElement | null>, shown: boolean): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!shown) return undefined;
    const watch = new ResizeObserver(([entry]) => setWidth(Math.round(entry?.contentRect.width ?? 0)));
    if (row.current) watch.observe(row.current);
    return () => watch.disconnect();
  }, [row, shown]);
  return width;
}

/** What was folded by hand, what is empty, and then what one can do without until the rest fits; never `kept`. */
export function folded(
  columns: ReadonlyMap<Column, readonly unknown[]>,
  shut: Shut,
  width: number,
  kept: Column | null = null,
): ReadonlySet<Column> {
  const found = new Set(COLUMNS.filter((column) => shut[column] ?? (columns.get(column)?.length ?? 0) === 0));
  if (kept) found.delete(kept);
  for (const column of SPARE) {
    const taken = found.size * STRIP + (COLUMNS.length - found.size) * OPEN;
    if (width === 0 || taken <= width) break;
    if (shut[column] === undefined && column !== kept) found.add(column);
  }
  return found;
}

/** A column that is out of use is a strip; cards can be dropped on it all the same. */
function Shut({
  column,
  count,
  onOpen,
}: {
  readonly column: Column;
  readonly count: number;
  readonly onOpen: () => void;
}): ReactNode {
  const { setNodeRef, isOver } = useDroppable({ id: column });
  return (
    <button
      ref={setNodeRef}
      type="button"
      className={`${styles.column} ${styles.shut}`}
      data-over={isOver || undefined}
      data-column={column}
      aria-expanded={false}
      onClick={onOpen}
    >
      <span className={styles.count}>{count}</span>
      <b>{WORDS[column]}</b>
      <span className={shared.srOnly}>, folded</span>
    </button>
  );
}

function Pile({
  column,
  cards,
  limit,
  onLimit,
  onShut,
  seekers,
  ...rest
}: Shared & {
  readonly column: Column;
  readonly cards: readonly CardView[];
  readonly limit: number | null;
  readonly onLimit: (most: number | null) => void;
  readonly onShut: () => void;
  readonly seekers: RefObject<Seekers>;
}): ReactNode {
  const { setNodeRef, isOver } = useDroppable({ id: column });
  const [asking, setAsking] = useState(false);
  const over = limit !== null && cards.length > limit;
  const count = cards.length.toLocaleString("en");
  return (
    <section
      ref={setNodeRef}
      className={styles.column}
      data-over={isOver || undefined}
      data-column={column}
      aria-label={`${WORDS[column]}, ${plural(cards.length, "card")}${limit === null ? "" : `, limit ${limit}`}`}
    >
      <header>
        <h2>{WORDS[column]}</h2>
        <span
          className={`${styles.count} ${over ? styles.tooMany : ""}`}
          title={over ? `More than the limit of ${limit}` : undefined}
        >
          {limit === null ? count : `${count} / ${limit}`}
          {over && <span className={shared.srOnly}> more than its limit</span>}
        </span>
        <span className={shared.grow} />
        <span className={styles.columnMenu}>
          <Menu
            name={`Menu of ${WORDS[column]}`}
            small
            entries={[
              { word: "Fold", icon: "left", act: onShut },
              { word: limit === null ? "Set a limit…" : "Change the limit…", icon: "edit", act: () => setAsking(true) },
              ...(limit === null ? [] : [{ word: "Remove the limit", icon: "close", act: () => onLimit(null) }]),
            ]}
          />
        </span>
      </header>
      <Stack column={column} cards={cards} draggable seekers={seekers} {...rest} />
      {asking && (
        <AskLimit
          column={column}
          limit={limit}
          onClose={() => setAsking(false)}
          onLimit={(most) => {
            setAsking(false);
            onLimit(most);
          }}
        />
      )}
    </section>
  );
}

function Stack({
  column,
  cards,
  draggable,
  seekers,
  menu,
  ...rest
}: Shared & {
  readonly column: Column;
  readonly cards: readonly CardView[];
  readonly draggable: boolean;
  readonly seekers: RefObject<Seekers>;
}): ReactNode {
  const box = useRef<HTMLUListElement>(null);
  const { rows, above, below, measure, scrollTo } = useVirtualRows({
    scroller: box,
    count: cards.length,
    rowKey: (index) => cards[index]?.id ?? index,
    estimate: () => GUESS,
    gap: GAP,
    overscan: 6,
  });
  useEffect(() => {
    const known = seekers.current;
    known.set(column, (id) => scrollTo(cards.findIndex((card) => card.id === id)));
    return () => void known.delete(column);
  });
  return (
    <ul className={styles.stack} ref={box} data-cards aria-label={`Cards in ${WORDS[column]}`}>
      {cards.length === 0 && <li className={styles.nothing}>Nothing here.</li>}
      {above > 0 && <li aria-hidden="true" style={{ height: above }} />}
      {rows.map((row) => {
        const card = cards[row.index];
        if (card === undefined) return null;
        const face = {
          card,
          board: rest.board,
          now: rest.now,
          selected: rest.selected === card.id,
          to: rest.to(card),
        };
        return (
          <li
            key={card.id}
            ref={measure}
            data-index={row.index}
            data-card={card.id}
            style={row.index > 0 ? { marginTop: GAP } : undefined}
          >
            {draggable ? <Draggable {...face} /> : <CardFace {...face} />}
            <span className={styles.menu}>{menu(card)}</span>
          </li>
        );
      })}
      {below > 0 && <li aria-hidden="true" style={{ height: below }} />}
    </ul>
  );
}

function Draggable(face: FaceProps): ReactNode {
  const { attributes, listeners, setNodeRef, setActivatorNodeRef, isDragging } = useDraggable({
    id: face.card.id,
    data: { card: face.card },
  });
  return (
    <div
      ref={setNodeRef}
      data-lifted={isDragging || undefined}
      aria-describedby={attributes["aria-describedby"]}
      {...listeners}
    >
      <CardFace {...face} link={setActivatorNodeRef} />
    </div>
  );
}
