/** What floats beside its button, in the layer above the page: never clipped, and the page does not move. */
import { cloneElement, type ReactElement, type ReactNode, useRef, useState } from "react";
import { lazyPart } from "./lazyPart";

const Popup = lazyPart(() => import("./PopoverPopup"));

export function Popover({
  trigger,
  title,
  children,
}: {
  readonly trigger: ReactElement<Record<string, unknown>>;
  readonly title: string;
  readonly children: ReactNode;
}): ReactNode {
  const button = useRef<HTMLElement>(null);
  const [open, setOpen] = useState(false);
  return (
    <>
      {cloneElement(trigger, {
        ref: button,
        "aria-haspopup": "dialog",
        "aria-expanded": open,
        onClick: (event: React.MouseEvent) => {
          event.preventDefault(); // it may stand inside a link or a row that opens something
          event.stopPropagation();
          setOpen(!open);
        },
      })}
      {open && (
        <Popup title={title} button={button} onClose={() => setOpen(false)}>
          {children}
        </Popup>
      )}
    </>
  );
}
