import type { ReactNode } from "react";
import { useModal } from "./hooks";

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
  return (
    <dialog ref={useModal()} aria-label={title} onClose={onNo}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          onYes();
        }}
      >
        <h2>{title}</h2>
        {children}
        <div className="acts">
          <button type="button" className="btn" onClick={onNo}>
            Cancel
          </button>
          <button type="submit" className={`btn ${danger ? "danger" : "primary"}`} disabled={disabled}>
            {verb}
          </button>
        </div>
      </form>
    </dialog>
  );
}
