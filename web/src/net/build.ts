/** Which build this page is, and whether the gateway has another one by now. */
import { Cell } from "./cell";
import { build } from "./doors";
import { line } from "./link";

export const newerBuild = new Cell(false);
let ours: string | null = null;

export async function checkBuild(): Promise<void> {
  try {
    const { build: theirs } = await build();
    ours ??= theirs;
    if (theirs && ours !== theirs) newerBuild.set(true);
  } catch {
    // an older gateway does not say
  }
}

line.watch(() => {
  if (line.get().state === "live") void checkBuild();
});
