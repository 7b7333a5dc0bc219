/** On a phone: a swipe from the right edge or along a bar opens the drawer; right, or down from its bar, closes it. */
import { useEffect } from "react";
import { drawer, toggleDrawer } from "./drawer";

const FAR = 60;
const EDGE = 32;

export interface Stroke {
  readonly dx: number;
  readonly dy: number;
  /** Where it began. */
  readonly from: "edge" | "bar" | "drawer" | "drawer bar" | "elsewhere";
}

/** What a stroke means: the drawer open, closed, or nothing. */
export function meant({ dx, dy, from }: Stroke, open: boolean): boolean | null {
  const sideways = Math.abs(dx) > 2 * Math.abs(dy);
  if (!open) return sideways && dx < -FAR && (from === "edge" || from === "bar") ? true : null;
  if (sideways && dx > FAR && (from === "drawer" || from === "drawer bar")) return false;
  return from === "drawer bar" && dy > FAR && Math.abs(dy) > 2 * Math.abs(dx) ? false : null;
}

export function useSwipe(): void {
  useEffect(() => {
    let began: { x: number; y: number; from: Stroke["from"] } | null = null;
    let wanted: boolean | null = null;
    const start = (event: TouchEvent): void => {
      const touch = event.touches[0];
      const at = event.target as HTMLElement;
      if (!touch || event.touches.length > 1 || !matchMedia("(max-width: 720px)").matches) {
        began = null;
        return;
      }
      const bar = at.closest("[data-bar]") !== null;
      const from = at.closest("[data-drawer]")
        ? bar
          ? "drawer bar"
          : "drawer"
        : touch.clientX > innerWidth - EDGE
          ? "edge"
          : bar
            ? "bar"
            : "elsewhere";
      began = { x: touch.clientX, y: touch.clientY, from };
      wanted = null;
    };
    const move = (event: TouchEvent): void => {
      const touch = event.touches[0];
      if (began && touch)
        wanted = meant({ dx: touch.clientX - began.x, dy: touch.clientY - began.y, from: began.from }, drawer.get());
    };
    // At its end, so that what is touched is still there; the browser may also take the stroke over as its own.
    const end = (): void => {
      if (began && wanted !== null) toggleDrawer(wanted);
      began = wanted = null;
    };
    const strokes = { touchstart: start, touchmove: move, touchend: end, touchcancel: end } as const;
    const kinds = Object.keys(strokes) as readonly (keyof typeof strokes)[];
    for (const kind of kinds) document.addEventListener(kind, strokes[kind], { passive: true });
    return () => {
      for (const kind of kinds) document.removeEventListener(kind, strokes[kind]);
    };
  }, []);
}
