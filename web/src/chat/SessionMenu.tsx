import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { pinSession } from "../net/doors";
import { call } from "../net/http";
import type { SessionView } from "../log/model";
import { Confirm } from "../parts/Confirm";
import { type Entry, Menu } from "../parts/Menu";
import { complain } from "../parts/toasts";

export interface Named {
  readonly id: string;
  readonly title: string;
  readonly archived: boolean;
  readonly pinned: boolean;
}

export function SessionActions({ session, extra = [], className }: {
  readonly session: Named; readonly extra?: readonly Entry[]; readonly className?: string;
}): ReactNode {
  const [asking, setAsking] = useState<"rename" | "delete" | null>(null);
  const [title, setTitle] = useState(session.title);
  const [, go] = useLocation();
  const path = { id: session.id };
  const entries: Entry[] = [
    { word: "Rename", icon: "edit", act: () => { setTitle(session.title); setAsking("rename"); } },
    { word: session.pinned ? "Unpin" : "Pin", icon: "pin", act: () => void pinSession(session.id, !session.pinned).catch(complain) },
    session.archived
      ? { word: "Restore", icon: "undo", act: () => void call("POST /v1/sessions/{id}/restore", { path }).catch(complain) }
      : { word: "Archive", icon: "card", act: () => void call("POST /v1/sessions/{id}/archive", { path }).catch(complain) },
    ...extra,
    { word: "Export as Markdown", icon: "download", href: `/v1/sessions/${session.id}/export?format=markdown` },
    { word: "Export the log", icon: "download", href: `/v1/sessions/${session.id}/export?format=jsonl` },
    { word: "Delete", icon: "close", danger: true, act: () => setAsking("delete") },
  ];
  const rename = (): void => {
    setAsking(null);
    if (title.trim()) void call("PATCH /v1/sessions/{id}", { path, body: { title: title.trim() } }).catch(complain);
  };
  const remove = (): void => {
    setAsking(null);
    void call("DELETE /v1/sessions/{id}", { path }).then(() => go("/s"), complain);
  };
  return (
    <>
      <Menu name={`Session menu of ${session.title}`} entries={entries} {...(className ? { className } : {})} />
      {asking === "rename" && (
        <Confirm title="Rename the session" verb="Rename" danger={false} disabled={!title.trim()} onNo={() => setAsking(null)} onYes={rename}>
          <input className="input w-full" aria-label="Title" maxLength={200} value={title} onChange={(event) => setTitle(event.target.value)} autoFocus />
        </Confirm>
      )}
      {asking === "delete" && (
        <Confirm title={`Delete “${session.title}”?`} verb="Delete 1 session" onNo={() => setAsking(null)} onYes={remove}>
          <p>Its events are deleted for good. Tasks that it started stay in the archive.</p>
        </Confirm>
      )}
    </>
  );
}

export function SessionMenu({ view }: { readonly view: SessionView }): ReactNode {
  const [, go] = useLocation();
  const path = { id: view.session };
  return (
    <SessionActions
      session={{ id: view.session, title: view.title, archived: view.archived, pinned: view.pinned }}
      extra={[
        { word: "Fork", icon: "fork", act: () => void call("POST /v1/sessions/{id}/fork", { path }).then(({ session }) => go(`/s/${session}`), complain) },
        { word: "Undo the last turn", icon: "undo", act: () => void call("POST /v1/sessions/{id}/undo", { path }).catch(complain) },
      ]}
    />
  );
}
