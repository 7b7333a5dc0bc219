/** The focus of the board: it goes with its card from column to column, and to a neighbour when the card leaves. */
import { type KeyboardEvent, type RefObject, useEffect, useRef } from "react";

const linkOf = (id: string): HTMLElement | null => document.querySelector(`[data-card="${id}"] [data-title]`);

/** Focus a card; whether it is on the screen. */
export function focusCard(id: string): boolean {
  const link = linkOf(id);
  link?.focus();
  return link !== null;
}

/** The cards below and above one in its column. */
export function neighboursOf(id: string): readonly string[] {
  const here = document.querySelector<HTMLElement>(`[data-card="${id}"]`);
  const all = [...(here?.closest("[data-cards]")?.querySelectorAll<HTMLElement>("[data-card]") ?? [])];
  const index = here === null ? -1 : all.indexOf(here);
  return [all[index + 1], all[index - 1]].flatMap((one) => one?.dataset.card ?? []);
}

/** The first of these cards that is there, else the heading of the page. */
export function focusOneOf(ids: readonly string[]): void {
  if (!ids.some(focusCard)) document.querySelector<HTMLElement>("main h1, h1")?.focus();
}

/**
 * Whoever had the focus on a card keeps it there, whatever moves the card: a drop, a menu, a worker, another browser.
 * `seek` brings a card into view that is not drawn, or focuses the folded column that it went into.
 */
export function useKeptFocus(seek: RefObject<(id: string) => void>): void {
  const kept = useRef<readonly string[]>([]);
  useEffect(() => {
    const focused = ({ target }: FocusEvent): void => {
      if (!(target instanceof Element)) return;
      const id = target.closest<HTMLElement>("[data-card]")?.dataset.card;
      if (id !== undefined) kept.current = [id, ...neighboursOf(id)];
      else if (!target.closest("[role=dialog], [role=menu], [data-base-ui-focus-guard]")) kept.current = [];
    };
    document.addEventListener("focusin", focused);
    return () => document.removeEventListener("focusin", focused);
  }, []);
  useEffect(() => {
    const [first] = kept.current;
    const at = document.activeElement;
    if (first === undefined || (at !== null && at !== document.body)) return;
    if (!focusCard(first)) seek.current(first);
    if (document.activeElement === document.body) kept.current.some(focusCard);
  });
}

/** Arrows, j and k move the focus from card to card, unless one is being carried. */
export function walk(event: KeyboardEvent<HTMLElement>): void {
  const at = event.target as HTMLElement;
  if (!at.matches("[data-title]") || event.defaultPrevented || document.querySelector("[data-lifted]")) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const down = DOWN.includes(event.key) ? 1 : UP.includes(event.key) ? -1 : 0;
  const side = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  const end = event.key === "Home" ? 0 : event.key === "End" ? -1 : null;
  if (down === 0 && side === 0 && end === null) return;
  event.preventDefault();
  const column = at.closest("[data-column], [data-column-list]");
  const index = titles(column).indexOf(at);
  if (end !== null) return titles(column).at(end)?.focus();
  if (down !== 0) return titles(column)[index + down]?.focus();
  let next = column;
  do next = side > 0 ? (next?.nextElementSibling ?? null) : (next?.previousElementSibling ?? null);
  while (next !== null && titles(next).length === 0);
  const there = titles(next);
  there[Math.min(index, there.length - 1)]?.focus();
}

const DOWN = ["ArrowDown", "j"];
const UP = ["ArrowUp", "k"];
const titles = (of: Element | null): HTMLElement[] => [...(of?.querySelectorAll<HTMLElement>("[data-title]") ?? [])];
