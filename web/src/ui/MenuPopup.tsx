import { Menu } from "@base-ui/react/menu";
import { type KeyboardEvent, type ReactNode, type RefObject, useEffect, useRef } from "react";
import { Icon } from "./Icon";
import styles from "./Menu.module.css";

export interface MenuEntry {
  readonly word: string;
  readonly icon?: string;
  readonly danger?: boolean;
  readonly disabled?: boolean;
  /** Begins a new group. */
  readonly separated?: boolean;
  /** A download; an action otherwise. */
  readonly href?: string;
  readonly act?: () => void;
}

/** What has the focus when it opens: the menu for a pointer, an item for the keyboard. */
export type FirstFocus = "menu" | "first" | "last";

export default function MenuPopup({
  name,
  entries,
  button,
  focus,
  onClose,
}: {
  readonly name: string;
  readonly entries: readonly MenuEntry[];
  readonly button: RefObject<HTMLElement | null>;
  readonly focus: FirstFocus;
  readonly onClose: () => void;
}): ReactNode {
  const popup = useRef<HTMLDivElement>(null);
  const leave = ({ key }: KeyboardEvent): void => {
    if (key !== "Tab") return;
    button.current?.focus(); // the key itself goes on from there
    onClose();
  };
  return (
    <Menu.Root
      open
      modal={false}
      onOpenChange={(open, { event }) => {
        // The button closes it by itself.
        if (!open && !button.current?.contains(event.target as Node | null)) onClose();
      }}
    >
      <Menu.Portal>
        <Menu.Positioner anchor={button} className={styles.positioner} sideOffset={4} align="end" collisionPadding={8}>
          <Menu.Popup
            ref={popup}
            className={styles.popup}
            aria-label={name}
            finalFocus={button}
            onKeyDownCapture={leave}
          >
            {focus !== "menu" && <FocusItem popup={popup} place={focus} />}
            {entries.map((entry) => [
              entry.separated && <Menu.Separator key={`before ${entry.word}`} className={styles.separator} />,
              <Entry key={entry.word} entry={entry} />,
            ])}
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}

/** Rendered inside the menu, so that its items are there when this is done. */
function FocusItem({
  popup,
  place,
}: {
  readonly popup: RefObject<HTMLElement | null>;
  readonly place: "first" | "last";
}): ReactNode {
  useEffect(() => {
    const items = [...(popup.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    items.at(place === "first" ? 0 : -1)?.focus({ preventScroll: true });
  }, [popup, place]);
  return null;
}

function Entry({
  entry: { word, icon, danger, disabled = false, href, act },
}: {
  readonly entry: MenuEntry;
}): ReactNode {
  const className = `${styles.item} ${danger ? styles.danger : ""}`;
  const inside = (
    <>
      {icon && <Icon name={icon} />}
      {word}
    </>
  );
  return href === undefined ? (
    <Menu.Item className={className} disabled={disabled} {...(act && { onClick: act })}>
      {inside}
    </Menu.Item>
  ) : (
    <Menu.LinkItem className={className} href={href} download closeOnClick>
      {inside}
    </Menu.LinkItem>
  );
}
