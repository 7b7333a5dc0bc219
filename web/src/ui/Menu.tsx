/** A button that opens a menu. Arrows, Home, End, letters and Esc work; nothing clips it. */
import {
  cloneElement,
  type KeyboardEvent,
  type MouseEvent,
  type ReactElement,
  type ReactNode,
  useRef,
  useState,
} from "react";
import { Button } from "./Button";
import { Icon } from "./Icon";
import { lazyPart } from "./lazyPart";
import type { FirstFocus, MenuEntry } from "./MenuPopup";

export type { MenuEntry } from "./MenuPopup";

const Popup = lazyPart(() => import("./MenuPopup"));

export function Menu({
  name,
  entries,
  icon = "more",
  small = false,
  trigger,
}: {
  readonly name: string;
  readonly entries: readonly MenuEntry[];
  readonly icon?: string;
  readonly small?: boolean;
  /** A button of one's own instead of the icon. */
  readonly trigger?: ReactElement<Record<string, unknown>>;
}): ReactNode {
  const button = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState<FirstFocus | null>(null);
  const props = {
    ref: button,
    "aria-haspopup": "menu",
    "aria-expanded": open !== null,
    onClick: ({ detail }: MouseEvent) => setOpen(open ? null : detail === 0 ? "first" : "menu"), // 0: by Enter or Space
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      event.preventDefault();
      setOpen(event.key === "ArrowDown" ? "first" : "last");
    },
  } as const;
  return (
    <>
      {trigger ? (
        cloneElement(trigger, props)
      ) : (
        <Button quiet small={small} icon aria-label={name} {...props}>
          <Icon name={icon} />
        </Button>
      )}
      {open && <Popup name={name} entries={entries} button={button} focus={open} onClose={() => setOpen(null)} />}
    </>
  );
}
