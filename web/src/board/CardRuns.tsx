/** The runs of a card: on the line with what people said, and each with its figures. */
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { CardComment, CardDetail, RunView } from "../api/types.gen";
import { byWhom, count, dollars } from "../text";
import { Chip } from "../ui/Chip";
import line from "../ui/line.module.css";
import { lookClass } from "../ui/looks";
import { MarkdownText } from "../ui/MarkdownText";
import shared from "../ui/shared.module.css";
import { runState } from "../ui/states";
import { Since, Time } from "../ui/Time";
import styles from "./CardRuns.module.css";
import cardStyles from "./card.module.css";
import { Reason } from "./Reason";

type Happening =
  | { readonly at: number; readonly kind: "run"; readonly run: RunView }
  | { readonly at: number; readonly kind: "end"; readonly run: RunView }
  | { readonly at: number; readonly kind: "comment"; readonly comment: CardComment };

/** A resumed run continues the line, a fresh one begins a new one. */
export function Activity({ detail }: { readonly detail: CardDetail }): ReactNode {
  const { card, runs } = detail;
  const all: Happening[] = [
    ...runs.map((run) => ({ at: run.started_at, kind: "run" as const, run })),
    ...runs
      .filter((run) => run.finished_at !== null)
      .map((run) => ({ at: run.finished_at ?? 0, kind: "end" as const, run })),
    ...detail.comments.map((comment) => ({ at: comment.at, kind: "comment" as const, comment })),
  ];
  all.sort((a, b) => a.at - b.at);
  return (
    <ol className={styles.runs}>
      <li className={`${line.line} ${line.first}`}>
        <span className={`${line.knot} ${line.you}`} />
        <b>{byWhom(card.created_by) === "you" ? "You" : card.created_by}</b>{" "}
        <span className={cardStyles.note}>
          created it <Time at={card.created_at} />
        </span>
      </li>
      {all.map((one) => (
        <Step key={one.kind === "comment" ? one.comment.comment : `${one.kind}${one.run.run}`} one={one} />
      ))}
      {card.status !== "running" && card.status !== "done" && (
        <li className={`${line.line} ${line.last}`}>
          <span className={`${line.knot} ${styles.dashed}`} />
          <span className={shared.muted}>
            Run {runs.length + 1} starts here
            {runs.length > 0 && card.status === "blocked" && ", on the same line, when you unblock"}.
          </span>
        </li>
      )}
    </ol>
  );
}

function Step({ one }: { readonly one: Happening }): ReactNode {
  if (one.kind === "comment") {
    const { by, at, text } = one.comment;
    const person = byWhom(by) === "you";
    return (
      <li className={line.line}>
        <span className={`${line.knot} ${person ? line.you : ""}`} />
        <b>{person ? "You" : by}</b>{" "}
        <span className={cardStyles.note}>
          <Time at={at} />
        </span>
        <div className={styles.words}>
          <MarkdownText text={text} live={false} />
        </div>
      </li>
    );
  }
  const { run } = one;
  if (one.kind === "run") {
    const open = run.finished_at === null;
    return (
      <li className={`${line.line} ${open ? line.live : ""}`}>
        <span className={line.knot} />
        <b>Run {run.run}</b>{" "}
        <span className={cardStyles.note}>
          <Time at={run.started_at} />
          {open && (
            <>
              {" "}
              · for <Since at={run.started_at} />
            </>
          )}{" "}
          · {began(run)}
        </span>{" "}
        <Transcript run={run} />
        {run.fresh_because && <Reason look="waiting">Started fresh: {run.fresh_because}</Reason>}
        {open && run.note && <p className={shared.muted}>{run.note}</p>}
      </li>
    );
  }
  const state = runState(run.outcome);
  return (
    <li className={`${line.line} ${lookClass(state.look)}`}>
      <span className={`${line.knot} ${styles.end}`} />
      <span className={`${shared.row} ${shared.wrap}`}>
        <Chip state={state} />
        <span className={cardStyles.note}>
          <Time at={one.at} />
        </span>
      </span>
      <div className={`${styles.words} ${shared.muted}`}>
        <MarkdownText text={ending(run)} live={false} />
      </div>
    </li>
  );
}

const began = (run: RunView): string => (run.resumes > 0 ? `goes on with run ${run.resumes}` : "a session of its own");
/** The state says so already. */
const BLOCKED = /^blocked \([\w ]+\): /;
const ending = (run: RunView): string =>
  [run.failure.replaceAll("_", " "), run.reason.replace(BLOCKED, "")].filter(Boolean).join(": ") +
  (run.outcome === "failed" && !run.counts ? " (no attempt is used up)" : "");

function Transcript({ run }: { readonly run: RunView }): ReactNode {
  return (
    <Link href={`/s/${run.session}#run-${run.run}`} aria-label={`Transcript of run ${run.run}`}>
      Transcript
    </Link>
  );
}

export function Runs({ detail }: { readonly detail: CardDetail }): ReactNode {
  if (detail.runs.length === 0)
    return (
      <p className={shared.muted}>No run yet. A run is one attempt at the card; the next run continues its session.</p>
    );
  return (
    <ul className={styles.list}>
      {[...detail.runs].reverse().map((run) => (
        <li key={run.run}>
          <div className={shared.row}>
            <b>Run {run.run}</b>
            <Chip state={runState(run.outcome)} />
            <span className={shared.grow} />
            <Transcript run={run} />
            {run.task && (
              <Link href={`/tasks/${run.task}`} aria-label={`Task of run ${run.run}`}>
                Task
              </Link>
            )}
          </div>
          <p className={shared.muted}>{[began(run), run.profile, run.workspace].filter(Boolean).join(" · ")}</p>
          {run.fresh_because && <Reason look="waiting">Started fresh: {run.fresh_because}</Reason>}
          {run.outcome && <MarkdownText text={ending(run)} live={false} />}
          <p className={cardStyles.note}>
            <Time at={run.started_at} /> · <Since at={run.started_at} until={run.finished_at} /> ·{" "}
            {count(run.input_tokens + run.output_tokens)} tokens ·{" "}
            {run.cost === null ? "cost unknown" : dollars(run.cost)}
            {run.counts ? " · an attempt is used up" : ""}
          </p>
        </li>
      ))}
    </ul>
  );
}
