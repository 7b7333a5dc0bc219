/** How a card is carried from column to column, by a pointer or by keys. */
import type { Announcements, CollisionDetection, KeyboardCoordinateGetter } from "@dnd-kit/core";
import { pointerWithin } from "@dnd-kit/core";
import type { CardView } from "../api/types.gen";
import { COLUMNS, type Column } from "../log/cards";
import { cardLabel } from "../text";
import { WORDS } from "./moves";

export const HOW_TO_CARRY = [
  "Press space to lift the card, left and right to carry it to another column, space to drop it,",
  "escape to put it back. Enter opens it.",
].join(" ");

/** By keys: a step is a column. */
export const byColumn: KeyboardCoordinateGetter = (event, { context, active }) => {
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
export const collide: CollisionDetection = (given) => {
  if (given.pointerCoordinates) return pointerWithin(given);
  const left = given.collisionRect.left;
  const far = (id: string | number): number => Math.abs((given.droppableRects.get(id)?.left ?? Infinity) + 6 - left);
  const [nearest] = given.droppableContainers.map(({ id }) => id).sort((a, b) => far(a) - far(b));
  return nearest === undefined ? [] : [{ id: nearest }];
};

const name = (of: { readonly data: { readonly current?: Record<string, unknown> | undefined } }): string => {
  const card = of.data.current?.card as CardView | undefined;
  return card ? `${cardLabel(card.number, card.id)} ${card.title}` : "The card";
};
const home = (
  of: { readonly data: { readonly current?: Record<string, unknown> | undefined } },
  over: string | number,
): boolean => (of.data.current?.card as CardView | undefined)?.status === over;
/** What a screen reader hears. */
export const announcements: Announcements = {
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
