/** A board: its columns, its cards, one of them open. */
import { type ReactNode, useDeferredValue, useEffect, useMemo, useState } from "react";
import { Link, Redirect, useLocation } from "wouter";
import { call } from "../api/http";
import { type Known, knownValue, useKnown } from "../api/known";
import { queryClient } from "../api/queryClient";
import { load, save } from "../api/storage";
import type { BoardView, CardView } from "../api/types.gen";
import { Banners } from "../chat/Banner";
import { COLUMNS, type Column, columns } from "../log/cards";
import { NodeDialog } from "../nodes/NodeDialogPart";
import { useSeveralNodes } from "../nodes/queries";
import { DrawerButton } from "../shell/drawer";
import { tellEntries } from "../tell";
import { byWhom, cardLabel, cardPath, plural } from "../text";
import { Bar } from "../ui/Bar";
import { Button, buttonClass } from "../ui/Button";
import { Chip } from "../ui/Chip";
import { Empty, Loading } from "../ui/Empty";
import { useMedia, useNow, useTitle } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { AsOf, Show } from "../ui/Known";
import { Menu } from "../ui/Menu";
import { SearchField } from "../ui/SearchField";
import shared from "../ui/shared.module.css";
import { Tabs } from "../ui/Tabs";
import { toastError } from "../ui/toasts";
import styles from "./BoardPage.module.css";
import { BoardSwitch, PauseButton } from "./BoardSwitch";
import { CardDrawer } from "./CardDrawer";
import { CardForm } from "./CardForm";
import { Columns } from "./Columns";
import { type Moves, moveEntries, tellOfCard, useMoves, WORDS } from "./moves";
import { boardTitle, DEFAULT_BOARD, useBoards, useCard, useCardId, useCards } from "./queries";

const NONE: readonly CardView[] = [];

export default function BoardPage({ name, card }: { readonly name: string; readonly card: string }): ReactNode {
  const boards = useBoards();
  const last = load("board", "");
  const known = knownValue(boards);
  if (!name) {
    const first = known?.find((one) => one.id === last) ?? known?.[0];
    const to = known ? (first?.id ?? DEFAULT_BOARD) : boards.state === "unknown" ? last : "";
    if (to) return <Redirect to={`/board/${to}`} replace />;
    return (
      <div className={shared.page}>
        <Bar>
          <h1>Board</h1>
        </Bar>
        <Banners />
        <Show known={boards}>{() => null}</Show>
      </div>
    );
  }
  const exists = known?.some((one) => one.id === name) || (name === DEFAULT_BOARD && known?.length === 0);
  if (known && !exists) return <NoBoard name={name} boards={known} />;
  return <Board key={name} name={name} card={card} boards={boards} />;
}

/** `/card/ID`: wherever it stands. */
export function CardAnywhere({ id }: { readonly id: string }): ReactNode {
  const asked = useCard(id);
  if (asked.state === "known") return <Redirect to={cardPath(asked.value.card)} replace />;
  return (
    <div className={shared.page}>
      <Bar>
        <h1>Card</h1>
      </Bar>
      <Banners />
      {asked.state === "unknown" && asked.missing ? (
        <Empty
          title="Card not found"
          action={
            <Link className={buttonClass()} href="/board">
              To the board
            </Link>
          }
        >
          {asked.reason}
        </Empty>
      ) : (
        <Show known={asked}>{() => null}</Show>
      )}
    </div>
  );
}

const FIRST: readonly Column[] = ["blocked", "review", "running", "ready", "todo", "triage", "scheduled", "done"];

