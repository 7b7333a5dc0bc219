import { memo, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { knownValue } from "../api/known";
import { load, save } from "../api/storage";
import type { SearchHit, SessionView } from "../api/types.gen";
import { NodeName } from "../nodes/NodeName";
import { DrawerButton } from "../shell/drawer";
import { useInbox } from "../shell/queries";
import { day, entryWords } from "../text";
import { Bar } from "../ui/Bar";
import { Button } from "../ui/Button";
import { Mark } from "../ui/Chip";
import { Loading } from "../ui/Empty";
import { useSettled } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { AsOf, Unknown } from "../ui/Known";
import { lazyPart } from "../ui/lazyPart";
import { SearchField } from "../ui/SearchField";
import shared from "../ui/shared.module.css";
import { rowState, type State } from "../ui/states";
import { Time } from "../ui/Time";
import { useVirtualRows } from "../ui/virtualRows";
import { NoSessions } from "./NoSessions";
import { newSession } from "./newSession";
import { KINDS, type Kind, useSearch, useSessions, useUnread } from "./queries";
import styles from "./SessionList.module.css";
import { SessionActions } from "./SessionMenu";

const SelectedActions = lazyPart(() => import("./SelectedActions"));

type Line =
  | { readonly kind: "band"; readonly key: string; readonly name: string }
  | { readonly kind: "row"; readonly key: string; readonly row: SessionView }
  | { readonly kind: "hit"; readonly key: string; readonly hit: SearchHit };

const HEIGHTS = { band: 32, row: 49, hit: 49 } as const;

/** All sessions: paged in as they are scrolled to, of which only those near the eye are rendered. */
export function SessionList({
  current,
  isMain,
}: {
  readonly current: string;
  /** Nothing stands beside it, so its heading is that of the page. */
  readonly isMain: boolean;
}): ReactNode {
  const [archived, setArchived] = useState(false);
  const [kind, setKind] = useState<Kind>(() => load<Kind>("session-kind", "mine"));
  const [text, setText] = useState("");
  const [selected, setSelected] = useState<ReadonlySet<string> | null>(null);
  const wanted = useSettled(text.trim());
  const [, go] = useLocation();
  const sessions = useSessions(archived, wanted, kind);
  const found = knownValue(useSearch(wanted))?.hits;
  const inbox = knownValue(useInbox());
  const needs = useMemo(
    () => new Map(inbox?.entries.map((entry) => [entry.session, entryWords(entry).replace(/^Turn \d+ failed: /, "")])),
    [inbox],
  );
  const box = useRef<HTMLElement>(null);
  const { rows, more, loadMore, known } = sessions;
  const lines = useMemo(
    () => inOrder(rows, more || selected ? [] : (wanted && found) || []),
    [rows, more, wanted, found, selected],
  );
  const shown = useVirtualRows({
    scroller: box,
    count: lines.length,
    rowKey: (index) => lines[index]?.key ?? index,
    estimate: (index) => HEIGHTS[lines[index]?.kind ?? "row"],
  });
  const last = shown.rows.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more && last > lines.length - 20) loadMore();
  }, [more, last, lines.length, loadMore]);
  // Another list begins at its top.
  const list = `${wanted}/${archived}/${kind}`;
  const before = useRef(list);
  useEffect(() => {
    if (before.current === list) return;
    before.current = list;
    if (box.current) box.current.scrollTop = 0;
  }, [list]);
  const choose = (next: Kind): void => {
    setKind(next);
    setSelected((now) => now && new Set());
    save("session-kind", next);
  };
  const select = (id: string, on: boolean): void => {
    const next = new Set(selected);
    if (on) next.add(id);
    else next.delete(id);
    setSelected(next);
  };
  const loaded = known.state === "known";
  return (
    <aside className={styles.list} aria-label="Sessions">
      <Bar className={styles.bar}>
        {isMain ? <h1>Chats</h1> : <h2 className={styles.name}>Chats</h2>}
        <AsOf known={known} />
        <span className={shared.grow} />
        {(selected !== null || known.state !== "known" || known.current) && (
          <Button quiet small aria-pressed={selected !== null} onClick={() => setSelected(selected ? null : new Set())}>
            Select
          </Button>
        )}
        <Button quiet icon aria-label="New session" onClick={() => newSession(go)}>
          <Icon name="plus" />
        </Button>
        {isMain && (
          <span className={shared.phoneOnly}>
            <DrawerButton />
          </span>
        )}
      </Bar>
      <SearchField className={styles.search} name="Search titles and text" value={text} onChange={setText} />
      <Kinds kind={kind} onChoose={choose} />
      <nav className={`${shared.scroll} ${styles.scroll}`} aria-label="Sessions" ref={box} tabIndex={-1}>
        {known.state === "loading" && lines.length === 0 && <Loading rows={8} />}
        {known.state === "unknown" && <Unknown reason={known.reason} />}
        {loaded && lines.length === 0 && (!wanted || found) && (
          <NoSessions kind={kind} archived={archived} wanted={wanted} onChoose={choose} />
        )}
        <ul style={{ paddingTop: shown.above, paddingBottom: shown.below }}>
          {shown.rows.map(({ index, key }) => {
            const line = lines[index];
            return (
              line && (
                <li key={key} ref={shown.measure} data-index={index} className={styles.item}>
                  {line.kind === "band" && <div className={styles.band}>{line.name}</div>}
                  {line.kind === "hit" && <Hit hit={line.hit} />}
                  {line.kind === "row" && (
                    <Row
                      row={line.row}
                      current={line.row.id === current}
                      asks={needs.get(line.row.id) ?? ""}
                      chosen={selected === null ? null : selected.has(line.row.id)}
                      onChoose={select}
                    />
                  )}
                </li>
              )
            );
          })}
        </ul>
        {more && (
          <p className={styles.more} role="status">
            Loading more…
          </p>
        )}
      </nav>
      <div className={styles.foot}>
        {selected === null ? (
          <Button quiet small aria-pressed={archived} onClick={() => setArchived(!archived)}>
            {archived ? "Back to the open ones" : "Archived"}
          </Button>
        ) : (
          <SelectedActions
            sessions={rows.filter((row) => selected.has(row.id))}
            archived={archived}
            onAll={() => setSelected(new Set(rows.map((row) => row.id)))}
            onDone={() => setSelected(null)}
          />
        )}
      </div>
    </aside>
  );
}

