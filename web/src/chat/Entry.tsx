import { memo, type ReactNode, useState } from "react";
import { Link } from "wouter";
import type { EndItem, Item, StepItem } from "../log/model";
import { noticeText } from "../log/sentences";
import { byWhom, count, dollars, duration } from "../text";
import { visible } from "../ui/blocks";
import { Chip } from "../ui/Chip";
import { Icon } from "../ui/Icon";
import { MarkdownText } from "../ui/MarkdownText";
import { sessionState } from "../ui/states";
import { Since, Time } from "../ui/Time";
import { Why } from "../ui/Why";
import { ChapterDivider, SummaryLine } from "./Chapter";
import { Calls } from "./ToolCard";
import { WaitCard } from "./WaitCard";

export interface EntryProps {
  readonly item: Item;
  readonly session: string;
  readonly open: boolean;
  readonly away: boolean;
  readonly marked: boolean;
  /** It is the newest reset. */
  readonly undoable: boolean;
  readonly onFork: (version: number) => void;
}

/** One knot of the line and what belongs to it. */
export const Entry = memo(function Entry({
  item,
  session,
  open,
  away,
  marked,
  undoable,
  onFork,
}: EntryProps): ReactNode {
  const live = item.kind === "step" && item.live;
  const classes = `line entry ${live ? "live" : ""} ${away ? "away" : ""} ${marked ? "marked" : ""} ${item.kind === "chapter" ? `chapter ${item.undone ? "undone" : ""}` : ""}`;
  return (
    <article className={classes} data-key={item.key} data-version={item.version} tabIndex={-1}>
      <Body item={item} session={session} open={open} undoable={undoable} onFork={onFork} />
    </article>
  );
});

function Body({
  item,
  session,
  open,
  undoable,
  onFork,
}: Pick<EntryProps, "item" | "session" | "open" | "undoable" | "onFork">): ReactNode {
  switch (item.kind) {
    case "person":
      return (
        <>
          <span className="knot you" />
          <div className="who">
            <b>{byWhom(item.by) === "you" ? "You" : item.by}</b>
            <Time at={item.at} />
            {item.joined && <span className="faint">joined the turn</span>}
            {item.withdrawnBy && <span className="faint">withdrawn by {byWhom(item.withdrawnBy)}</span>}
            <Acts item={item} session={session} onFork={onFork} />
          </div>
          <div className={item.withdrawnBy ? "say prose faint" : "say prose"}>{visible(item.text)}</div>
        </>
      );
    case "step":
      return <Step item={item} session={session} onFork={onFork} />;
    case "wait":
      return (
        <>
          <span className="knot small-knot" />
          <WaitCard item={item} session={session} open={open} />
        </>
      );
    case "note":
      return (
        <>
          <span className="knot small-knot" />
          <p className="meta">
            <span>{visible(item.text.split("\n", 1)[0] ?? "")}</span>
            {item.task && <Link href={`/tasks/${item.task}`}>Open task</Link>}
          </p>
        </>
      );
    case "notice":
      return (
        <>
          <span className="knot small-knot" />
          <p className="meta">
            <span>{visible(noticeText(item.event))}</span>
            <Time at={item.at} />
            {item.tone !== "plain" && <Why of="session" id={session} />}
            {item.onward && <Link href={item.onward.to}>{item.onward.word}</Link>}
          </p>
        </>
      );
    case "chapter":
      return <ChapterDivider item={item} session={session} undoable={undoable} />;
    case "summary":
      return <SummaryLine item={item} session={session} />;
    case "end":
      return <End item={item} session={session} onFork={onFork} />;
  }
}

function Acts({
  item,
  session,
  onFork,
}: {
  readonly item: Item;
  readonly session: string;
  readonly onFork: (version: number) => void;
}): ReactNode {
  return (
    <span className="acts">
      <button
        type="button"
        className="btn quiet small icon"
        aria-label="Fork from here"
        title="Fork from here"
        onClick={() => onFork(item.version)}
      >
        <Icon name="fork" />
      </button>
      <CopyLink session={session} version={item.version} />
    </span>
  );
}

function CopyLink({ session, version }: { readonly session: string; readonly version: number }): ReactNode {
  const [copied, setCopied] = useState(false);
  const copy = (): void => {
    void navigator.clipboard?.writeText(`${location.origin}/s/${session}#${version}`).then(() => setCopied(true));
  };
  return (
    <button
      type="button"
      className="btn quiet small icon"
      aria-label={copied ? "Link copied" : "Copy link"}
      title="Copy link"
      onClick={copy}
    >
      <Icon name={copied ? "done" : "link"} />
    </button>
  );
}

function Step({
  item,
  session,
  onFork,
}: {
  readonly item: StepItem;
  readonly session: string;
  readonly onFork: (version: number) => void;
}): ReactNode {
  const [thoughts, setThoughts] = useState(false);
  const silent = item.live && !item.text;
  return (
    <>
      <span className="knot" />
      <div className="who">
        <b>{item.who}</b>
        <Time at={item.at} />
        {item.thinking && (
          <button type="button" className="fold" aria-expanded={thoughts} onClick={() => setThoughts(!thoughts)}>
            <Icon name={thoughts ? "down" : "right"} />
            {item.live && !item.text ? "Thinking" : "Thought"}
          </button>
        )}
        {item.cut && <Chip state={{ look: "partial", icon: "partial", word: "Partial" }} />}
        {!item.live && <Acts item={item} session={session} onFork={onFork} />}
      </div>
      {thoughts && (
        <div className="thinking" tabIndex={0}>
          {item.thinking}
        </div>
      )}
      {silent && (
        <p className="dots">
          <span className="mark working !bg-transparent">
            <Icon name="working" />
          </span>
          <Since at={item.at} />
        </p>
      )}
      {item.text && (
        <div className="prose">
          <MarkdownText text={item.text} live={item.live} />
        </div>
      )}
      {item.cut && (
        <p className="meta">
          <span>
            Cut: {item.cut}. {item.finish ? "" : "This step starts over."}
          </span>
          <Why of="session" id={session} />
        </p>
      )}
      {item.problem && (
        <p className="meta">
          <Chip state={{ look: "failed", icon: "failed", word: "Failed" }} />
          <span className="text-ink">{item.problem.message}</span>
          <span>{item.problem.hint ?? ""}</span>
        </p>
      )}
      {item.calls.length > 0 && <Calls calls={item.calls} session={session} />}
    </>
  );
}

function End({
  item,
  session,
  onFork,
}: {
  readonly item: EndItem;
  readonly session: string;
  readonly onFork: (version: number) => void;
}): ReactNode {
  const state = sessionState("idle", item.outcome);
  const tokens = item.tokensIn + item.tokensOut;
  return (
    <>
      <span className="knot small-knot" />
      <p className="meta">
        {item.outcome !== "done" && <Chip state={state} />}
        {item.outcome !== "done" && <span className="text-muted">{item.problem?.message ?? item.reason}</span>}
        <span>{duration(item.at - item.startedAt)}</span>
        {item.model && <span>{item.model}</span>}
        {tokens > 0 && <span title={`${item.tokensIn} in, ${item.tokensOut} out`}>{count(tokens)} tokens</span>}
        <span>{item.cost === null ? "cost unknown" : dollars(item.cost)}</span>
        {item.outcome !== "done" && <Why of="session" id={session} />}
        <button type="button" onClick={() => onFork(item.version)}>
          Fork
        </button>
        <CopyLink session={session} version={item.version} />
      </p>
    </>
  );
}
