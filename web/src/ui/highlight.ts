/** Code in colours. It is loaded when the first block of code is shown. */
import { common, createLowlight } from "lowlight";

export interface Token {
  /** What it is, where that has a colour. */
  readonly kind: string;
  readonly text: string;
}

const lowlight = createLowlight(common);
lowlight.registerAlias({ bash: ["sh", "shell", "zsh", "console"], javascript: ["jsx"], ini: ["toml"] });

/** The names of the highlighter are many; these are the colours that we have. */
const KINDS: Readonly<Record<string, string>> = {
  keyword: "keyword",
  built_in: "keyword",
  type: "keyword",
  literal: "number",
  number: "number",
  string: "string",
  regexp: "string",
  symbol: "string",
  comment: "comment",
  quote: "comment",
  doctag: "comment",
  title: "name",
  section: "name",
  name: "name",
  attr: "name",
  attribute: "name",
  property: "name",
  variable: "meta",
  meta: "meta",
  "selector-tag": "keyword",
  "selector-class": "name",
  "selector-id": "name",
  "template-variable": "meta",
};

interface Node {
  readonly type: string;
  readonly value?: string;
  readonly properties?: { readonly className?: unknown };
  readonly children?: readonly Node[];
}

/** The text in pieces, or null for a language that nobody here knows. */
export function highlight(text: string, language: string): readonly Token[] | null {
  const name = language.toLowerCase();
  if (!lowlight.registered(name)) return null;
  const found: Token[] = [];
  const walk = (node: Node, kind: string): void => {
    if (node.type === "text") found.push({ kind, text: node.value ?? "" });
    const names = Array.isArray(node.properties?.className) ? node.properties.className.map(String) : [];
    const own = names.map((one) => KINDS[one.replace(/^hljs-/, "")]).find(Boolean) ?? kind;
    for (const child of node.children ?? []) walk(child, own);
  };
  walk(lowlight.highlight(name, text) as Node, "");
  return found;
}
