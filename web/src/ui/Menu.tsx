import { type KeyboardEvent, type ReactNode, useRef, useState } from "react";
import { useDismiss } from "./hooks";
import { Icon } from "./Icon";

export interface Entry {
  readonly word: string;
  readonly icon?: string;
  readonly danger?: boolean;
  readonly href?: string;
  readonly act?: () => void;
}

export function Menu({
  name,
  entries,
  icon = "more",
  className = "btn quiet icon",
}: {
  readonly name: string;
  readonly entries: readonly Entry[];
  readonly icon?: string;
  readonly className?: string;
}): ReactNode {
  const [open, setOpen] = useState(false);
  const [place, setPlace] = useState("");
  const root = useRef<HTMLDivElement>(null);
  useDismiss(open, root, () => setOpen(false));
  const toggle = (): void => {
    const box = root.current?.getBoundingClientRect();
    if (box)
      setPlace(
        `${box.bottom + entries.length * 32 + 20 > innerHeight ? "bottom-full" : "top-full"} ${box.right < innerWidth / 2 ? "left-0" : "right-0"}`,
      );
    setOpen(!open);
  };
  const choose = (act?: () => void): void => {
    setOpen(false);
    root.current?.querySelector("button")?.focus(); // where the focus comes back to, after a dialog too
    act?.();
  };
  const move = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const all = [...(root.current?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])];
    const index = all.indexOf(document.activeElement as HTMLElement);
    all[(index + step + all.length) % all.length]?.focus();
  };
  return (
    <div className="has-menu" ref={root} onKeyDown={move}>
      <button
        type="button"
        className={className}
        aria-label={name}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={toggle}
      >
        <Icon name={icon} />
      </button>
      {open && (
        <div className={`menu ${place}`} role="menu" aria-label={name}>
          {entries.map(({ word, icon: sign, danger, href, act }) =>
            href === undefined ? (
              <button
                key={word}
                type="button"
                role="menuitem"
                className={danger ? "danger" : ""}
                onClick={() => choose(act)}
              >
                {sign && <Icon name={sign} />}
                {word}
              </button>
            ) : (
              <a key={word} role="menuitem" href={href} download onClick={() => choose()}>
                {sign && <Icon name={sign} />}
                {word}
              </a>
            ),
          )}
        </div>
      )}
    </div>
  );
}
