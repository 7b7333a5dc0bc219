import { useEffect, useState } from "react";
import { now } from "../api/clock";

/** The time by the gateway's clock, every second if nothing else is said, while it is needed. */
export function useNow(running = true, ms = 1000): number {
  const [at, setAt] = useState(now);
  useEffect(() => {
    if (!running) return;
    setAt(now());
    const timer = setInterval(() => setAt(now()), ms);
    return () => clearInterval(timer);
  }, [running, ms]);
  return at;
}

/** The same value a moment later, when it has come to rest. */
export function useSettled<T>(value: T, ms = 200): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · Holdfast` : "Holdfast";
  }, [title]);
}

export function useMedia(query: string): boolean {
  const [fits, setFits] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const tell = (): void => setFits(media.matches);
    media.addEventListener("change", tell);
    return () => media.removeEventListener("change", tell);
  }, [query]);
  return fits;
}

/** As the `ref` of what somebody asked for, and types into next. */
export const focusOnMount = (element: HTMLElement | null): void => element?.focus();
