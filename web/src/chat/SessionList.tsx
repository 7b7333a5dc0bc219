import { type ReactNode, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import type { SearchHit } from "../api.gen";
import type { SessionRow } from "../net/doors";
import { useSearch, useSessions } from "../net/queries";
import { Mark } from "../parts/Chip";
import { Empty, Loading } from "../parts/Empty";
import { Icon } from "../parts/Icon";
import { rowState } from "../parts/states";
import { Time } from "../parts/Time";
import { day } from "../words";
import { newSession } from "./newSession";
import { SessionActions } from "./SessionMenu";

export function SessionList({ current }: { readonly current: string }): ReactNode {
  const [archived, setArchived] = useState(false);
  const [text, setText] = useState("");
  const [asked, setAsked] = useState("");
  const [, go] = useLocation();
  const sessions = useSessions(archived);
  const found = useSearch(asked);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(text.trim()), 200);
    return () => clearTimeout(timer);
  }, [text]);
  const wanted = text.trim().toLowerCase();
  const rows = (sessions.data?.sessions ?? []).filter((row) => !wanted || row.title.toLowerCase().includes(wanted));
  return (
    <aside className="list" aria-label="Sessions">
      <div className="bar">
        {current ? <h2 className="!text-16">Chats</h2> : <h1>Chats</h1>}<span className="grow" />
        <button type="button" className="btn quiet icon" aria-label="New session" onClick={() => void newSession(go)}><Icon name="plus" /></button>
      </div>
      <div className="field">
        <Icon name="search" />
        <input type="search" data-search placeholder="Search titles and text" aria-label="Search titles and text" value={text} onChange={(event) => setText(event.target.value)} />
        <span className="kbd wide">/</span>
      </div>
      <nav className="scroll" aria-label="Sessions">
        {sessions.isLoading && <Loading rows={8} />}
        {sessions.data && rows.length === 0 && !wanted && (
          <Empty title={archived ? "Nothing is archived" : "No session yet"} action={!archived && <button type="button" className="btn" onClick={() => void newSession(go)}>New session</button>}>
            {archived ? "An archived session leaves the list and keeps everything." : "A session is a conversation with an agent. It lives here, not in this tab."}
          </Empty>
        )}
        {grouped(rows).map(([name, group]) => (
          <div key={name}>
            <div className="group"><span>{name}</span></div>
            {group.map((row) => <Row key={row.id} row={row} current={row.id === current} />)}
          </div>
        ))}
        {asked && found.data && found.data.hits.length > 0 && (
          <>
            <div className="group"><span>In the text</span></div>
            {found.data.hits.map((hit) => <Hit key={`${hit.session}-${hit.version}`} hit={hit} />)}
          </>
        )}
        {wanted && rows.length === 0 && found.data?.hits.length === 0 && <Empty title="Nothing found">No title and no text has “{text.trim()}” in it.</Empty>}
      </nav>
      <div className="flex px-2 py-1 border-t border-hairline">
        <button type="button" className="btn quiet small" aria-pressed={archived} onClick={() => setArchived(!archived)}>{archived ? "Back to the open ones" : "Archived"}</button>
      </div>
    </aside>
  );
}

function grouped(rows: readonly SessionRow[]): readonly (readonly [string, readonly SessionRow[]])[] {
  const groups = new Map<string, SessionRow[]>();
  for (const row of [...rows.filter((one) => one.pinned), ...rows.filter((one) => !one.pinned)]) {
    const name = row.pinned ? "Pinned" : day(row.updated_at);
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups];
}

function Row({ row, current }: { readonly row: SessionRow; readonly current: boolean }): ReactNode {
  const state = rowState(row);
  const unread = current ? 0 : (row.unread ?? 0);
  const preview = row.preview.replaceAll(/\s+/g, " ");
  return (
    <div className={`sess ${unread ? "fresh" : ""}`} aria-current={current ? "true" : undefined}>
      <Mark state={state} />
      <Link href={`/s/${row.id}`} aria-current={current ? "page" : undefined}><span className="title cut">{row.title || "New session"}</span></Link>
      <span className="when"><Time at={row.updated_at} /></span>
      <span className="sub cut">{state.word}{preview ? `${row.state === "idle" ? " · " : ": "}${preview}` : ""}</span>
      {unread > 0 && <span className="unread" aria-label={`${unread} unread`}>{unread}</span>}
      <SessionActionsOf row={row} />
    </div>
  );
}

function SessionActionsOf({ row }: { readonly row: SessionRow }): ReactNode {
  return (
    <span className="absolute right-1.5 bottom-1 z-1">
      <SessionActions className="btn quiet small icon more !static" session={{ id: row.id, title: row.title, archived: row.archived, pinned: row.pinned ?? false }} />
    </span>
  );
}

function Hit({ hit }: { readonly hit: SearchHit }): ReactNode {
  return (
    <div className="sess">
      <span className="mark idle"><Icon name={hit.role === "user" ? "comment" : "agent"} /></span>
      <Link href={`/s/${hit.session}#${hit.version}`}><span className="title cut">{hit.title}</span></Link>
      <span className="when"><Time at={hit.at} /></span>
      <span className="sub cut">{hit.snippet}</span>
    </div>
  );
}
