import type { ReactNode } from "react";
import styles from "./Chip.module.css";
import { Icon } from "./Icon";
import { lookClass } from "./looks";
import type { State } from "./states";

/** A state: always colour, shape and word. */
export function Chip({ state, word }: { readonly state: State; readonly word?: string }): ReactNode {
  return (
    <span className={`${styles.chip} ${lookClass(state.look)}`} data-chip={state.look}>
      <Icon name={state.icon} />
      {word ?? state.word}
    </span>
  );
}

/** The icon alone: only where the word stands in the same row. */
export function Mark({ state, bare = false }: { readonly state: State; readonly bare?: boolean }): ReactNode {
  return (
    <span
      className={`${styles.mark} ${bare ? styles.bare : ""} ${lookClass(state.look)}`}
      data-chip={state.look}
      title={state.word}
    >
      <Icon name={state.icon} />
    </span>
  );
}
