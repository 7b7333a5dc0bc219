import { type RefObject, useEffect, useRef, useState } from "react";
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

/** Close when somebody clicks elsewhere or presses Escape. */
export function useDismiss(open: boolean, inside: RefObject<HTMLElement | null>, close: () => void): void {
  const latest = useRef(close);
  latest.current = close;
  useEffect(() => {
    if (!open) return;
    const pressed = (event: PointerEvent): void => {
      if (!inside.current?.contains(event.target as Node)) latest.current();
    };
    const key = (event: KeyboardEvent): void => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      latest.current();
      inside.current?.querySelector<HTMLElement>("button")?.focus();
    };
    document.addEventListener("pointerdown", pressed);
    document.addEventListener("keydown", key, true);
    return () => {
      document.removeEventListener("pointerdown", pressed);
      document.removeEventListener("keydown", key, true);
    };
  }, [open, inside]);
}

/** A dialog that is open for as long as it is there; then the focus is where it was before. `first` has it meanwhile. */
export function useModal(first?: string): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    if (first) dialog.current?.querySelector<HTMLElement>(first)?.focus();
    return () => {
      if (document.activeElement === document.body && before instanceof HTMLElement) before.focus();
    };
  }, [first]);
  return dialog;
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
