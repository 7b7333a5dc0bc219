/** A button that opens a menu. Arrows, Home, End, letters and Esc work; nothing clips it. */
import { cloneElement, type KeyboardEvent, type ReactElement, type ReactNode, useRef, useState } from "react";
import { Icon } from "./Icon";
import { lazyPart } from "./lazyPart";
import type { MenuEntry } from "./MenuPopup";

export type { MenuEntry } from "./MenuPopup";

const Popup = lazyPart(() => import("./MenuPopup"));

export function Menu({
  name,
  entries,
  icon = "more",
  className = "btn quiet icon",
  trigger,
}: {
  readonly name: string;
  readonly entries: readonly MenuEntry[];
  readonly icon?: string;
  readonly className?: string;
  /** A button of one's own instead of the icon. */
  readonly trigger?: ReactElement<Record<string, unknown>>;
}): ReactNode {
  const button = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  const props = {
    ref: button,
    "aria-haspopup": "menu",
    "aria-expanded": open,
    onClick: () => setOpen(!open),
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      event.preventDefault();
      setOpen(true);
    },
  } as const;
  return (
    <>
      {trigger ? (
        cloneElement(trigger, props)
      ) : (
        <button type="button" className={className} aria-label={name} {...props}>
          <Icon name={icon} />
        </button>
      )}
      {open && <Popup name={name} entries={entries} button={button} onClose={() => setOpen(false)} />}
    </>
  );
}
