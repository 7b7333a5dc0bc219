/** Keys that work on every page. Single letters rest while a field has focus, and can be turned off. */
import { useEffect, useRef } from "react";
import { useLocation } from "wouter";
import { load, save } from "../api/storage";
import { Store } from "../api/store";
import { newSession } from "../chat/newSession";
import { drawer, toggleDrawer } from "./drawer";
import { overlay, subjectOf } from "./overlay";

export const letters = new Store(load("letters", true));

export function setLetters(on: boolean): void {
  letters.set(on);
  save("letters", on);
}

const LEADER_MS = 1200;
const PLACES: Readonly<Record<string, string>> = { h: "/home", c: "/s", t: "/tasks", b: "/board", s: "/settings" };

export function useKeys(): void {
  const [, go] = useLocation();
  const leader = useRef(0);
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const at = event.target as HTMLElement;
      if (event.defaultPrevented) return;
      if ((event.ctrlKey || event.metaKey) && event.key === "k") {
        event.preventDefault();
        overlay.set("palette");
        return;
      }
      if (document.querySelector('dialog[open], [role="dialog"], [role="menu"]')) return;
      if (event.key === "Escape" && drawer.get() && !at.closest("textarea")) {
        event.preventDefault(); // one thing at a time
        return toggleDrawer(false);
      }
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        at.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")
      )
        return;
      if (event.key === "?") return overlay.set("keys");
      if (!letters.get()) return;
      if (Date.now() - leader.current < LEADER_MS) {
        leader.current = 0;
        const to = PLACES[event.key];
        if (to) go(to);
        return;
      }
      if (act(event.key, go)) event.preventDefault();
      else if (event.key === "g") leader.current = Date.now();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [go]);
}

/** What a single letter does; whether it did something. */
function act(key: string, go: (to: string) => void): boolean {
  switch (key) {
    case "t":
      toggleDrawer();
      return true;
    case "j":
    case "k":
      nextRow(key === "j" ? 1 : -1);
      return true;
    case "n":
      newSession(go);
      return true;
    case "m":
      document.querySelector<HTMLElement>('[data-banner="away"] button')?.click();
      return true;
    case "/":
      document.querySelector<HTMLElement>("[data-search]")?.focus();
      return true;
    case "y": {
      const why = subjectOf(document.activeElement, location.pathname);
      if (why) overlay.set({ why });
      return why !== null;
    }
    default:
      return false;
  }
}

/** What `j` and `k` go through: the links of rows, marked by their lists; on Home the first one of every entry. */
const ROWS = "[data-row-link], main section [data-why] > a, main section [data-why] > span > a";

/** The row after or before the focused one, or else the one that is open. */
function nextRow(step: number): void {
  const seen = new Set<Element | null>([null]);
  const rows = [...document.querySelectorAll<HTMLElement>(ROWS)].filter((row) => {
    const entry = row.matches("[data-row-link]") ? row : row.closest("[data-why]");
    return row.getClientRects().length > 0 && !seen.has(entry) && seen.add(entry);
  });
  const focused = rows.indexOf(document.activeElement as HTMLElement);
  const here = focused >= 0 ? focused : rows.findIndex((row) => row.getAttribute("aria-current") === "page");
  const next = here < 0 ? (step > 0 ? 0 : rows.length - 1) : here + step;
  rows[Math.max(0, Math.min(rows.length - 1, next))]?.focus();
}
