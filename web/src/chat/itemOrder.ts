import type { Item, SessionView, StepItem } from "../log/model";

/**
 * What an external agent says of itself, plans and asks stands before the step that was open then. That step is not
 * shown as work while it only waits for an answer.
 */
export function asTheyHappened({ items, wait }: Pick<SessionView, "items" | "wait">): readonly Item[] {
  const found: Item[] = [];
  for (const [index, item] of items.entries()) {
    if (item.kind === "step" && wait !== null && index < wait && isSilent(item)) continue;
    const step = found.at(-1);
    const belongs = item.kind === "wait" || (item.kind === "notice" && AGENT_NOTICES.has(item.event.kind));
    if (belongs && step?.kind === "step" && (step.live || step.version > item.version)) found.splice(-1, 0, item);
    else found.push(item);
  }
  return found;
}

const AGENT_NOTICES: ReadonlySet<string> = new Set(["AgentAttached", "AgentPlanned"]);
const isSilent = (step: StepItem): boolean => step.live && !step.text && !step.thinking && step.calls.length === 0;