function Board({
  name,
  card,
  boards,
}: {
  readonly name: string;
  readonly card: string;
  readonly boards: Known<readonly BoardView[]>;
}): ReactNode {
  const cards = useCards(name);
  const [, go] = useLocation();
  const phone = useMedia("(max-width: 720px)");
  const [text, setText] = useState("");
  const [profile, setProfile] = useState("");
  const [adding, setAdding] = useState(false);
  const [placing, setPlacing] = useState<CardView | null>(null);
  const [chosen, setTab] = useState<Column | null>(null);
  const now = useNow(true, 30_000); // ages on the faces move by the half minute
  const board = knownValue(boards)?.find((one) => one.id === name);
  const title = boardTitle(boards, name);
  useTitle(title);
  useEffect(() => save("board", name), [name]);
  const words = useDeferredValue(text);
  const rows = knownValue(cards) ?? NONE;
  const moves = useMoves(rows);
  const sorted = useMemo(
    () => columns(rows, { text: words, profile }, moves.moving),
    [rows, words, profile, moves.moving],
  );
  const profiles = useMemo(() => [...new Set(rows.map((one) => one.profile).filter(Boolean))].sort(), [rows]);
  const running = sorted.get("running")?.length ?? 0;
  const tab = chosen ?? "ready";
  useEffect(() => {
    // where there is something to see; once, so that nothing moves under a finger
    if (chosen === null && rows.length > 0) setTab(FIRST.find((column) => sorted.get(column)?.length) ?? "ready");
  }, [chosen, rows, sorted]);
  const to = cardPath;
  const open = useCardId(card, rows, cards.state !== "loading");
  const shown = rows.find((one) => one.id === open);
  const address = shown && to(shown);
  useEffect(() => {
    // an address with the id of a card gets its number
    if (address && card && !address.endsWith(`/${card}`)) go(address, { replace: true });
  }, [address, card, go]);
  const menu = (one: CardView): ReactNode => (
    <CardMenu card={one} moves={moves} onOpen={() => go(to(one))} onNode={() => setPlacing(one)} />
  );
  const list = (only: Column | null): ReactNode => (
    <Columns
      columns={sorted}
      onMove={moves.move}
      only={only}
      menu={menu}
      board={board}
      now={now}
      selected={open ?? ""}
      to={to}
    />
  );
  const filters = (
    <>
      <SearchField className={styles.search} name="Filter cards" value={text} onChange={setText} showsKey={false} />
      <select
        className={`${shared.input} ${styles.profile}`}
        aria-label="Profile"
        value={profile}
        onChange={(event) => setProfile(event.target.value)}
      >
        <option value="">Every profile</option>
        {profiles.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </>
  );
  return (
    <div className={shared.page}>
      <Bar>
        <h1 className={shared.cut} tabIndex={-1}>
          {title}
        </h1>
        <BoardSwitch boards={boards} current={name} />
        <span className={`${shared.faint} ${shared.notOnPhone}`}>
          {cards.state === "known" && plural(rows.length, "card")}
          {running > 0 ? `, ${running} running` : ""} <AsOf known={cards} />
        </span>
        {board?.paused_by && (
          <Chip state={{ look: "waiting", icon: "pause", word: `Paused by ${byWhom(board.paused_by)}` }} />
        )}
        <span className={shared.grow} />
        {!phone && filters}
        {board && <PauseButton board={board} />}
        <span className={shared.notOnPhone}>
          <DrawerButton />
        </span>
        <Button primary onClick={() => setAdding(true)}>
          <Icon name="plus" />
          Card
        </Button>
      </Bar>
      <Banners />
      {phone && (
        <div className={styles.filters}>
          {filters}
          <AsOf known={cards} />
        </div>
      )}
      <div className={`${styles.split} ${card ? styles.withCard : ""}`}>
        {cards.state === "loading" ? (
          <Loading />
        ) : cards.state === "unknown" ? (
          <Empty title="The cards are not known">{cards.reason}</Empty>
        ) : rows.length === 0 ? (
          <First onAdd={() => setAdding(true)} />
        ) : phone ? (
          <ColumnTabs sorted={sorted} tab={tab} onTab={setTab} panel={() => list(tab)} />
        ) : (
          list(null)
        )}
        {open && <CardDrawer key={open} id={open} board={name} moves={moves} />}
      </div>
      {moves.dialog}
      {placing && (
        <NodeDialog subject={{ kind: "card", id: placing.id, name: placing.title }} onClose={() => setPlacing(null)} />
      )}
      {adding && (
        <CardForm
          board={name}
          onClose={() => setAdding(false)}
          onDone={(label) => {
            setAdding(false);
            go(`/board/${name}/${label}`);
          }}
        />
      )}
    </div>
  );
}

function First({ onAdd }: { readonly onAdd: () => void }): ReactNode {
  return (
    <Empty
      title="An empty board"
      action={
        <Button primary onClick={onAdd}>
          Add the first card
        </Button>
      }
    >
      A card is work that somebody writes down and an agent does. A card with a profile is started by itself as soon as
      there is room; it asks here when it needs you, and goes on where it stopped.
    </Empty>
  );
}

/** One column at a time. */
function ColumnTabs({
  sorted,
  tab,
  onTab,
  panel,
}: {
  readonly sorted: ReadonlyMap<Column, readonly CardView[]>;
  readonly tab: Column;
  readonly onTab: (tab: Column) => void;
  readonly panel: () => ReactNode;
}): ReactNode {
  useEffect(() => {
    const shown = document.querySelectorAll("[role=tab]")[COLUMNS.indexOf(tab)];
    shown?.scrollIntoView({ inline: "center", block: "nearest" });
  }, [tab]);
  return (
    <Tabs<Column>
      name="Columns"
      chosen={tab}
      onChoose={onTab}
      tabs={COLUMNS.map((column) => ({
        id: column,
        word: `${WORDS[column]} ${sorted.get(column)?.length ?? 0}`,
        panel,
      }))}
    />
  );
}

/** There is no such board, or it is archived. */
function NoBoard({ name, boards }: { readonly name: string; readonly boards: readonly BoardView[] }): ReactNode {
  const all = useKnown({
    queryKey: ["boards", "archived"],
    queryFn: async () => (await call("GET /v1/boards", { query: { archived: true } })).boards,
  });
  const [, go] = useLocation();
  const archived = knownValue(all)?.find((one) => one.id === name);
  const restore = (): void =>
    void call("POST /v1/boards/{name}/resume", { path: { name } }).then(
      () => queryClient.invalidateQueries({ queryKey: ["boards"] }),
      toastError,
    );
  useTitle("No such board");
  return (
    <div className={shared.page}>
      <Bar>
        <h1 tabIndex={-1}>Board</h1>
      </Bar>
      <Show known={all}>
        {() => (
          <Empty
            title={archived ? `The board “${archived.title || name}” is archived` : `There is no board “${name}”`}
            action={
              <div className={`${shared.row} ${shared.wrap}`}>
                {archived && (
                  <Button primary onClick={restore}>
                    Restore it
                  </Button>
                )}
                {boards.map((one) => (
                  <Button key={one.id} onClick={() => go(`/board/${one.id}`)}>
                    {one.title || one.id}
                  </Button>
                ))}
              </div>
            }
          >
            {archived
              ? "Its cards are kept and not started."
              : boards.length > 0
                ? "The address may be wrong. These are the boards:"
                : "The first card makes the first board."}
          </Empty>
        )}
      </Show>
    </div>
  );
}

/** What can be done with a card without opening it, also where dragging is not at hand. */
function CardMenu({
  card,
  moves,
  onOpen,
  onNode,
}: {
  readonly card: CardView;
  readonly moves: Moves;
  readonly onOpen: () => void;
  readonly onNode: () => void;
}): ReactNode {
  const label = cardLabel(card.number, card.id);
  const path = { id: card.id };
  const severalNodes = useSeveralNodes();
  return (
    <Menu
      name={`Menu of ${label} ${card.title}`}
      small
      entries={[
        { word: "Open", icon: "card", act: onOpen },
        { word: `Copy ${label}`, icon: "link", act: () => void navigator.clipboard?.writeText(label) },
        ...(card.status === "running"
          ? []
          : [
              {
                word: "Try again",
                icon: "refresh",
                act: () => void call("POST /v1/cards/{id}/retry", { path, body: {} }).catch(toastError),
              },
            ]),
        ...(severalNodes && card.status !== "running"
          ? [{ word: "Run on another node…", icon: "node", act: onNode }]
          : []),
        ...tellEntries(card.tell, (tell) => tellOfCard(card.id, tell)),
        ...moveEntries(card, moves),
      ]}
    />
  );
}
