/** One card with all that belongs to it: what it asks, what was said and done, what it waits for. */
import { type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { call } from "../api/http";
import type { Known } from "../api/known";
import { useLooking } from "../api/looking";
import { queryClient } from "../api/queryClient";
import type { CardDetail } from "../api/types.gen";
import { NodeDialog } from "../nodes/NodeDialogPart";
import { useSeveralNodes } from "../nodes/queries";
import { tellEntries, tellWords } from "../tell";
import { asYou, cardLabel, count, dollars } from "../text";
import { Button } from "../ui/Button";
import { Chip } from "../ui/Chip";
import { Confirm } from "../ui/Confirm";
import { Empty } from "../ui/Empty";
import form from "../ui/form.module.css";
import { Icon } from "../ui/Icon";
import { AsOf, Show } from "../ui/Known";
import { MarkdownText } from "../ui/MarkdownText";
import { Menu, type MenuEntry } from "../ui/Menu";
import shared from "../ui/shared.module.css";
import { cardState } from "../ui/states";
import { Tabs } from "../ui/Tabs";
import { toast, toastError } from "../ui/toasts";
import { Why } from "../ui/Why";
import { WithCode } from "../ui/WithCode";
import { CardChanges } from "./CardChanges";
import styles from "./CardDrawer.module.css";
import { nodeTitle } from "./CardFace";
import { CardForm } from "./CardForm";
import { Links } from "./CardLinks";
import { CardLog } from "./CardLog";
import { Activity, Runs } from "./CardRuns";
import { Talk, Unblock } from "./CardTalk";
import cardStyles from "./card.module.css";
import { focusOneOf, neighboursOf } from "./focus";
import { type Moves, moveEntries, tellOfCard } from "./moves";
import { boardTitle, useBoards, useCard } from "./queries";

type Tab = "activity" | "card" | "log" | "runs" | "changes";

/** What lies over the card: Escape is for that. */
const ABOVE = "[role=dialog], [role=menu], [data-lifted]";

export function CardDrawer({
  id,
  board,
  moves,
}: {
  readonly id: string;
  readonly board: string;
  readonly moves: Moves;
}): ReactNode {
  const asked = useCard(id);
  const [, go] = useLocation();
  const close = useCallback(
    (also: readonly string[] = []): void => {
      go(`/board/${board}`);
      requestAnimationFrame(() => focusOneOf([id, ...also])); // where it was opened from
    },
    [go, board, id],
  );
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key !== "Escape" || event.defaultPrevented || document.querySelector(ABOVE)) return;
      event.preventDefault();
      close();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [close]);
  return (
    <aside
      className={styles.drawer}
      aria-label={`Card ${asked.state === "known" ? cardLabel(asked.value.card.number, id) : id}`}
    >
      {asked.state === "known" ? (
        <Open key={id} known={asked} detail={asked.value} moves={moves} onClose={close} />
      ) : (
        <>
          <div className={styles.head}>
            <div className={shared.row}>
              <span className={`${shared.mono} ${shared.faint} ${shared.grow}`}>{id}</span>
              <Button quiet small icon aria-label="Close the card" onClick={() => close()}>
                <Icon name="close" />
              </Button>
            </div>
          </div>
          {asked.state === "unknown" && asked.missing ? (
            <Empty title="Card not found">{asked.reason}</Empty>
          ) : (
            <Show known={asked}>{() => null}</Show>
          )}
        </>
      )}
    </aside>
  );
}

function Open({
  known,
  detail,
  moves,
  onClose,
}: {
  readonly known: Known<CardDetail>;
  readonly detail: CardDetail;
  readonly moves: Moves;
  readonly onClose: (also?: readonly string[]) => void;
}): ReactNode {
  const { card } = detail;
  const [tab, setTab] = useState<Tab>("activity");
  const title = useRef<HTMLHeadingElement>(null);
  useLooking(`card/${card.id}`);
  useEffect(() => title.current?.focus({ preventScroll: true }), []);
  return (
    <>
      <Head detail={detail} moves={moves} onClose={onClose} title={title} />
      <div className={styles.body}>
        <AsOf known={known} />
        {card.status === "blocked" && <Unblock detail={detail} />}
        {(card.status === "ready" || card.status === "todo" || card.status === "triage") && detail.why && (
          <p className={styles.standing}>
            <WithCode text={asYou(detail.why)} /> <Why of="card" id={card.id} />
          </p>
        )}
        <Tabs<Tab>
          name="About this card"
          chosen={tab}
          onChoose={setTab}
          tabs={[
            {
              id: "activity",
              word: "Activity",
              panel: () => (
                <>
                  <Activity detail={detail} />
                  {card.status !== "blocked" && <Talk card={card} />}
                </>
              ),
            },
            { id: "card", word: "Card", panel: () => <Body detail={detail} /> },
            { id: "log", word: "Log", panel: () => <CardLog detail={detail} /> },
            { id: "runs", word: `Runs ${detail.runs.length || ""}`.trim(), panel: () => <Runs detail={detail} /> },
            { id: "changes", word: "Changes", panel: () => <CardChanges card={card} /> },
          ]}
        />
        <Links detail={detail} />
        <Policy detail={detail} />
      </div>
    </>
  );
}

