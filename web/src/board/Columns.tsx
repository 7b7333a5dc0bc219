/** The columns: windowed lists, between which cards are dragged with the mouse, a finger or the keys. */
import {
  type Announcements,
  type CollisionDetection,
  DndContext,
  type DragEndEvent,
  DragOverlay,
  type DragStartEvent,
  type KeyboardCoordinateGetter,
  KeyboardSensor,
  MouseSensor,
  pointerWithin,
  TouchSensor,
  useDraggable,
  useDroppable,
  useSensor,
  useSensors,
} from "@dnd-kit/core";
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { load, save } from "../api/storage";
import type { BoardView, CardView } from "../api/types.gen";
import { COLUMNS, type Column } from "../log/cards";
import { plural } from "../text";
import { useMeasured } from "../ui/window";
import { CardFace } from "./CardFace";
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
}

interface Props extends Shared {
  readonly columns: ReadonlyMap<Column, readonly CardView[]>;
  readonly onMove: (card: CardView, to: Column) => void;
  /** On a phone one at a time. */
  readonly only: Column | null;
  readonly menu: (card: CardView) => ReactNode;
}

export function Columns({ columns, onMove, only, menu, ...shared }: Props): ReactNode {
  const [lifted, setLifted] = useState<CardView | null>(null);
  const [shut, setShut] = useState<Readonly<Partial<Record<Column, boolean>>>>(() => load("board.shut", {}));
  const row = useRef<HTMLDivElement>(null);
  const width = useWidth(row, only === null);
  const closed = useMemo(() => folded(columns, shut, width), [columns, shut, width]);
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
  const began = ({ active }: DragStartEvent): void => setLifted((active.data.current as { card: CardView }).card);
  const ended = ({ active, over }: DragEndEvent): void => {
    setLifted(null);
    if (over) onMove((active.data.current as { card: CardView }).card, over.id as Column);
  };
  if (only !== null) {
    return (
      <div className="cols one" onKeyDown={walk}>
        <Stack column={only} cards={columns.get(only) ?? []} draggable={false} menu={menu} {...shared} />
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
          draggable:
            "Press space to lift the card, left and right to carry it to another column, space to drop it, escape to put it back. Enter opens it.",
        },
      }}
    >
      <div className="cols" ref={row} onKeyDown={walk}>
        {COLUMNS.map((column) => {
          const cards = columns.get(column) ?? [];
          return closed.has(column) ? (
            <Shut key={column} column={column} count={cards.length} onOpen={() => fold(column, false)} />
          ) : (
            <Pile
              key={column}
              column={column}
              cards={cards}
              onShut={() => fold(column, true)}
              menu={menu}
              {...shared}
            />
          );
        })}
      </div>
      <DragOverlay dropAnimation={null}>{lifted && <CardFace card={lifted} {...shared} selected to="" />}</DragOverlay>
    </DndContext>
  );
}

/** How wide the row of columns is, while there is one. */
function useWidth(row: React.RefObject<HTMLElement | null>, shown: boolean): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.round(entry?.contentRect.width ?? 0)));
    if (row.current) watch.observe(row.current);
    return () => watch.disconnect();
  }, [row, shown]);
  return width;
}

/** What was folded by hand, what is empty, and then what one can do without until the rest fits. */
export function folded(
  columns: ReadonlyMap<Column, readonly unknown[]>,
  shut: Readonly<Partial<Record<Column, boolean>>>,
  width: number,
): ReadonlySet<Column> {
  const found = new Set(COLUMNS.filter((column) => shut[column] ?? (columns.get(column)?.length ?? 0) === 0));
  for (const column of SPARE) {
    const taken = found.size * STRIP + (COLUMNS.length - found.size) * OPEN;
    if (width === 0 || taken <= width) break;
    if (shut[column] === undefined) found.add(column);
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
      className={`col shut ${isOver ? "over" : ""}`}
      data-column={column}
      aria-expanded={false}
      onClick={onOpen}
    >
      <span className="n">{count}</span>
      <b>{WORDS[column]}</b>
      <span className="sr">, folded</span>
    </button>
  );
}

function Pile({
  column,
  cards,
  onShut,
  menu,
  ...shared
}: Shared & {
  readonly column: Column;
  readonly cards: readonly CardView[];
  readonly onShut: () => void;
  readonly menu: (card: CardView) => ReactNode;
}): ReactNode {
  const { setNodeRef, isOver } = useDroppable({ id: column });
  return (
    <section
      ref={setNodeRef}
      className={`col ${isOver ? "over" : ""}`}
      data-column={column}
      aria-label={`${WORDS[column]}, ${plural(cards.length, "card")}`}
    >
      <header>
        <h2>{WORDS[column]}</h2>
        <span className="n">{cards.length.toLocaleString("en")}</span>
        <span className="grow" />
        <button
          type="button"
          className="btn quiet small icon fold-col"
          aria-label={`Fold ${WORDS[column]}`}
          onClick={onShut}
        >
          –
        </button>
      </header>
      <Stack column={column} cards={cards} draggable menu={menu} {...shared} />
    </section>
  );
}

