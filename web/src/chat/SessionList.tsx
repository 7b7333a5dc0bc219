import { memo, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import type { SearchHit, SessionView } from "../api/types.gen";
import { day } from "../text";
import { Mark } from "../ui/Chip";
import { Empty, Loading } from "../ui/Empty";
import { useSettled } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { rowState } from "../ui/states";
import { Time } from "../ui/Time";
import { useRows } from "../ui/window";
import { newSession } from "./newSession";
import { useSearch, useSessions } from "./queries";
import { SessionActions } from "./SessionMenu";

type Line =
  | { readonly kind: "band"; readonly name: string }
  | { readonly kind: "row"; readonly row: SessionView }
  | { readonly kind: "row"; readonly hit: SearchHit };
const GUESS = { band: 30, row: 49 };

/** All sessions: paged in as they are scrolled to, of which only those near the eye are rendered. */
export function SessionList({ current }: { readonly current: string }): ReactNode {
  const [archived, setArchived] = useState(false);
  const [text, setText] = useState("");
  const wanted = useSettled(text.trim());
  const [, go] = useLocation();
  const sessions = useSessions(archived, wanted);
  const found = useSearch(wanted).data?.hits;
  const box = useRef<HTMLElement>(null);
  const { rows, more, loadMore } = sessions;
  const lines = useMemo(() => inOrder(rows, more ? [] : (wanted && found) || []), [rows, more, wanted, found]);
  const kinds = useMemo(() => lines.map((line) => line.kind), [lines]);
  const shown = useRows(box, kinds, GUESS);
  useEffect(() => {
    if (more && shown.last > lines.length - 20) loadMore();
  }, [more, shown.last, lines.length, loadMore]);
  useEffect(() => {
    if (box.current) box.current.scrollTop = 0;
  }, [wanted, archived]);
  return (
    <aside className="list" aria-label="Sessions">
      <div className="bar">
        {current ? <h2 className="!text-16">Chats</h2> : <h1>Chats</h1>}
        <span className="grow" />
        <button type="button" className="btn quiet icon" aria-label="New session" onClick={() => void newSession(go)}>
          <Icon name="plus" />
        </button>
      </div>
      <div className="field">
        <Icon name="search" />
        <input
          type="search"
          data-search
          placeholder="Search titles and text"
          aria-label="Search titles and text"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <span className="kbd wide">/</span>
      </div>
      <nav className="scroll" aria-label="Sessions" ref={box} tabIndex={-1}>
        {sessions.isLoading && <Loading rows={8} />}
        {sessions.loaded &&
          lines.length === 0 &&
          (wanted ? (
            found && <Empty title="Nothing found">No title and no text has “{wanted}” in it.</Empty>
          ) : (
            <Empty
              title={archived ? "Nothing is archived" : "No session yet"}
              action={
                !archived && (
                  <button type="button" className="btn" onClick={() => void newSession(go)}>
                    New session
                  </button>
                )
              }
            >
              {archived
                ? "An archived session is hidden from the list. Nothing is deleted."
                : "A session is a conversation with an agent. It lives here, not in this tab."}
            </Empty>
          ))}
        <div style={{ height: shown.above }} />
        {lines.slice(shown.first, shown.last).map((line) =>
          line.kind === "band" ? (
            <div key={line.name} className="group" data-kind="band">
              <span>{line.name}</span>
            </div>
          ) : "row" in line ? (
            <Row key={line.row.id} row={line.row} current={line.row.id === current} />
          ) : (
            <Hit key={`${line.hit.session}-${line.hit.version}`} hit={line.hit} />
          ),
        )}
        <div style={{ height: shown.below }} />
        {more && (
          <p className="faint px-4 py-2" role="status">
            Loading more…
          </p>
        )}
      </nav>
      <div className="flex px-2 py-1 border-t border-hairline">
        <button
          type="button"
          className="btn quiet small"
          aria-pressed={archived}
          onClick={() => setArchived(!archived)}
        >
          {archived ? "Back to the open ones" : "Archived"}
        </button>
      </div>
    </aside>
  );
}

function inOrder(rows: readonly SessionView[], hits: readonly SearchHit[]): readonly Line[] {
  const lines: Line[] = [];
  let before = "";
  for (const row of rows) {
    const name = row.pinned ? "Pinned" : day(row.updated_at);
    if (name !== before) lines.push({ kind: "band", name });
    before = name;
    lines.push({ kind: "row", row });
  }
  if (hits.length > 0)
    lines.push({ kind: "band", name: "In the text" }, ...hits.map((hit) => ({ kind: "row", hit }) as const));
  return lines;
}

const Row = memo(function Row({ row, current }: { readonly row: SessionView; readonly current: boolean }): ReactNode {
  const state = rowState(row);
  const unread = current ? 0 : (row.unread ?? 0);
  const preview = row.preview.replaceAll(/\s+/g, " ");
  return (
    <div
      className={`sess ${unread ? "fresh" : ""}`}
      data-kind="row"
      data-why={`session/${row.id}`}
      aria-current={current ? "true" : undefined}
    >
      <Mark state={state} />
      <Link href={`/s/${row.id}`} aria-current={current ? "page" : undefined}>
        <span className="title cut">{row.title || "New session"}</span>
      </Link>
      <span className="when">
        <Time at={row.updated_at} />
      </span>
      <span className="sub cut">
        {state.word}
        {preview ? `${row.state === "idle" ? " · " : ": "}${preview}` : ""}
      </span>
      {unread > 0 && (
        <span className="unread" aria-label={`${unread} unread`}>
          {unread}
        </span>
      )}
      <span className="absolute right-1.5 bottom-1 z-1">
        <SessionActions className="btn quiet small icon more !static" session={row} />
      </span>
    </div>
  );
});

function Hit({ hit }: { readonly hit: SearchHit }): ReactNode {
  return (
    <div className="sess" data-kind="row" data-why={`session/${hit.session}`}>
      <span className="mark idle">
        <Icon name={hit.role === "user" ? "comment" : "agent"} />
      </span>
      <Link href={`/s/${hit.session}#${hit.version}`}>
        <span className="title cut">{hit.title}</span>
      </Link>
      <span className="when">
        <Time at={hit.at} />
      </span>
      <span className="sub cut">{hit.snippet}</span>
    </div>
  );
}
