/** Whether people are told of a session, a task or a card who do not look at it. */
import type { SetTaskTell } from "./api/types.gen";
import type { MenuEntry } from "./ui/Menu";

export type Tell = SetTaskTell["tell"];

const CHOICES: Readonly<Record<Tell, { readonly word: string; readonly icon: string; readonly says: string }>> = {
  always: { word: "Always tell me", icon: "bell", says: "You are always told of it" },
  never: { word: "Never tell me", icon: "muted", says: "You are never told of it" },
  default: { word: "Tell me by the rules", icon: "bell", says: "You are told of it by the rules" },
};

/** A newer gateway may know another choice. */
const isTell = (word: string): word is Tell => Object.hasOwn(CHOICES, word);

export const tellWords = (tell: string): string => CHOICES[isTell(tell) ? tell : "default"].says;

/** The other choices, as entries of a menu. */
export const tellEntries = (now: string | undefined, choose: (tell: Tell) => void): readonly MenuEntry[] =>
  (Object.keys(CHOICES) as Tell[])
    .filter((tell) => tell !== (now ?? "default"))
    .map((tell) => ({ word: CHOICES[tell].word, icon: CHOICES[tell].icon, act: () => choose(tell) }));
