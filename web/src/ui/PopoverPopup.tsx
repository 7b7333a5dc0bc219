import { Popover } from "@base-ui/react/popover";
import type { ReactNode, RefObject } from "react";
import { buttonClass } from "./Button";
import { Icon } from "./Icon";
import styles from "./Popover.module.css";

export default function PopoverPopup({
  title,
  button,
  children,
  onClose,
}: {
  readonly title: string;
  readonly button: RefObject<HTMLElement | null>;
  readonly children: ReactNode;
  readonly onClose: () => void;
}): ReactNode {
  return (
    <Popover.Root
      open
      onOpenChange={(open, { event }) => {
        // The button closes it by itself.
        if (!open && !button.current?.contains(event.target as Node | null)) onClose();
      }}
    >
      <Popover.Portal>
        <Popover.Positioner
          anchor={button}
          className={styles.positioner}
          sideOffset={6}
          align="start"
          collisionPadding={8}
        >
          <Popover.Popup className={styles.popup} finalFocus={button}>
            <div className={styles.head}>
              <Popover.Title className={styles.title}>{title}</Popover.Title>
              <Popover.Close className={buttonClass({ quiet: true, small: true, icon: true })} aria-label="Close">
                <Icon name="close" />
              </Popover.Close>
            </div>
            {children}
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  );
}
