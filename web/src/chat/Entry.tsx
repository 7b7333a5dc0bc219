import { memo, type ReactNode, useState } from "react";
import { Link } from "wouter";
import type { NoticeItem, TaskView } from "../api/types.gen";
import type { EndItem, Item, PersonItem, StepItem } from "../log/model";
import { noticeText } from "../log/sentences";
import { TaskChip } from "../tasks/TaskChip";
import { byWhom, count, dollars, duration, stoppedBy } from "../text";
import { Button } from "../ui/Button";
import { visible } from "../ui/blocks";
import { Chip, Mark } from "../ui/Chip";
import { CopyButton } from "../ui/CopyButton";
import { focusOnMount } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import line from "../ui/line.module.css";
import { MarkdownText } from "../ui/MarkdownText";
import shared from "../ui/shared.module.css";
import { sessionState } from "../ui/states";
import { Since, Time } from "../ui/Time";
import { Why } from "../ui/Why";
import type { Agent } from "./AgentFacts";
import { ChapterDivider, SummaryLine } from "./Chapter";
import styles from "./Entry.module.css";
import { Plan } from "./Plan";
import { Calls } from "./ToolCard";
import { WaitCard } from "./WaitCard";

/** Something of this session that runs, or ran, in the background. */
export interface BackgroundItem {
  readonly kind: "background";
  readonly key: string;
  /** Of the note of its end; 0 before there is one. */
  readonly version: number;
  readonly at: number;
  readonly task: TaskView;
}

export type FlowItem = Item | BackgroundItem;

/** What can be done with a message or a turn. */
export interface Acts {
  readonly fork: (version: number) => void;
  /** Send the messages of a turn again, or another text instead of them. */
  readonly repeat: (turn: number, text?: string) => Promise<void>;
}

export interface EntryProps {
  readonly item: FlowItem;
  readonly session: string;
  readonly agent: Agent;
  readonly open: boolean;
  readonly away: boolean;
  readonly marked: boolean;
  /** It is the newest reset. */
  readonly undoable: boolean;
  /** The model sees the turn, and nothing stands in the way of repeating it. */
  readonly repeatable: boolean;
  readonly acts: Acts;
}

/** One knot of the line and what belongs to it. */
export const Entry = memo(function Entry(props: EntryProps): ReactNode {
  const { item, away, marked } = props;
  const live = item.kind === "step" && item.live;
  const classes = [
    line.line,
    styles.entry,
    live && line.live,
    away && line.away,
    marked && styles.marked,
    item.kind === "chapter" && styles.chapter,
  ];
  return (
    <article
      className={classes.filter(Boolean).join(" ")}
      data-kind={item.kind}
      data-away={away || undefined}
      data-marked={marked || undefined}
      data-key={item.key}
      data-version={item.version}
      tabIndex={-1}
    >
      <Body {...props} />
    </article>
  );
});

function Body(props: EntryProps): ReactNode {
  const { item, session } = props;
  switch (item.kind) {
    case "person":
      return <Person {...props} item={item} />;
    case "step":
      return <Step item={item} session={session} acts={props.acts} />;
    case "wait":
      return (
        <>
          <span className={`${line.knot} ${styles.smallKnot}`} />
          <WaitCard item={item} session={session} agent={props.agent} open={props.open} />
        </>
      );
    case "note":
      return (
        <>
          <span className={`${line.knot} ${styles.smallKnot}`} />
          <p className={styles.meta}>
            <span dir="auto">{visible(item.text.split("\n", 1)[0] ?? "")}</span>
            {item.task && <Link href={`/tasks/${item.task}`}>Open task</Link>}
          </p>
        </>
      );
    case "notice":
      return (
        <>
          <span className={`${line.knot} ${styles.smallKnot}`} />
          <p className={styles.meta}>
            {item.event.kind === "AgentPlanned" ? (
              <Plan entries={item.event.entries} at={item.at} />
            ) : (
              <>
                <span className={isDoubtful(item.event) ? styles.doubtful : ""}>{visible(noticeText(item.event))}</span>
                <Time at={item.at} />
              </>
            )}
            {item.tone !== "plain" && <Why of="session" id={session} />}
            {item.onward && <Link href={item.onward.to}>{item.onward.word}</Link>}
          </p>
        </>
      );
    case "background":
      return <Background task={item.task} />;
    case "chapter":
      return <ChapterDivider item={item} session={session} undoable={props.undoable} />;
    case "summary":
      return <SummaryLine item={item} session={session} />;
    case "end":
      return <End {...props} item={item} />;
  }
}