function Head({
  detail,
  moves,
  onClose,
  title,
}: {
  readonly detail: CardDetail;
  readonly moves: Moves;
  readonly onClose: (also?: readonly string[]) => void;
  readonly title: React.RefObject<HTMLHeadingElement | null>;
}): ReactNode {
  const { card } = detail;
  const board = boardTitle(useBoards(), card.board);
  const [asking, setAsking] = useState<"edit" | "archive" | "stop" | "node" | null>(null);
  const severalNodes = useSeveralNodes();
  const [kept, setKept] = useState("");
  const path = { id: card.id };
  const retry = (fresh: boolean): void =>
    void call("POST /v1/cards/{id}/retry", { path, body: { fresh } }).catch(toastError);
  const stop = (): void => void call("POST /v1/cards/{id}/stop", { path }).catch(toastError);
  const archive = (): void => {
    const beside = neighboursOf(card.id);
    void call("POST /v1/cards/{id}/archive", { path }).then((done) => {
      setAsking(null);
      if (done.kept) return setKept(done.kept);
      toast("done", "The card was archived", "Its workspace was removed; it had no unsaved work.");
      onClose(beside);
    }, toastError);
  };
  const release = (): void =>
    void call("POST /v1/cards/{id}/release", { path }).then((done) => {
      if (done.kept) return setKept(done.kept);
      toast("done", "Its workspace was removed", "It had no unsaved work.");
    }, toastError);
  const cost = detail.runs.reduce((sum, run) => sum + (run.cost ?? 0), 0);
  const tokens = detail.runs.reduce((sum, run) => sum + run.input_tokens + run.output_tokens, 0);
  const running = card.status === "running";
  const state = cardState(card);
  const entries: readonly MenuEntry[] = [
    { word: "Edit…", icon: "edit", act: () => setAsking("edit") },
    ...(running
      ? [{ word: "Stop…", icon: "stop", danger: true, act: () => setAsking("stop") }]
      : [
          { word: "Try again", icon: "refresh", act: () => retry(false) },
          { word: "Try again, fresh", icon: "plus", act: () => retry(true) },
        ]),
    ...(severalNodes && !running ? [{ word: "Run on another node…", icon: "node", act: () => setAsking("node") }] : []),
    ...tellEntries(card.tell, (tell) => tellOfCard(card.id, tell)),
    ...moveEntries(card, moves),
    card.status === "archived"
      ? { word: "Remove its workspace", icon: "close", separated: true, act: release }
      : { word: "Archive…", icon: "close", danger: true, separated: true, act: () => setAsking("archive") },
  ];
  return (
    <div className={styles.head}>
      <div className={shared.row}>
        <Button quiet icon className={shared.phoneOnly} aria-label="Back to the board" onClick={() => onClose()}>
          <Icon name="left" />
        </Button>
        <span className={`${shared.mono} ${shared.faint}`}>{cardLabel(card.number, card.id)}</span>
        <span className={shared.faint}>{board}</span>
        <span className={shared.grow} />
        {running && (
          <Button small danger onClick={() => setAsking("stop")}>
            <Icon name="stop" />
            Stop
          </Button>
        )}
        <Menu name={`Menu of card ${cardLabel(card.number, card.id)}`} entries={entries} small />
        <Button quiet small icon className={shared.notOnPhone} aria-label="Close the card" onClick={() => onClose()}>
          <Icon name="close" />
        </Button>
      </div>
      <h2 className={styles.title} dir="auto" ref={title} tabIndex={-1}>
        {card.title}
      </h2>
      <div className={`${shared.row} ${shared.wrap}`}>
        <Chip state={state} {...(card.status === "blocked" ? { word: `Blocked: ${state.word.toLowerCase()}` } : {})} />
        <span className={`${shared.muted} ${shared.cut}`}>
          {[
            card.profile || "no profile",
            card.workspace,
            ...(card.host || card.node ? [nodeTitle(card)] : []),
            ...(tokens ? [`${count(tokens)} tokens`] : []),
            ...(cost ? [dollars(cost)] : []),
          ].join(" · ")}
        </span>
      </div>
      {asking === "edit" && (
        <CardForm board={card.board} detail={detail} onClose={() => setAsking(null)} onDone={() => setAsking(null)} />
      )}
      {asking === "node" && (
        <NodeDialog subject={{ kind: "card", id: card.id, name: card.title }} onClose={() => setAsking(null)} />
      )}
      {asking === "stop" && (
        <Confirm
          title={`Stop run ${card.run}?`}
          verb="Stop 1 run"
          onNo={() => setAsking(null)}
          onYes={() => {
            setAsking(null);
            stop();
          }}
        >
          <p>The card is blocked until somebody unblocks it. Its session is kept, and the next run continues it.</p>
        </Confirm>
      )}
      {asking === "archive" && (
        <Confirm title={`Archive “${card.title}”?`} verb="Archive 1 card" onNo={() => setAsking(null)} onYes={archive}>
          <p>
            {running ? "Its run is stopped. " : ""}It leaves the board and keeps its history. Its workspace is removed
            only if nothing would be lost with it.
          </p>
        </Confirm>
      )}
      {kept && (
        <Confirm
          title="Archived; its workspace was kept"
          verb="Close the card"
          danger={false}
          onNo={() => setKept("")}
          onYes={() => {
            setKept("");
            onClose();
          }}
        >
          <p>This would be lost: {kept}. Save or merge it, then choose “Remove its workspace”.</p>
        </Confirm>
      )}
    </div>
  );
}

