import type { ReactNode } from "react";
import { Icon } from "./Icon";
import type { State } from "./states";

export function Chip({ state, word }: { readonly state: State; readonly word?: string }): ReactNode {
  return (
    <span className={`chip ${state.look}`}>
      <Icon name={state.icon} />
      {word ?? state.word}
    </span>
  );
}

/** The icon alone: only where the word stands in the same row. */
export function Mark({ state }: { readonly state: State }): ReactNode {
  return (
    <span className={`mark ${state.look}`} title={state.word}>
      <Icon name={state.icon} />
    </span>
  );
}