/** Whose sessions, with what is unread in them. */
function Kinds({ kind, onChoose }: { readonly kind: Kind; readonly onChoose: (kind: Kind) => void }): ReactNode {
  const unread = knownValue(useUnread());
  return (
    <div className={styles.kinds} role="group" aria-label="Which sessions">
      {KINDS.map(([name, word]) => {
        const count = name === "" ? 0 : (unread?.[name]?.messages ?? 0);
        return (
          <button
            key={name}
            type="button"
            className={styles.kind}
            aria-pressed={kind === name}
            onClick={() => onChoose(name)}
          >
            {word}
            {count > 0 && (
              <b className={styles.unread}>
                <span className={shared.srOnly}>, </span>
                {count > 99 ? "99+" : count}
                <span className={shared.srOnly}> unread</span>
              </b>
            )}
          </button>
        );
      })}
    </div>
  );
}

function inOrder(rows: readonly SessionView[], hits: readonly SearchHit[]): readonly Line[] {
  const lines: Line[] = [];
  let before = "";
  for (const row of rows) {
    const name = row.pinned ? "Pinned" : day(row.updated_at);
    if (name !== before) lines.push({ kind: "band", key: name, name });
    before = name;
    lines.push({ kind: "row", key: row.id, row });
  }
  if (hits.length > 0) lines.push({ kind: "band", key: "hits", name: "In the text" });
  return [...lines, ...hits.map((hit) => ({ kind: "hit", key: `${hit.session}-${hit.version}`, hit }) as const)];
}

const Row = memo(function Row({
  row,
  current,
  asks,
  chosen,
  onChoose,
}: {
  readonly row: SessionView;
  readonly current: boolean;
  /** What it wants of a person, or why its turn failed. */
  readonly asks: string;
  /** Null while nothing is selected. */
  readonly chosen: boolean | null;
  readonly onChoose: (id: string, on: boolean) => void;
}): ReactNode {
  const state = rowState(row);
  const unread = current ? 0 : (row.unread ?? 0);
  const preview = (asks || row.preview).replaceAll(/\s+/g, " ");
  const title = row.title || "New session";
  const body = (
    <>
      <Mark state={state} />
      <span className={`${styles.title} ${shared.cut}`} dir="auto">
        {title}
      </span>
      <span className={styles.when}>
        <Time at={row.updated_at} />
      </span>
      <span className={styles.sub}>
        <span className={shared.cut} dir="auto">
          {state.word}
          {preview ? `${row.state === "idle" && !asks ? " · " : ": "}${preview}` : ""}
        </span>
        <NodeName node={row.host} />
      </span>
      {unread > 0 && (
        <span className={styles.unread}>
          {unread}
          <span className={shared.srOnly}> unread</span>
        </span>
      )}
    </>
  );
  const looks = `${styles.row} ${unread ? styles.fresh : ""}`;
  if (chosen !== null)
    return (
      <label className={`${looks} ${styles.choosing}`} data-target>
        <input type="checkbox" checked={chosen} onChange={(event) => onChoose(row.id, event.target.checked)} />
        {body}
      </label>
    );
  return (
    <div className={styles.holder} data-why={`session/${row.id}`}>
      <Link
        className={looks}
        href={`/s/${row.id}`}
        data-row-link
        data-target
        aria-current={current ? "page" : undefined}
      >
        {body}
      </Link>
      <span className={styles.menu}>
        <SessionActions small session={row} />
      </span>
    </div>
  );
});

const ASKED: State = { look: "idle", icon: "comment", word: "A message" };
const ANSWERED: State = { look: "idle", icon: "agent", word: "An answer" };

function Hit({ hit }: { readonly hit: SearchHit }): ReactNode {
  return (
    <div className={styles.holder} data-why={`session/${hit.session}`}>
      <Link className={styles.row} href={`/s/${hit.session}#${hit.version}`} data-row-link data-hit>
        <Mark state={hit.role === "user" ? ASKED : ANSWERED} />
        <span className={`${styles.title} ${shared.cut}`} dir="auto">
          {hit.title}
        </span>
        <span className={styles.when}>
          <Time at={hit.at} />
        </span>
        <span className={styles.sub}>
          <span className={shared.cut} dir="auto">
            {hit.snippet}
          </span>
        </span>
      </Link>
    </div>
  );
}
