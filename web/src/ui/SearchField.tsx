import type { ReactNode } from "react";
import { Icon } from "./Icon";
import shared from "./shared.module.css";

/** Where one searches on a page; `/` goes there. */
export function SearchField({
  name,
  value,
  onChange,
  className,
  showsKey = true,
}: {
  readonly name: string;
  readonly value: string;
  readonly onChange: (text: string) => void;
  readonly className: string | undefined;
  readonly showsKey?: boolean;
}): ReactNode {
  return (
    <label className={`${shared.field} ${className ?? ""}`}>
      <Icon name="search" />
      <input
        type="search"
        data-search
        placeholder={name}
        aria-label={name}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
      {showsKey && <span className={`${shared.kbd} ${shared.notOnPhone}`}>/</span>}
    </label>
  );
}
