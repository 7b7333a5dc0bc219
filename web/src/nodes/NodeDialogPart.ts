import { lazyPart } from "../ui/lazyPart";

export const NodeDialog = lazyPart(() => import("./NodeDialog"));
