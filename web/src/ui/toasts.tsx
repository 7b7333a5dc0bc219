/** Toasts: at most three, the newest lowest. Never the only place where something is said. */
import { type ReactNode, type RefObject, useEffect, useLayoutEffect, useRef } from "react";
import { Link, useLocation } from "wouter";
import { Store, useStore } from "../api/store";
import { Button, buttonClass } from "./Button";
import { Icon } from "./Icon";
import { lookClass } from "./looks";
import styles from "./toasts.module.css";

interface Toast {
  readonly id: number;
  readonly look: string;
  readonly icon: string;
  readonly title: string;
  readonly text: string;
  readonly to: string;
  readonly stays: boolean;
}

const toasts = new Store<readonly Toast[]>([]);
let next = 1;

export function toast(
  look: string,
  title: string,
  text = "",
  to = "",
  stays = ["failed", "waiting", "blocked"].includes(look),
): void {
  const id = next++;
  if (to) forget(to); // the newer word about the same thing stands for both
  toasts.set([...toasts.get().slice(-2), { id, look, icon: look, title, text, to, stays }]);
  leave(id, stays);
}

const SHOWN_MS = 6_000;
const timers = new Map<number, ReturnType<typeof setTimeout>>();

/** Whoever points at it or has its focus is still reading. */
function hold(id: number): void {
  clearTimeout(timers.get(id));
  timers.delete(id);
}

function leave(id: number, stays: boolean): void {
  hold(id);
  if (!stays)
    timers.set(
      id,
      setTimeout(() => close(id), SHOWN_MS),
    );
}

/** What went wrong, in its own words. */
export function toastError(error: unknown): void {
  const hint = error instanceof Error && "hint" in error ? String(error.hint) : "";
  toast("failed", error instanceof Error ? error.message : "That did not work.", hint);
}

function close(id: number): void {
  hold(id);
  toasts.set(toasts.get().filter((one) => one.id !== id));
}

/** It is not so any more, or somebody has seen it. */
export function forget(to: string): void {
  for (const one of toasts.get()) if (one.to === to) close(one.id);
}

/**
 * Where the toasts stand: at the lower right, but never over what is marked `data-keep-clear` (the composer, the
 * answers to a question, the buttons of a dialog), nor over a dialog where there is room above it. They go up until
 * nothing of it is covered.
 */
export function clearBottom(
  boxes: readonly { readonly left: number; readonly right: number; readonly top: number; readonly bottom: number }[],
  toasts: { readonly left: number; readonly right: number; readonly height: number },
  lowest: number,
): number {
  let bottom = lowest;
  const inTheWay = boxes.filter((box) => box.right > toasts.left && box.left < toasts.right);
  for (const box of inTheWay.sort((a, b) => b.bottom - a.bottom)) {
    if (box.top < bottom && box.bottom > bottom - toasts.height) bottom = box.top - GAP;
  }
  return Math.max(bottom, toasts.height + GAP);
}

const GAP = 8;

function useClearPlace(box: RefObject<HTMLDivElement | null>, shown: number): void {
  useLayoutEffect(() => {
    if (shown === 0) return;
    let frame = 0;
    const place = (): void => {
      frame = requestAnimationFrame(place);
      const element = box.current;
      if (!element) return;
      element.style.translate = "";
      const at = element.getBoundingClientRect();
      const kept = [...document.querySelectorAll("[data-keep-clear]")].map((one) => one.getBoundingClientRect());
      const dialogs = [...document.querySelectorAll("[role=dialog]")].map((one) => one.getBoundingClientRect());
      const bottom = clearBottom(
        [...kept.filter((one) => one.height > 0), ...dialogs.filter((one) => one.top > at.height + 2 * GAP)],
        at,
        at.bottom,
      );
      element.style.translate = bottom === at.bottom ? "" : `0 ${Math.round(bottom - at.bottom)}px`;
    };
    place();
    return () => cancelAnimationFrame(frame);
  }, [box, shown]);
}

export function Toasts(): ReactNode {
  const [place] = useLocation();
  const shown = useStore(toasts);
  const box = useRef<HTMLDivElement>(null);
  useClearPlace(box, shown.length);
  useEffect(() => forget(place), [place]);
  return (
    <div className={styles.toasts} role="status" ref={box}>
      {shown.map((one) => (
        // biome-ignore lint/a11y/noStaticElementInteractions: pointing at it only holds it, which the focus does too
        <div
          key={one.id}
          data-toast
          className={`${styles.toast} ${lookClass(one.look)}`}
          onPointerEnter={() => hold(one.id)}
          onPointerLeave={() => leave(one.id, one.stays)}
          onFocus={() => hold(one.id)}
          onBlur={() => leave(one.id, one.stays)}
        >
          <Icon name={one.icon} />
          <div className={styles.words}>
            <strong>{one.title}</strong>
            {one.text && <p>{one.text}</p>}
          </div>
          {one.to && (
            <Link className={buttonClass({ small: true })} href={one.to} onClick={() => close(one.id)}>
              Open
            </Link>
          )}
          <Button quiet small icon aria-label="Close" onClick={() => close(one.id)}>
            <Icon name="close" />
          </Button>
        </div>
      ))}
    </div>
  );
}
