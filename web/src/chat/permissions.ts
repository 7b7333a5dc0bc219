import type { ProfileView } from "../api/types.gen";

/** What it may do without asking, as far as the profile says. */
export function permissionWords(profile: ProfileView): string {
  if (profile.agent) return externalWords(profile);
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

/** An external agent has rules of its own; the profile can answer for a whole tool. */
function externalWords({ tools }: ProfileView): string {
  const answered = Object.entries(tools)
    .filter(([, policy]) => policy !== "ask")
    .map(([name, policy]) => `, but ${name} is ${policy === "allow" ? "allowed" : "refused"}`);
  return `It has rules of its own; what it asks waits for you${answered.join("")}.`;
}

/** The same in two words. */
export function permissionWord({ tools, agent }: ProfileView): string {
  if (agent) return "its own rules";
  const policies = Object.values(tools);
  if (tools["*"] === "allow" && !policies.includes("ask")) return "asks nothing";
  return policies.includes("allow") ? "asks sometimes" : "asks first";
}
