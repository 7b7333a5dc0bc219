import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { call } from "../net/http";
import type { SessionView } from "../log/model";
import { count } from "../words";

/** What the model had before its eyes at its last call, against what it can see at once when that is known. */
export function InContext({ view }: { readonly view: SessionView }): ReactNode {
  const { session: id, context: tokens, model } = view;
  const asked = useQuery({
    queryKey: ["window", id, model], enabled: tokens > 0, staleTime: Infinity,
    queryFn: async () => (await call("GET /v1/sessions/{id}/context", { path: { id }, query: { texts: false } })).window,
  });
  if (tokens === 0) return null;
  const window = asked.data ?? null;
  const part = window === null ? 0 : Math.min(1, tokens / window);
  const full = part > 0.8;
  return (
    <span className={`context wide ${full ? "waiting" : ""}`} title={window === null ? "Tokens of the last call of the model. How many it can see at once is not known." : `The last call of the model had ${tokens.toLocaleString("en")} of ${window.toLocaleString("en")} tokens in view.`}>
      {window !== null && <svg viewBox="0 0 32 6" aria-hidden="true"><rect width="32" height="6" rx="2" /><rect className="used" width={32 * part} height="6" rx="2" /></svg>}
      {window === null ? `${count(tokens)} tokens in context` : `${count(tokens)} of ${count(window)} in context`}
    </span>
  );
}
