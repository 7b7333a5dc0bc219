import { type ReactNode, useRef } from "react";
import { Button } from "./Button";
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
          <Button ref={cancel} onClick={onNo}>
            Cancel
          </Button>
          <Button danger={danger} primary={!danger} disabled={disabled} onClick={onYes}>
            {verb}
          </Button>
        </>
      }
    >
      {children}
    </Dialog>
  );
}
