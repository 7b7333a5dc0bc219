/** The rules of a profile as lines: `write:docs/* = allow`. */
import type { EditProfile, ProfileView } from "../api/types.gen";

type Tools = NonNullable<EditProfile["tools"]>;

export const rulesText = (tools: ProfileView["tools"]): string =>
  Object.entries(tools)
    .map(([pattern, policy]) => `${pattern} = ${policy}`)
    .join("\n");

/** The last = divides: a pattern may have others. */
export function parseRules(text: string): { readonly tools: Tools } | { readonly problem: string } {
  const tools: Tools = {};
  for (const line of text.split("\n").map((one) => one.trim())) {
    if (!line) continue;
    const [, pattern = "", policy = ""] = /^(.+?)\s*=\s*(allow|ask|deny)$/.exec(line) ?? [];
    if (!pattern) return { problem: `Not a rule: ${line}` };
    if (pattern in tools) return { problem: `There are two rules for ${pattern}.` };
    tools[pattern] = policy as Tools[string];
  }
  return { tools };
}
