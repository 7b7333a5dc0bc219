import { expect, test } from "vitest";
import { parseRules, rulesText } from "./profileRules";

test("rules are read as they are written", () => {
  const tools = { write: "ask", "terminal:make A=1 *": "allow", "*": "deny" };
  expect(parseRules(`${rulesText(tools)}\n\n`)).toEqual({ tools });
});

test("what is no rule is named", () => {
  expect(parseRules("write = maybe")).toEqual({ problem: "Not a rule: write = maybe" });
  expect(parseRules("= allow")).toEqual({ problem: "Not a rule: = allow" });
  expect(parseRules("write = ask\nwrite=allow")).toEqual({ problem: "There are two rules for write." });
});
