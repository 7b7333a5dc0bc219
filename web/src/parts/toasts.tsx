/** Toasts: at most three, the newest lowest. Never the only place where something is said. */
import type { ReactNode } from "react";
import { Link } from "wouter";
import { Cell, useCell } from "../net/cell";
import { Icon } from "./Icon";

interface Toast {
  readonly id: number;
  readonly look: string;
  readonly icon: string;
  readonly title: string;
  readonly text: string;
  readonly to: string;
}

const toasts = new Cell<readonly Toast[]>([]);
let next = 1;

export function toast(look: string, title: string, text = "", to = "", stays = look === "failed" || look === "waiting"): void {
  const id = next++;
  toasts.set([...toasts.get().slice(-2), { id, look, icon: look, title, text, to }]);
  if (!stays) setTimeout(() => close(id), 6_000);
}

/** What went wrong, in its own words. */
export function complain(error: unknown): void {
  const hint = error instanceof Error && "hint" in error ? String(error.hint) : "";
  toast("failed", error instanceof Error ? error.message : "That did not work.", hint);
}

function close(id: number): void {
  toasts.set(toasts.get().filter((one) => one.id !== id));
}

export function Toasts(): ReactNode {
  return (
    <div className="toasts" role="status">
      {useCell(toasts).map((one) => (
        <div key={one.id} className={`toast ${one.look}`}>
          <Icon name={one.icon} />
          <div className="grow"><strong>{one.title}</strong>{one.text && <p>{one.text}</p>}</div>
          {one.to && <Link className="btn small" href={one.to} onClick={() => close(one.id)}>Open</Link>}
          <button type="button" className="btn quiet small icon" aria-label="Close" onClick={() => close(one.id)}><Icon name="close" /></button>
        </div>
      ))}
    </div>
  );
}
