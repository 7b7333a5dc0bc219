/** What an agent may do at most in a session, besides what its profile allows. */
import { type SessionMode, strictestMode } from "../log/model";

/** The modes in a few words, as in the bar of a chat. */
export const MODE_WORDS: Readonly<Record<SessionMode, string>> = {
  profile: "as the profile says",
  ask: "asking before every change",
  read: "read only",
};

/** The modes as choices. */
export const MODE_OPTIONS: readonly (readonly [SessionMode, string])[] = [
  ["profile", "As the profile says"],
  ["ask", "Ask before every change and command"],
  ["read", "Read only: no changes, no commands"],
];

/** The stricter of what was chosen and what was inherited. */
export const modeInForce = (session: {
  readonly mode?: SessionMode;
  readonly inheritedMode?: SessionMode;
}): SessionMode => strictestMode([session.mode ?? "profile", session.inheritedMode ?? "profile"]);