function Body({ detail }: { readonly detail: CardDetail }): ReactNode {
  const [editing, setEditing] = useState(false);
  const { metadata, artifacts } = detail;
  return (
    <>
      {detail.body ? (
        <div className={styles.prose}>
          <MarkdownText text={detail.body} live={false} />
        </div>
      ) : (
        <p className={shared.muted}>It has no description.</p>
      )}
      <p>
        <Button small onClick={() => setEditing(true)}>
          <Icon name="edit" />
          Edit
        </Button>
      </p>
      {detail.summary && (
        <>
          <h3 className={cardStyles.heading}>Result</h3>
          <div className={styles.prose}>
            <MarkdownText text={detail.summary} live={false} />
          </div>
        </>
      )}
      {artifacts.length > 0 && (
        <>
          <h3 className={cardStyles.heading}>Files</h3>
          <ul className={shared.mono}>
            {artifacts.map((file) => (
              <li key={file} className={shared.cut}>
                {file}
              </li>
            ))}
          </ul>
        </>
      )}
      {Object.keys(metadata).length > 0 && (
        <dl className={form.facts}>
          {Object.entries(metadata).map(([name, value]) => [
            <dt key={`t${name}`}>{name}</dt>,
            <dd key={name}>{value}</dd>,
          ])}
        </dl>
      )}
      {editing && (
        <CardForm
          board={detail.card.board}
          detail={detail}
          onClose={() => setEditing(false)}
          onDone={() => {
            setEditing(false);
            void queryClient.invalidateQueries({ queryKey: ["card", detail.card.id] });
          }}
        />
      )}
    </>
  );
}

function Policy({ detail }: { readonly detail: CardDetail }): ReactNode {
  const most = detail.max_attempts === null ? "" : ` of ${detail.max_attempts}`;
  const hours =
    detail.max_runtime_ms === null ? "" : `, at most ${Math.round(detail.max_runtime_ms / 60_000)} min a run`;
  return (
    <>
      <h3 className={cardStyles.heading}>Policy</h3>
      <p className={shared.muted}>
        Resume <b>{detail.resume ?? "as in its profile"}</b>, {detail.attempts}
        {most} attempts used{hours}.{" "}
        {(detail.card.tell ?? "default") !== "default" && `${tellWords(detail.card.tell ?? "default")}. `}
        {detail.followers.length > 0 && (
          <>
            Notified when it ends:{" "}
            {detail.followers.map((one, at) => (
              <span key={one}>
                {at > 0 && ", "}
                <Link href={`/s/${one}`}>session {one.slice(0, 8)}</Link>
              </span>
            ))}
            .
          </>
        )}
      </p>
      {detail.limits.length > 0 && (
        <>
          <h3 className={cardStyles.heading}>Limits</h3>
          {detail.limits.map((limit) => (
            <p key={limit} className={shared.muted}>
              {limit}
            </p>
          ))}
        </>
      )}
    </>
  );
}
