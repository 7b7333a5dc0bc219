import { type ReactNode, useEffect, useState } from "react";
import shared from "../ui/shared.module.css";
import styles from "./settings.module.css";

/** A number that is saved when one leaves the field or presses Enter; what does not fit is not saved. */
export function NumberField({
  label,
  value,
  least,
  most,
  hint = "",
  onSave,
}: {
  readonly label: string;
  readonly value: number;
  readonly least: number;
  readonly most: number;
  readonly hint?: string;
  readonly onSave: (value: number) => void;
}): ReactNode {
  const [text, setText] = useState(String(value));
  useEffect(() => setText(String(value)), [value]);
  const typed = /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN;
  const fits = typed >= least && typed <= most;
  const save = (): void => {
    if (fits && typed !== value) onSave(typed);
  };
  return (
    <label className={styles.field}>
      {label}
      <input
        className={shared.input}
        inputMode="numeric"
        value={text}
        aria-invalid={!fits}
        onChange={(event) => setText(event.target.value)}
        onBlur={save}
        onKeyDown={(event) => {
          if (event.key === "Enter") save();
        }}
      />
      <span className={styles.detail}>{fits ? hint : `A whole number from ${least} to ${most}.`}</span>
    </label>
  );
}
