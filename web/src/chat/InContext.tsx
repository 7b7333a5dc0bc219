import { useQuery } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { call } from "../api/http";
import type { SessionView } from "../log/model";
import { useIsExternal } from "../settings/queries";
import { count } from "../text";
import styles from "./InContext.module.css";

const SessionDialog = lazy(() => import("./SessionDialogs"));

/** What the model has before its eyes, against where the gateway makes it shorter; a click does that now. */
export function InContext({ view }: { readonly view: SessionView }): ReactNode {
  const { session: id, context: tokens, model, resets, items } = view;
  const [open, setOpen] = useState(false);
  const isExternal = useIsExternal(view.profile); // then its context is its own
  const begun = items.length > 0 && !isExternal;
  const found = useQuery({
    queryKey: ["context", id, model, tokens, resets.length],
    enabled: begun,
    staleTime: Infinity,
    placeholderData: (before) => before,
    queryFn: () => call("GET /v1/sessions/{id}/context", { path: { id }, query: { texts: false } }),
  }).data;
  if (!begun || (tokens === 0 && !found?.used)) return null;
  const used = found?.used || tokens;
  const most = found?.window ? Math.min(found.window, found.threshold || found.window) : (found?.threshold ?? 0);
  const part = most === 0 ? 0 : Math.min(1, used / most);
  const said =
    found && most > 0
      ? [
          `About ${used.toLocaleString("en")} tokens in view.`,
          `From ${most.toLocaleString("en")} on the context is made shorter;`,
          found.limit ? `more than ${found.limit.toLocaleString("en")} do not fit.` : "how many fit is not known.",
          "Compact now…",
        ].join(" ")
      : "Tokens of the last call of the model. Compact now…";
  return (
    <>
      <button
        type="button"
        className={`${styles.context} ${part > 0.8 ? styles.soon : ""}`}
        data-context
        title={said}
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
      >
        {most > 0 && (
          <svg viewBox="0 0 32 6" aria-hidden="true">
            <rect width="32" height="6" rx="2" />
            <rect className={styles.used} width={32 * part} height="6" rx="2" />
          </svg>
        )}
        {most === 0 ? `${count(used)} tokens in context` : `${count(used)} of ${count(most)} in context`}
      </button>
      {open && (
        <Suspense>
          <SessionDialog
            what="compact"
            session={{ id, title: view.title }}
            onClose={() => setOpen(false)}
            onDeleted={() => undefined}
          />
        </Suspense>
      )}
    </>
  );
}
