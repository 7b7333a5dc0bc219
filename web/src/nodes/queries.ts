/** The nodes that share the log, and which words choose one of them. */
import { call } from "../api/http";
import { type Known, knownValue, mapKnown, useKnown } from "../api/known";
import type { NodeView } from "../api/types.gen";

export const NODES = ["nodes"] as const;

export const useNodes = (): Known<readonly NodeView[]> =>
  mapKnown(useKnown({ queryKey: NODES, queryFn: () => call("GET /v1/nodes") }), ({ nodes }) => nodes);

/** Whether it matters on which node something runs. */
export const useSeveralNodes = (): boolean => (knownValue(useNodes())?.length ?? 0) > 1;

const STATES: Readonly<Record<string, string>> = { draining: "being drained", ended: "away" };

const described = (node: NodeView): string =>
  [node.name, node.here ? "this one" : "", STATES[node.state] ?? ""].filter(Boolean).join(", ");

/** What a form offers: each node by its name, and each label. A word that no node has is kept and says so. */
export function nodeOptions(nodes: readonly NodeView[], chosen: string): readonly (readonly [string, string])[] {
  const names = nodes.map((node) => node.name);
  const labels = [...new Set(nodes.flatMap((node) => node.labels ?? []))].filter((label) => !names.includes(label));
  return [
    ["", "Any node"],
    ...nodes.map((node) => [node.name, described(node)] as const),
    ...labels.sort().map((label) => [label, `Any with the label ${label}`] as const),
    ...(chosen && ![...names, ...labels].includes(chosen) ? [[chosen, `${chosen}, which is not there`] as const] : []),
  ];
}
