import { type ReactNode, useState } from "react";
import shared from "../ui/shared.module.css";

/** What was saved last, until something else is. */
export function useSaved(): readonly [number, (saving: Promise<void>) => Promise<void>] {
  const [saved, setSaved] = useState(0);
  return [
    saved,
    async (saving) => {
      await saving;
      setSaved(Date.now());
    },
  ];
}

export function Saved({ at }: { readonly at: number }): ReactNode {
  return (
    <span role="status" className={shared.faint}>
      {at > 0 && <span key={at}>Saved</span>}
    </span>
  );
}
