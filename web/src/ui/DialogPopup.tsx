/** What `Dialog` shows once it is loaded. */

import { Dialog as Base } from "@base-ui/react/dialog";
import type { ReactNode, RefObject } from "react";
import { buttonClass } from "./Button";
import styles from "./Dialog.module.css";
import { Icon } from "./Icon";

export default function DialogPopup({
  title,
  wide = false,
  footer,
  children,
  onClose,
  initialFocus,
}: {
  readonly title: string;
  readonly wide?: boolean;
  /** Buttons; the one that does it is last. */
  readonly footer?: ReactNode;
  readonly children?: ReactNode;
  readonly onClose: () => void;
  readonly initialFocus?: RefObject<HTMLElement | null>;
}): ReactNode {
  return (
    <Base.Root open onOpenChange={(open) => open || onClose()}>
      <Base.Portal>
        <Base.Backdrop className={styles.backdrop} />
        <Base.Popup className={`${styles.popup} ${wide ? styles.wide : ""}`} {...(initialFocus && { initialFocus })}>
          <div className={styles.head}>
            <Base.Title className={styles.title}>{title}</Base.Title>
            <Base.Close className={buttonClass({ quiet: true, small: true, icon: true })} aria-label="Close">
              <Icon name="close" />
            </Base.Close>
          </div>
          <div className={styles.body}>{children}</div>
          {footer && (
            <div className={styles.footer} data-keep-clear>
              {footer}
            </div>
          )}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