/** An agent may not know what was said before: somebody should look. */
const isDoubtful = (event: NoticeItem["event"]): boolean =>
  event.kind === "AgentAttached" && event.context === "unproven";

/** How the sender of an imported message begins. */
const ELSEWHERE = "the terminal of ";

function Person({ item, session, repeatable, acts }: EntryProps & { readonly item: PersonItem }): ReactNode {
  const [editing, setEditing] = useState(false);
  const turn = item.message.turn ?? 0;
  const mine = byWhom(item.by) === "you";
  return (
    <>
      <span className={`${line.knot} ${line.you}`} />
      <div className={styles.who}>
        <b>{mine ? "You" : item.by.startsWith(ELSEWHERE) ? `You, in ${item.by}` : item.by}</b>
        <Time at={item.at} />
        {item.joined && <span className={shared.faint}>joined the turn</span>}
        {item.withdrawnBy && <span className={shared.faint}>withdrawn by {byWhom(item.withdrawnBy)}</span>}
        <span className={styles.acts}>
          <CopyButton text={item.text} name="Copy the message" />
          {repeatable && mine && turn > 0 && (
            <Act icon="edit" name="Edit and send again" act={() => setEditing(true)} />
          )}
          <Act icon="fork" name="Fork from here" act={() => acts.fork(item.version)} />
          <CopyLink session={session} version={item.version} />
        </span>
      </div>
      {editing ? (
        <EditAgain
          text={item.text}
          onCancel={() => setEditing(false)}
          onSend={async (text) => {
            await acts.repeat(turn, text);
            setEditing(false);
          }}
        />
      ) : (
        <div className={`${styles.said} ${styles.prose} ${item.withdrawnBy ? shared.faint : ""}`} dir="auto" data-text>
          {visible(item.text)}
        </div>
      )}
    </>
  );
}

/** The model then sees this instead of what was said, and nothing of what came after it. */
function EditAgain({
  text,
  onCancel,
  onSend,
}: {
  readonly text: string;
  readonly onCancel: () => void;
  readonly onSend: (text: string) => Promise<void>;
}): ReactNode {
  const [words, setWords] = useState(text);
  const [busy, setBusy] = useState(false);
  const send = (): void => {
    if (!words.trim() || busy) return;
    setBusy(true);
    onSend(words).catch(() => setBusy(false));
  };
  return (
    <form
      className={styles.edit}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        aria-label="Edited message"
        dir="auto"
        ref={focusOnMount}
        rows={3}
        value={words}
        onChange={(event) => setWords(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Escape") {
            event.preventDefault();
            event.stopPropagation();
            onCancel();
          } else if (event.key === "Enter" && !event.shiftKey) {
            event.preventDefault();
            send();
          }
        }}
      />
      <div className={styles.editRow}>
        <span className={`${shared.faint} ${shared.grow}`}>
          The model forgets this turn and what came after it. Effects on files stay.
        </span>
        <Button quiet onClick={onCancel}>
          Cancel
        </Button>
        <Button type="submit" primary disabled={busy || !words.trim()}>
          Send again
        </Button>
      </div>
    </form>
  );
}

function Act({
  icon,
  name,
  act,
}: {
  readonly icon: string;
  readonly name: string;
  readonly act: () => void;
}): ReactNode {
  return (
    <Button quiet small icon aria-label={name} title={name} onClick={act}>
      <Icon name={icon} />
    </Button>
  );
}

const CopyLink = ({ session, version }: { readonly session: string; readonly version: number }): ReactNode => (
  <CopyButton text={`${location.origin}/s/${session}#${version}`} name="Copy link" icon="link" />
);

function thoughtWords(item: StepItem): string {
  if (item.live && !item.text) return "Thinking";
  return item.thinkingMs > 0 ? `Thought for ${duration(item.thinkingMs)}` : "Thought";
}

