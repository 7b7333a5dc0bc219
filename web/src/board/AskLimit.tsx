import { type ReactNode, useState } from "react";
import type { Column } from "../log/cards";
import { Confirm } from "../ui/Confirm";
import { TextField } from "../ui/fields";
import form from "../ui/form.module.css";
import shared from "../ui/shared.module.css";
import { WORDS } from "./moves";

export function AskLimit({
  column,
  limit,
  onClose,
  onLimit,
}: {
  readonly column: Column;
  readonly limit: number | null;
  readonly onClose: () => void;
  readonly onLimit: (most: number) => void;
}): ReactNode {
  const [text, setText] = useState(String(limit ?? 3));
  const most = Number(text);
  const fits = Number.isInteger(most) && most > 0;
  return (
    <Confirm
      title={`How many cards should be in ${WORDS[column]}?`}
      verb="Set the limit"
      danger={false}
      disabled={!fits}
      onNo={onClose}
      onYes={() => onLimit(most)}
    >
      <div className={`${form.group} ${form.form}`}>
        <TextField label="At most" type="number" min={1} max={9999} value={text} onChange={setText} />
      </div>
      <p className={shared.muted}>
        The column says when it has more. Nothing is refused. The limit is kept in this browser; how many cards run at
        once is set in config.toml (<code>max_running</code>).
      </p>
    </Confirm>
  );
}