function Stack({
  column,
  cards,
  draggable,
  menu,
  ...shared
}: Shared & {
  readonly column: Column;
  readonly cards: readonly CardView[];
  readonly draggable: boolean;
  readonly menu: (card: CardView) => ReactNode;
}): ReactNode {
  const box = useRef<HTMLUListElement>(null);
  const ids = useMemo(() => cards.map((card) => card.id), [cards]);
  const shown = useMeasured(box, ids, GUESS, GAP);
  return (
    <ul
      className="stack"
      ref={box}
      aria-label={`Cards in ${WORDS[column]}`}
      tabIndex={cards.length > 0 ? -1 : undefined}
    >
      {cards.length === 0 && <li className="nothing">Nothing here.</li>}
      {shown.above > 0 && <li aria-hidden="true" className="flex-none" style={{ height: shown.above }} />}
      {cards.slice(shown.first, shown.last).map((card) => (
        <li key={card.id} data-row={card.id}>
          {draggable ? (
            <Draggable card={card} {...shared} />
          ) : (
            <CardFace
              card={card}
              board={shared.board}
              now={shared.now}
              selected={shared.selected === card.id}
              to={shared.to(card)}
            />
          )}
          {!draggable && menu(card)}
        </li>
      ))}
      {shown.below > 0 && <li aria-hidden="true" className="flex-none" style={{ height: shown.below }} />}
    </ul>
  );
}

function Draggable({ card, board, now, selected, to }: Shared & { readonly card: CardView }): ReactNode {
  const { attributes, listeners, setNodeRef, setActivatorNodeRef, isDragging } = useDraggable({
    id: card.id,
    data: { card },
  });
  return (
    <div
      ref={setNodeRef}
      className={isDragging ? "lifted" : ""}
      aria-describedby={attributes["aria-describedby"]}
      {...listeners}
    >
      <CardFace
        card={card}
        board={board}
        now={now}
        selected={selected === card.id}
        to={to(card)}
        link={setActivatorNodeRef}
      />
    </div>
  );
}

// --- by keys -------------------------------------------------------------------------------------

const byColumn: KeyboardCoordinateGetter = (event, { context, active }) => {
  const step = event.code === "ArrowRight" ? 1 : event.code === "ArrowLeft" ? -1 : 0;
  if (event.code === "ArrowUp" || event.code === "ArrowDown") event.preventDefault();
  if (step === 0) return undefined;
  event.preventDefault();
  const card = context.active?.data.current?.card as CardView | undefined;
  const here = COLUMNS.indexOf((context.over?.id ?? card?.status ?? active) as Column);
  const rect = context.droppableRects.get(COLUMNS[Math.max(0, Math.min(COLUMNS.length - 1, here + step))] ?? "");
  return rect && { x: rect.left + 6, y: rect.top + 42 };
};

/** Where the pointer is; carried by keys: the column that begins nearest. */
const collide: CollisionDetection = (given) => {
  if (given.pointerCoordinates) return pointerWithin(given);
  const left = given.collisionRect.left;
  const far = (id: string | number): number => Math.abs((given.droppableRects.get(id)?.left ?? Infinity) + 6 - left);
  const [nearest] = given.droppableContainers.map(({ id }) => id).sort((a, b) => far(a) - far(b));
  return nearest === undefined ? [] : [{ id: nearest }];
};

const name = (of: { readonly data: { readonly current?: Record<string, unknown> | undefined } }): string =>
  (of.data.current?.card as CardView | undefined)?.title ?? "The card";
const home = (
  of: { readonly data: { readonly current?: Record<string, unknown> | undefined } },
  over: string | number,
): boolean => (of.data.current?.card as CardView | undefined)?.status === over;
const announcements: Announcements = {
  onDragStart: ({ active }) => `${name(active)} is lifted.`,
  onDragOver: ({ active, over }) =>
    over && home(active, over.id)
      ? `${name(active)} is lifted, over its own column.`
      : over
        ? `${name(active)} is over ${WORDS[over.id as Column]}.`
        : `${name(active)} is over no column.`,
  onDragEnd: ({ active, over }) =>
    over ? `${name(active)} was dropped on ${WORDS[over.id as Column]}.` : `${name(active)} was put back.`,
  onDragCancel: ({ active }) => `${name(active)} was put back.`,
};

/** Arrows move the focus from card to card, unless one is being carried. */
function walk(event: KeyboardEvent<HTMLElement>): void {
  const at = event.target as HTMLElement;
  if (!at.matches("a.t") || event.defaultPrevented || document.querySelector(".lifted")) return;
  const down = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  const side = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (down === 0 && side === 0) return;
  event.preventDefault();
  const column = at.closest("[data-column], .one");
  const cards = (of: Element | null): HTMLElement[] => [...(of?.querySelectorAll<HTMLElement>("a.t") ?? [])];
  const index = cards(column).indexOf(at);
  if (down !== 0) return cards(column)[index + down]?.focus();
  let next = column;
  do next = side > 0 ? (next?.nextElementSibling ?? null) : (next?.previousElementSibling ?? null);
  while (next !== null && cards(next).length === 0);
  const there = cards(next);
  there[Math.min(index, there.length - 1)]?.focus();
}
