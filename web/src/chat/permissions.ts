import type { ProfileView } from "../api/types.gen";

/** What it may do without asking, as far as the profile says. */
export function permissionWords(profile: ProfileView): string {
  const of = (policy: string): string =>
    Object.entries(profile.tools)
      .filter(([, value]) => value === policy)
      .map(([name]) => name)
      .join(", ");
  const asks = of("ask") && `It asks before: ${of("ask")}.`;
  const allowed = of("allow") && `Allowed without asking: ${of("allow").replace(/^\*$/, "everything")}.`;
  const refused = of("deny") && `Refused: ${of("deny")}.`;
  return [asks, allowed, refused].filter(Boolean).join(" ") || "It asks before commands and changes.";
}

/** The same in two words. */
export function permissionWord({ tools }: ProfileView): string {
  return tools["*"] === "allow" && !Object.values(tools).includes("ask") ? "asks nothing" : "asks first";
}
