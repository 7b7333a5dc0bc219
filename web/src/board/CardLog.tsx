/** What the workers of a card said and did, run by run; live while one works. */
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { Link } from "wouter";
import { liveSession } from "../api/liveSession";
import { useStore } from "../api/store";
import type { CardDetail, RunView } from "../api/types.gen";
import type { CallView, Item } from "../log/model";
import { noticeText, summaryText } from "../log/sentences";
import { Loading } from "../ui/Empty";
import { MarkdownText } from "../ui/MarkdownText";
import shared from "../ui/shared.module.css";
import { Time } from "../ui/Time";
import styles from "./CardLog.module.css";

const SHOWN = 300;

export function CardLog({ detail }: { readonly detail: CardDetail }): ReactNode {
  const { runs, card } = detail;
  const last = runs.at(-1);
  const [chosen, setChosen] = useState<number | null>(null);
  const run = runs.find((one) => one.run === (chosen ?? last?.run));
  if (run === undefined) return <p className={shared.muted}>No run yet, so nothing was said or done.</p>;
  return (
    <>
      <div className={`${shared.row} ${shared.wrap}`}>
        {runs.length > 1 && (
          <label className={shared.row}>
            Run
            <select
              className={shared.input}
              value={run.run}
              onChange={(event) => setChosen(Number(event.target.value))}
            >
              {[...runs].reverse().map((one) => (
                <option key={one.run} value={one.run}>
                  {one.run}
                </option>
              ))}
            </select>
          </label>
        )}
        <span className={shared.grow} />
        <Link href={`/s/${run.session}#run-${run.run}`}>Open the session</Link>
      </div>
      <RunLog key={run.session} card={card.id} run={run} />
    </>
  );
}

function RunLog({ card, run }: { readonly card: string; readonly run: RunView }): ReactNode {
  const live = useMemo(() => liveSession(run.session), [run.session]);
  useEffect(() => live.read(), [live]);
  const view = useStore(live.view);
  const gone = useStore(live.gone);
  const items = useMemo(() => partOf(view.items, card, run.run), [view.items, card, run.run]);
  if (gone)
    return (
      <p className={shared.muted}>
        {gone} What run {run.run} said and did was deleted with it.
      </p>
    );
  if (view.version === 0) return <Loading rows={4} />;
  return (
    <>
      {items.length > SHOWN && <p className={shared.muted}>The last {SHOWN} entries; the session has all of them.</p>}
      <ol className={styles.log} aria-label={`Log of run ${run.run}`}>
        {items.slice(-SHOWN).map((item) => (
          <li key={item.key} className={styles.entry}>
            <span className={styles.time}>
              <Time at={item.at} />
            </span>
            <div className={styles.what}>
              <Entry item={item} />
            </div>
          </li>
        ))}
      </ol>
    </>
  );
}

/** From where the run's worker was bound to the next one. */
export function partOf(items: readonly Item[], card: string, run: number): readonly Item[] {
  const binds = (item: Item): boolean => item.kind === "notice" && item.event.kind === "RunBound";
  const begin = items.findIndex(
    (item) =>
      item.kind === "notice" && item.event.kind === "RunBound" && item.event.card === card && item.event.run === run,
  );
  if (begin < 0) return [];
  const next = items.findIndex((item, index) => index > begin && binds(item));
  return items.slice(begin, next < 0 ? undefined : next);
}

function Entry({ item }: { readonly item: Item }): ReactNode {
  switch (item.kind) {
    case "person":
      return (
        <>
          <b>{item.by || "You"}</b>
          <p className={styles.plain} dir="auto">
            {item.text}
          </p>
        </>
      );
    case "step":
      return (
        <>
          {item.text && <MarkdownText text={item.text} live={item.live} />}
          {item.calls.map((call) => (
            <Call key={call.call} call={call} />
          ))}
          {item.problem && <p className={styles.failed}>{item.problem.message}</p>}
        </>
      );
    case "wait":
      return <MarkdownText text={item.reason} live={false} />;
    case "note":
      return <p className={styles.plain}>{item.text}</p>;
    case "notice":
      return <p className={styles.notice}>{noticeText(item.event)}</p>;
    case "summary":
      return <p className={styles.notice}>{summaryText(item)}</p>;
    case "chapter":
      return (
        <p className={styles.notice}>
          Chapter {item.chapter} begins: {item.reason}
        </p>
      );
    case "end":
      return (
        <p className={item.outcome === "failed" ? styles.failed : styles.notice}>
          {item.outcome === "done" ? `Turn ${item.turn} is done.` : `Turn ${item.turn} ${item.outcome}: ${item.reason}`}
        </p>
      );
  }
}

function Call({ call }: { readonly call: CallView }): ReactNode {
  return (
    <details className={styles.call} open={call.state === "failed"}>
      <summary>
        <code>{call.tool}</code> {call.state}
        {call.detail && `, ${call.detail}`}
      </summary>
      <pre className={styles.output}>{[call.arguments, call.output].filter(Boolean).join("\n\n").slice(0, 20_000)}</pre>
    </details>
  );
}
