import { type ReactNode, useRef } from "react";
import { Dialog } from "./Dialog";

/** Only for what stops or deletes; the button repeats the verb. */
export function Confirm({
  title,
  verb,
  danger = true,
  disabled = false,
  children,
  onYes,
  onNo,
}: {
  readonly title: string;
  readonly verb: string;
  readonly danger?: boolean;
  readonly disabled?: boolean;
  readonly children?: ReactNode;
  readonly onYes: () => void;
  readonly onNo: () => void;
}): ReactNode {
  const cancel = useRef<HTMLButtonElement>(null);
  return (
    <Dialog
      title={title}
      onClose={onNo}
      {...(danger && { initialFocus: cancel })}
      footer={
        <>
          <button type="button" className="btn" ref={cancel} onClick={onNo}>
            Cancel
          </button>
          <button type="button" className={`btn ${danger ? "danger" : "primary"}`} disabled={disabled} onClick={onYes}>
            {verb}
          </button>
        </>
      }
    >
      {children}
    </Dialog>
  );
}
