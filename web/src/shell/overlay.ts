import { Store } from "../api/store";

export interface Subject {
  readonly of: "session" | "task" | "card";
  readonly id: string;
}

/** What lies over the page. */
export const overlay = new Store<"palette" | "keys" | { readonly why: Subject } | null>(null);

/** What the focused thing is, or else the page: `data-why` names it as its stream does. */
export function subjectOf(focused: Element | null, path: string): Subject | null {
  const named =
    focused?.closest<HTMLElement>("[data-why]")?.dataset.why ??
    path
      .replace(/^\/s\//, "session/")
      .replace(/^\/tasks\//, "task/")
      .replace(/^\/board\/[^/]+\//, "card/");
  const [of = "", id = ""] = named.split("/");
  return (of === "session" || of === "task" || of === "card") && id ? { of, id } : null;
}