function Step({
  item,
  session,
  acts,
}: {
  readonly item: StepItem;
  readonly session: string;
  readonly acts: Acts;
}): ReactNode {
  const [thoughts, setThoughts] = useState(false);
  const silent = item.live && !item.text;
  return (
    <>
      <span className={line.knot} />
      <div className={styles.who}>
        <b>{item.who}</b>
        <Time at={item.at} />
        {item.thinking && (
          <button type="button" className={styles.fold} aria-expanded={thoughts} onClick={() => setThoughts(!thoughts)}>
            <Icon name={thoughts ? "down" : "right"} />
            {thoughtWords(item)}
          </button>
        )}
        {item.cut && <Chip state={{ look: "partial", icon: "partial", word: "Partial" }} />}
        {!item.live && (
          <span className={styles.acts}>
            {item.text && <CopyButton text={item.text} name="Copy the answer" />}
            <Act icon="fork" name="Fork from here" act={() => acts.fork(item.version)} />
            <CopyLink session={session} version={item.version} />
          </span>
        )}
      </div>
      {thoughts && (
        <div className={styles.folded} tabIndex={0} role="group" aria-label="Thoughts" dir="auto">
          {item.thinking}
        </div>
      )}
      {silent && (
        <p className={styles.silent}>
          <Mark state={{ look: "working", icon: "working", word: "Working" }} bare />
          <Since at={item.at} />
        </p>
      )}
      {item.text && (
        <div className={styles.prose} data-text>
          <MarkdownText text={item.text} live={item.live} />
        </div>
      )}
      {item.cut && (
        <p className={styles.meta}>
          <span>
            Cut: {stoppedBy(item.cut)}.{item.again && " The step was asked again."}
          </span>
          <Why of="session" id={session} />
        </p>
      )}
      {item.problem && (
        <p className={styles.meta}>
          <Chip state={{ look: "failed", icon: "failed", word: "Failed" }} />
          <span className={styles.strong}>{item.problem.message}</span>
          <span>{item.problem.hint ?? ""}</span>
        </p>
      )}
      {item.calls.length > 0 && <Calls calls={item.calls} session={session} />}
    </>
  );
}

/** What was sent to the background, and how it stands. */
function Background({ task }: { readonly task: TaskView }): ReactNode {
  return (
    <>
      <span className={`${line.knot} ${styles.smallKnot}`} />
      <p className={styles.meta}>
        <Icon name={task.kind === "process" ? "terminal" : "agent"} />
        <span>In the background:</span>
        <span
          className={`${shared.cut} ${styles.command} ${task.kind === "process" ? shared.mono : ""}`}
          dir="auto"
          title={task.command}
        >
          {task.title}
        </span>
        <TaskChip task={task} />
        {task.exit_code !== null && <span>exit code {task.exit_code}</span>}
        {task.state === "running" ? <Since at={task.started_at} /> : <span>{duration(task.duration_ms)}</span>}
        <Link href={`/tasks/${task.id}`}>Open task</Link>
      </p>
    </>
  );
}

function End({ item, session, repeatable, acts }: EntryProps & { readonly item: EndItem }): ReactNode {
  const state = sessionState("idle", item.outcome);
  const tokens = item.tokensIn + item.tokensOut;
  return (
    <>
      <span className={`${line.knot} ${styles.smallKnot}`} />
      <p className={styles.meta}>
        {item.outcome !== "done" && <Chip state={state} />}
        {item.outcome !== "done" && (
          <span className={shared.muted}>{stoppedBy(item.problem?.message ?? item.reason)}</span>
        )}
        <span>{duration(item.at - item.startedAt)}</span>
        {item.model && <span className={shared.notOnPhone}>{item.model}</span>}
        {tokens > 0 && <span title={`${item.tokensIn} in, ${item.tokensOut} out`}>{count(tokens)} tokens</span>}
        <span>{item.cost === null ? "cost unknown" : dollars(item.cost)}</span>
        {item.undone && <span>undone: the model does not see it</span>}
        {item.outcome !== "done" && <Why of="session" id={session} />}
        {repeatable && (
          <button type="button" onClick={() => void acts.repeat(item.turn).catch(() => undefined)}>
            Answer again
          </button>
        )}
        <button type="button" onClick={() => acts.fork(item.version)}>
          Fork
        </button>
        <span className={shared.notOnPhone}>
          <CopyLink session={session} version={item.version} />
        </span>
      </p>
    </>
  );
}
