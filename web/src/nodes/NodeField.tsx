/** On which node something may run; nothing where there is only one. */
import type { ReactNode } from "react";
import { knownValue } from "../api/known";
import { SelectField } from "../ui/fields";
import { nodeOptions, useNodes } from "./queries";

export function NodeField({
  value,
  onChange,
}: {
  readonly value: string;
  readonly onChange: (node: string) => void;
}): ReactNode {
  const nodes = knownValue(useNodes()) ?? [];
  if (nodes.length < 2) return null;
  return <SelectField label="Node" value={value} options={nodeOptions(nodes, value)} onChange={onChange} />;
}
