/** Where a session or a card runs, and where it is to run. */
import { call } from "../api/http";
import { type Known, useKnown } from "../api/known";

export interface Placed {
  /** The name or label that it asks for; empty is any. */
  readonly node: string;
  /** The node that works on it or did so last, where there are several. */
  readonly host: string;
}

export const usePlaced = (kind: "session" | "card", id: string, enabled = true): Known<Placed> =>
  useKnown({
    // asked again when something happened to it: the log says so for these names
    queryKey: kind === "session" ? ["outlook", id, "node"] : ["card", id, "node"],
    enabled,
    queryFn: async () => {
      if (kind === "card") {
        const { card } = await call("GET /v1/cards/{id}", { path: { id } });
        return { node: card.node ?? "", host: card.host ?? "" };
      }
      const { session, node = "" } = await call("GET /v1/sessions/{id}", { path: { id } });
      return { node, host: session.host ?? "" };
    },
  });
