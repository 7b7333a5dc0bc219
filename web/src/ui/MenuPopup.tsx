import { Menu } from "@base-ui/react/menu";
import type { ReactNode, RefObject } from "react";
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

export default function MenuPopup({
  name,
  entries,
  button,
  onClose,
}: {
  readonly name: string;
  readonly entries: readonly MenuEntry[];
  readonly button: RefObject<HTMLElement | null>;
  readonly onClose: () => void;
}): ReactNode {
  return (
    <Menu.Root
      open
      modal={false}
      onOpenChange={(open, { event }) => {
        if (!open && !button.current?.contains(event.target as Node | null)) onClose(); // the button closes it by itself
      }}
    >
      <Menu.Portal>
        <Menu.Positioner anchor={button} className={styles.positioner} sideOffset={4} align="end" collisionPadding={8}>
          <Menu.Popup className={styles.popup} aria-label={name} finalFocus={button}>
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
