/** What `Dialog` shows once it is loaded. */
import { Dialog as Base } from "@base-ui/react/dialog";
import { type ReactNode, type RefObject, useRef } from "react";
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
  /** Else what is marked `data-autofocus`, or the first that can have it. */
  readonly initialFocus?: RefObject<HTMLElement | null>;
}): ReactNode {
  const popup = useRef<HTMLDivElement>(null);
  const marked = (): HTMLElement | true => popup.current?.querySelector<HTMLElement>("[data-autofocus]") ?? true;
  return (
    <Base.Root open onOpenChange={(open) => open || onClose()}>
      <Base.Portal>
        <Base.Backdrop className={styles.backdrop} />
        <Base.Popup
          ref={popup}
          className={`${styles.popup} ${wide ? styles.wide : ""}`}
          initialFocus={initialFocus ?? marked}
        >
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
