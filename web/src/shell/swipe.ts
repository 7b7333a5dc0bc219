/** On a phone: a swipe from the right edge or along a bar opens the drawer, to the right or down from its bar closes it. */
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
    const start = (event: TouchEvent): void => {
      const touch = event.touches[0];
      const at = event.target as HTMLElement;
      if (!touch || event.touches.length > 1 || !matchMedia("(max-width: 720px)").matches) {
        began = null;
        return;
      }
      const bar = at.closest(".bar, .sub-bar") !== null;
      const from = at.closest(".drawer") ? (bar ? "drawer bar" : "drawer") : touch.clientX > innerWidth - EDGE ? "edge" : bar ? "bar" : "elsewhere";
      began = { x: touch.clientX, y: touch.clientY, from };
    };
    const end = (event: TouchEvent): void => {
      const touch = event.changedTouches[0];
      if (!began || !touch) return;
      const open = meant({ dx: touch.clientX - began.x, dy: touch.clientY - began.y, from: began.from }, drawer.get());
      began = null;
      if (open !== null) toggleDrawer(open);
    };
    document.addEventListener("touchstart", start, { passive: true });
    document.addEventListener("touchend", end, { passive: true });
    return () => {
      document.removeEventListener("touchstart", start);
      document.removeEventListener("touchend", end);
    };
  }, []);
}
