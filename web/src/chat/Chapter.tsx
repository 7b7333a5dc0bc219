/** Resets and summaries in the flow: what begins anew, what was handed over, what stands for what. */
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { undoReset } from "../api/endpoints";
import type { Survivor } from "../api/types.gen";
import type { ChapterItem, SummaryItem } from "../log/model";
import { summaryText } from "../log/sentences";
import { asYou, byWhom, duration } from "../text";
import { Chip } from "../ui/Chip";
import { Icon } from "../ui/Icon";
import line from "../ui/line.module.css";
import { MarkdownText } from "../ui/MarkdownText";
import shared from "../ui/shared.module.css";
import { Time } from "../ui/Time";
import { toast, toastError } from "../ui/toasts";
import { Why } from "../ui/Why";
import styles from "./Chapter.module.css";
import entry from "./Entry.module.css";

export function undo(session: string): void {
  void undoReset(session).then(
    () => toast("done", "The reset was undone", "The model sees the previous chapter again, and everything since."),
    toastError,
  );
}

/** Two bars on the line: the model's context begins anew here. */
export function ChapterDivider({
  item,
  session,
  undoable,
}: {
  readonly item: ChapterItem;
  readonly session: string;
  readonly undoable: boolean;
}): ReactNode {
  return (
    <>
      <span className={styles.whip} />
      <div className={`${styles.head} ${item.undone ? styles.undone : ""}`}>
        <b>Chapter {item.chapter}</b>
        <span>{why(item)}</span>
        <Time at={item.at} />
        {item.undone ? <span className={shared.faint}>undone</span> : <Why of="session" id={session} />}
        {undoable && (
          <button type="button" className={styles.undo} onClick={() => undo(session)}>
            <Icon name="undo" />
            Undo
          </button>
        )}
      </div>
      {item.kept.length > 0 && <Handed word="Handed over, still running" tasks={item.kept} />}
      {item.stopped.length > 0 && <Handed word="Stopped with the old chapter" tasks={item.stopped} rule />}
      {item.note && (
        <Folded
          name={item.noteFrom === "model" ? "Hand-over note of the agent" : "Hand-over, put together by a rule"}
          text={item.note}
        />
      )}
    </>
  );
}

function why(item: ChapterItem): string {
  if (item.rule !== "person") return item.reason;
  return `reset by ${byWhom(item.by)}`;
}

function Handed({
  word,
  tasks,
  rule = false,
}: {
  readonly word: string;
  readonly tasks: readonly Survivor[];
  readonly rule?: boolean;
}): ReactNode {
  return (
    <p className={styles.handed}>
      <span className={shared.faint}>{word}:</span>
      {tasks.map((one) => (
        <span key={one.task}>
          <Link className={shared.mono} href={`/tasks/${one.task}`}>
            {one.title}
          </Link>
          <span className={shared.faint}>
            {" "}
            {[rule ? one.rule : activityWords(one), `after ${duration(one.age_ms)}`].filter(Boolean).join(", ")}
          </span>
        </span>
      ))}
    </p>
  );
}

/** What it did then; nothing if nobody had measured that yet. */
const activityWords = ({ activity }: Survivor): string => (activity === "unknown" ? "" : activity);

/** One line, and the whole of it on demand. */
function Folded({ name, text }: { readonly name: string; readonly text: string }): ReactNode {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className={entry.fold} aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name={open ? "down" : "right"} />
        {name}
      </button>
      {open && (
        <div className={`${entry.folded} ${entry.prose} ${styles.note}`} tabIndex={0} data-folded>
          <MarkdownText text={text} live={false} />
        </div>
      )}
    </>
  );
}

export function SummaryLine({ item, session }: { readonly item: SummaryItem; readonly session: string }): ReactNode {
  return (
    <>
      <span className={`${line.knot} ${entry.smallKnot}`} />
      <p className={entry.meta}>
        {item.state === "running" && <Chip state={{ look: "working", icon: "working", word: "Compacting" }} />}
        {item.state === "failed" && <Chip state={{ look: "waiting", icon: "waiting", word: "No summary" }} />}
        {item.source === "digest" && <Chip state={{ look: "partial", icon: "partial", word: "Digest" }} />}
        <span>{asYou(summaryText(item))}</span>
        <Time at={item.at} />
        {item.state === "running" && item.attempt > 1 && <span>attempt {item.attempt}</span>}
        {item.replaced ? <span>replaced later by a summary</span> : <Why of="session" id={session} />}
      </p>
      {item.summary && (
        <Folded
          name={item.source === "model" ? "The summary" : "The digest, put together without a model"}
          text={item.summary}
        />
      )}
    </>
  );
}
