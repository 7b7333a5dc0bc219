import { lazy, type ReactNode, Suspense, useState } from "react";
import { useLocation } from "wouter";
import { pinSession } from "../api/endpoints";
import { call, Refused } from "../api/http";
import type { SessionView } from "../log/model";
import { NodeDialog } from "../nodes/NodeDialogPart";
import { useSeveralNodes } from "../nodes/queries";
import { useIsExternal } from "../settings/queries";
import { tellEntries } from "../tell";
import { Confirm } from "../ui/Confirm";
import { Menu, type MenuEntry } from "../ui/Menu";
import shared from "../ui/shared.module.css";
import { toastError } from "../ui/toasts";
import { AgentDialog } from "./AgentButton";
import type { Asked } from "./SessionDialogs";

const SessionDialog = lazy(() => import("./SessionDialogs"));

export interface Named {
  readonly id: string;
  readonly title: string;
  readonly profile: string;
  readonly archived: boolean;
  readonly pinned: boolean;
  readonly tell?: string;
}

/** Archived at once, unless something runs: then the gateway wants to know what becomes of it. */
function archive(id: string, ask: () => void): void {
  call("POST /v1/sessions/{id}/archive", { path: { id } }).catch((error: unknown) => {
    if (error instanceof Refused && error.code === "conflict") ask();
    else toastError(error);
  });
}

export function SessionActions({
  session,
  extra = [],
  small = false,
}: {
  readonly session: Named;
  readonly extra?: readonly MenuEntry[];
  readonly small?: boolean;
}): ReactNode {
  const [asking, setAsking] = useState<"rename" | "node" | Asked | null>(null);
  const [title, setTitle] = useState(session.title);
  const [, go] = useLocation();
  const isExternal = useIsExternal(session.profile);
  const severalNodes = useSeveralNodes();
  const path = { id: session.id };
  const close = (): void => setAsking(null);
  const entries: MenuEntry[] = [
    {
      word: "Rename",
      icon: "edit",
      act: () => {
        setTitle(session.title);
        setAsking("rename");
      },
    },
    {
      word: session.pinned ? "Unpin" : "Pin",
      icon: "pin",
      act: () => void pinSession(session.id, !session.pinned).catch(toastError),
    },
    ...tellEntries(
      session.tell,
      (tell) => void call("POST /v1/sessions/{id}/tell", { path, body: { tell } }).catch(toastError),
    ),
    { word: "Reset…", icon: "refresh", act: () => setAsking("reset") },
    { word: "When it is reset…", icon: "clock", act: () => setAsking("policy") },
    ...(isExternal ? [] : [{ word: "Compact now…", icon: "partial", act: () => setAsking("compact") }]),
    ...(severalNodes ? [{ word: "Run on another node…", icon: "node", act: () => setAsking("node") }] : []),
    session.archived
      ? {
          word: "Restore",
          icon: "undo",
          act: () => void call("POST /v1/sessions/{id}/restore", { path }).catch(toastError),
        }
      : { word: "Archive", icon: "card", act: () => archive(session.id, () => setAsking("archive")) },
    ...extra,
    { word: "Export as Markdown", icon: "download", href: `/v1/sessions/${session.id}/export?format=markdown` },
    { word: "Export the log", icon: "download", href: `/v1/sessions/${session.id}/export?format=jsonl` },
    { word: "Delete", icon: "close", danger: true, act: () => setAsking("delete") },
  ];
  const rename = (): void => {
    close();
    if (title.trim()) void call("PATCH /v1/sessions/{id}", { path, body: { title: title.trim() } }).catch(toastError);
  };
  return (
    <>
      <Menu name={`Session menu of ${session.title}`} entries={entries} small={small} />
      {asking === "rename" && (
        <Confirm
          title="Rename the session"
          verb="Rename"
          danger={false}
          disabled={!title.trim()}
          onNo={close}
          onYes={rename}
        >
          <input
            className={`${shared.input} ${shared.fullWidth}`}
            aria-label="Title"
            maxLength={200}
            value={title}
            onChange={(event) => setTitle(event.target.value)}
            data-autofocus
          />
        </Confirm>
      )}
      {asking === "node" && (
        <NodeDialog
          subject={{ kind: "session", id: session.id, name: session.title || "New session" }}
          onClose={close}
        />
      )}
      {asking !== null && asking !== "rename" && asking !== "node" && (
        <Suspense>
          <SessionDialog what={asking} session={session} onClose={close} onDeleted={() => go("/s")} />
        </Suspense>
      )}
    </>
  );
}

export function SessionMenu({ view }: { readonly view: SessionView }): ReactNode {
  const [, go] = useLocation();
  const [choosing, setChoosing] = useState(false);
  const isExternal = useIsExternal(view.profile);
  const path = { id: view.session };
  return (
    <>
      <SessionActions
        session={{
          id: view.session,
          title: view.title,
          profile: view.profile,
          archived: view.archived,
          pinned: view.pinned,
          tell: view.tell,
        }}
        extra={[
          { word: "Agent…", icon: "agent", act: () => setChoosing(true) },
          {
            word: "Fork",
            icon: "fork",
            act: () =>
              void call("POST /v1/sessions/{id}/fork", { path }).then(({ session }) => go(`/s/${session}`), toastError),
          },
          ...(isExternal
            ? []
            : [
                {
                  word: "Undo the last turn",
                  icon: "undo",
                  act: () => void call("POST /v1/sessions/{id}/undo", { path }).catch(toastError),
                },
              ]),
        ]}
      />
      {choosing && <AgentDialog session={view.session} agent={view} onClose={() => setChoosing(false)} />}
    </>
  );
}
