/** Moving a card: what each column means as a command, what is asked first, and what is on its way. */
import { type ReactNode, useCallback, useMemo, useState } from "react";
import { now } from "../api/clock";
import { call, newId } from "../api/http";
import type { CardAccepted, CardView } from "../api/types.gen";
import { COLUMNS, type Column } from "../log/cards";
import type { Tell } from "../tell";
import { cardLabel } from "../text";
import { Confirm } from "../ui/Confirm";
import { SelectField, TextField } from "../ui/fields";
import form from "../ui/form.module.css";
import { MarkdownText } from "../ui/MarkdownText";
import type { MenuEntry } from "../ui/Menu";
import { toastError } from "../ui/toasts";
import styles from "./moves.module.css";

export const WORDS: Readonly<Record<Column, string>> = {
  triage: "Triage",
  todo: "Todo",
  scheduled: "Scheduled",
  ready: "Ready",
  running: "Running",
  blocked: "Blocked",
  review: "Review",
  done: "Done",
};

type Missing = "needs_input" | "dependency" | "capability" | "transient";
const MISSING: readonly (readonly [Missing, string])[] = [
  ["needs_input", "An answer from a person"],
  ["dependency", "Other work must be done first"],
  ["capability", "A tool or a permission"],
  ["transient", "A temporary problem: it is retried later"],
];

type Question = "unblock" | "scheduled" | "blocked" | "done" | "stop";
interface Asking {
  readonly card: CardView;
  readonly to: Column;
  readonly what: Question;
}
interface OnItsWay {
  readonly to: Column;
  readonly version: number | null;
}

export interface Moves {
  /** Shown in its new column until the log says so too, or it was refused. */
  readonly moving: ReadonlyMap<string, Column>;
  readonly move: (card: CardView, to: Column) => void;
  readonly dialog: ReactNode;
}

/** What has to be said before it is moved there. */
export function question(card: Pick<CardView, "status">, to: Column): Question | null {
  if (to === "done" || to === "blocked" || to === "scheduled") {
    if (card.status !== "blocked" || to === "done") return to;
    return "unblock";
  }
  if (card.status === "blocked") return "unblock";
  // Whoever runs is not ready: that is refused.
  return card.status === "running" && to !== "running" && to !== "ready" ? "stop" : null;
}

export function useMoves(cards: readonly CardView[]): Moves {
  const [way, setWay] = useState<ReadonlyMap<string, OnItsWay>>(new Map());
  const [asking, setAsking] = useState<Asking | null>(null);
  const put = useCallback(
    (id: string, next: OnItsWay | null) =>
      setWay((before) => {
        const after = new Map(before);
        if (next) after.set(id, next);
        else after.delete(id);
        return after;
      }),
    [],
  );
  const act = useCallback(
    (card: CardView, to: Column, tell: Promise<CardAccepted>) => {
      setAsking(null);
      put(card.id, { to, version: null });
      tell.then(
        ({ version }) => put(card.id, { to, version }),
        (error: unknown) => {
          put(card.id, null);
          toastError(error);
        },
      );
    },
    [put],
  );
  const move = useCallback(
    (card: CardView, to: Column) => {
      if (card.status === to) return;
      const what = question(card, to);
      if (what) setAsking({ card, to, what });
      else act(card, to, call("POST /v1/cards/{id}/move", { path: { id: card.id }, body: { status: to } }));
    },
    [act],
  );
  const moving = useMemo(() => {
    const versions = new Map(cards.map((card) => [card.id, card.version]));
    const found = new Map<string, Column>();
    for (const [id, { to, version }] of way) {
      if (version === null || (versions.get(id) ?? Infinity) < version) found.set(id, to);
    }
    return found;
  }, [way, cards]);
  return { moving, move, dialog: asking && <Ask {...asking} onAct={act} onClose={() => setAsking(null)} /> };
}

export const tellOfCard = (id: string, tell: Tell): void =>
  void call("PATCH /v1/cards/{id}", { path: { id }, body: { tell } }).catch(toastError);

/** The columns that a card can be moved to, as entries of its menus. */
export const moveEntries = (card: CardView, moves: Moves): readonly MenuEntry[] =>
  COLUMNS.filter((column) => column !== card.status && column !== "running").map((column, index) => ({
    word: `Move to ${WORDS[column]}`,
    icon: "right",
    separated: index === 0,
    act: () => moves.move(card, column),
  }));

