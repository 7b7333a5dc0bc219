/** Which build this page is, and whether the gateway has another one by now. */
import { connection } from "./connection";
import { build } from "./endpoints";
import { Store } from "./store";

export const newerBuild = new Store(false);

/** The build puts its own name into the page. */
export const thisBuild =
  typeof document === "undefined"
    ? ""
    : (document.querySelector<HTMLMetaElement>('meta[name="holdfast-build"]')?.content ?? "");

export async function checkBuild(): Promise<void> {
  try {
    const { build: theirs } = await build();
    newerBuild.set(thisBuild !== "" && theirs !== "" && thisBuild !== theirs);
  } catch {
    // it will be asked again when the line is back
  }
}

connection.subscribe(() => {
  if (connection.get().state === "live") void checkBuild();
});
