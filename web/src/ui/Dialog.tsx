import { lazyPart } from "./lazyPart";

/** A dialog in the middle of the page, a sheet on a phone. Its text scrolls; its title and footer are always whole. */
export const Dialog = lazyPart(() => import("./DialogPopup"));
