/** Toasts: at most three, the newest lowest. Never the only place where something is said. */
import { type ReactNode, useEffect } from "react";
import { Link, useLocation } from "wouter";
import { Store, useStore } from "../api/store";
import { Icon } from "./Icon";

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

export function Toasts(): ReactNode {
  const [place] = useLocation();
  useEffect(() => forget(place), [place]);
  return (
    <div className="toasts" role="status">
      {useStore(toasts).map((one) => (
        <div
          key={one.id}
          className={`toast ${one.look}`}
          onPointerEnter={() => hold(one.id)}
          onPointerLeave={() => leave(one.id, one.stays)}
          onFocus={() => hold(one.id)}
          onBlur={() => leave(one.id, one.stays)}
        >
          <Icon name={one.icon} />
          <div className="grow">
            <strong>{one.title}</strong>
            {one.text && <p>{one.text}</p>}
          </div>
          {one.to && (
            <Link className="btn small" href={one.to} onClick={() => close(one.id)}>
              Open
            </Link>
          )}
          <button type="button" className="btn quiet small icon" aria-label="Close" onClick={() => close(one.id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