function Ask({
  card,
  to,
  what,
  onAct,
  onClose,
}: Asking & {
  readonly onAct: (card: CardView, to: Column, tell: Promise<CardAccepted>) => void;
  readonly onClose: () => void;
}): ReactNode {
  const [text, setText] = useState("");
  const [kind, setKind] = useState<Missing>("needs_input");
  const [fresh, setFresh] = useState(false);
  const [at, setAt] = useState(() => local(now() + 3_600_000));
  const path = { id: card.id };
  const said = text.trim();
  const [key] = useState(newId);
  const name = `${cardLabel(card.number, card.id)} “${card.title}”`;
  switch (what) {
    case "scheduled":
      return (
        <Confirm
          title={`When is ${name} ready?`}
          verb="Schedule"
          danger={false}
          disabled={!(new Date(at).getTime() > now())}
          onNo={onClose}
          onYes={() =>
            onAct(
              card,
              to,
              call("POST /v1/cards/{id}/move", {
                path,
                key,
                body: { status: "scheduled", at: new Date(at).getTime() },
              }),
            )
          }
        >
          {card.status === "running" && <p>Its run is stopped.</p>}
          <div className={`${form.group} ${form.form}`}>
            <TextField first label="Not before" type="datetime-local" value={at} onChange={setAt} />
          </div>
        </Confirm>
      );
    case "blocked":
      return (
        <Confirm
          title={`Why is ${name} blocked?`}
          verb="Block"
          danger={card.status === "running"}
          disabled={!said}
          onNo={onClose}
          onYes={() => onAct(card, to, call("POST /v1/cards/{id}/block", { path, key, body: { reason: said, kind } }))}
        >
          <p>
            {card.status === "running" ? "Its run is stopped. " : ""}It stays where it is until somebody unblocks it.
          </p>
          <div className={`${form.group} ${form.form}`}>
            <TextField first label="Reason" rows={2} value={text} onChange={setText} />
            <SelectField label="What is missing" value={kind} options={MISSING} onChange={setKind} />
          </div>
        </Confirm>
      );
    case "done":
      return (
        <Confirm
          title={`Complete ${name}?`}
          verb="Complete"
          danger={card.status === "running"}
          onNo={onClose}
          onYes={() => onAct(card, to, call("POST /v1/cards/{id}/complete", { path, key, body: { summary: said } }))}
        >
          {card.status === "running" && <p>Its run is stopped.</p>}
          <div className={`${form.group} ${form.form}`}>
            <TextField first label="Summary" rows={3} value={text} onChange={setText} />
          </div>
        </Confirm>
      );
    case "stop":
      return (
        <Confirm
          title={`Stop run ${card.run} of ${name}?`}
          verb={`Stop and move to ${WORDS[to]}`}
          onNo={onClose}
          onYes={() => onAct(card, to, call("POST /v1/cards/{id}/move", { path, key, body: { status: to } }))}
        >
          <p>Its worker is stopped. Its session is kept, and the next run continues it.</p>
        </Confirm>
      );
    case "unblock":
      return (
        <Confirm
          title={`Unblock ${name}?`}
          verb={fresh ? "Start fresh" : "Unblock and continue"}
          danger={false}
          onNo={onClose}
          onYes={() =>
            onAct(
              card,
              "ready",
              call("POST /v1/cards/{id}/unblock", { path, key, body: { text: said || null, fresh } }),
            )
          }
        >
          <div className={styles.quote}>
            <MarkdownText text={card.reason} live={false} />
          </div>
          <div className={`${form.group} ${form.form}`}>
            <TextField first label="Your answer (optional)" rows={3} value={text} onChange={setText} />
          </div>
          <label className={`${form.check} ${form.group}`}>
            <input type="checkbox" checked={fresh} onChange={(event) => setFresh(event.target.checked)} />
            Start a new session instead of continuing the last one
          </label>
        </Confirm>
      );
  }
}

/** For a field of the browser: its own time, without a zone. */
function local(at: number): string {
  const time = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return time.toISOString().slice(0, 16);
}
