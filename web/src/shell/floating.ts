import { Cell } from "../net/cell";

/** What lies over the page. */
export const floating = new Cell<"palette" | "keys" | null>(null);
