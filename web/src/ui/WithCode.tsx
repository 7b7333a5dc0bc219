/** A sentence of the gateway: what stands between backticks is code. */
import { Fragment, type ReactNode } from "react";

export function WithCode({ text }: { readonly text: string }): ReactNode {
  return text.split("`").map((part, index) => {
    const key = `${index} ${part}`; // the parts of a sentence keep their places
    return index % 2 === 1 ? <code key={key}>{part}</code> : <Fragment key={key}>{part}</Fragment>;
  });
}
