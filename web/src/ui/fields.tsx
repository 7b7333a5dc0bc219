/** Questions of a form: a label with its field. `form.module.css` says how they stand. */
import { type InputHTMLAttributes, type ReactNode, useId } from "react";
import shared from "./shared.module.css";

/** One of a few values, each with the word for it. */
export function SelectField<V extends string>({
  label,
  value,
  options,
  onChange,
}: {
  readonly label: string;
  readonly value: V;
  readonly options: readonly (readonly [V, string])[];
  readonly onChange: (value: V) => void;
}): ReactNode {
  return (
    <label>
      {label}
      <select className={shared.input} value={value} onChange={(event) => onChange(event.target.value as V)}>
        {options.map(([name, word]) => (
          <option key={name} value={name}>
            {word}
          </option>
        ))}
      </select>
    </label>
  );
}

type Given = Pick<
  InputHTMLAttributes<HTMLInputElement>,
  "type" | "min" | "max" | "maxLength" | "required" | "placeholder" | "list"
>;

/** Something to type: one line, or as many rows as are given. */
export function TextField({
  label,
  value,
  onChange,
  rows = 1,
  first = false,
  mono = false,
  children,
  ...given
}: Given & {
  readonly label: string;
  readonly value: string;
  readonly onChange: (text: string) => void;
  readonly rows?: number;
  /** It has the focus when its dialog opens. */
  readonly first?: boolean;
  readonly mono?: boolean;
  readonly children?: ReactNode;
}): ReactNode {
  const id = useId();
  const common = {
    id,
    className: `${shared.input} ${mono ? shared.mono : ""}`,
    dir: mono ? "ltr" : "auto",
    value,
    ...(first && { "data-autofocus": true }),
  };
  return (
    <label htmlFor={id}>
      {label}
      {rows > 1 ? (
        <textarea
          {...common}
          rows={rows}
          maxLength={given.maxLength}
          placeholder={given.placeholder}
          onChange={(event) => onChange(event.target.value)}
        />
      ) : (
        <input {...common} {...given} onChange={(event) => onChange(event.target.value)} />
      )}
      {children}
    </label>
  );
}
