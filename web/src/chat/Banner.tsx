/** One banner at a time: signed out, read-only, offline, older build, reconnected. */
import type { ReactNode } from "react";
import { Link } from "wouter";
import { newerBuild } from "../api/build";
import { connection } from "../api/connection";
import { knownValue } from "../api/known";
import { useStore } from "../api/store";
import { OfflineBanner } from "../shell/OfflineBanner";
import { useStatus } from "../shell/queries";
import { elapsed, plural } from "../text";
import { Icon } from "../ui/Icon";
import type { Missed } from "./away";

export function Banners({
  missed,
  onJump,
  onDismiss,
}: {
  readonly missed?: Missed | null;
  readonly onJump?: () => void;
  readonly onDismiss?: () => void;
}): ReactNode {
  const state = useStore(connection);
  const newer = useStore(newerBuild);
  const status = knownValue(useStatus());
  if (state.state === "offline") return <OfflineBanner since={state.since} next={state.next} />;
  if (status && !status.writable) {
    return (
      <div className="banner failed" role="alert">
        <Icon name="failed" />
        <div className="grow">
          <p>
            <strong>Nothing new can be stored: {status.problem}</strong>
          </p>
          <p className="digest">
            Running commands keep running. Holdfast recovers automatically when there is space again.
          </p>
        </div>
      </div>
    );
  }
  if (newer) {
    return (
      <div className="banner serving" role="status">
        <Icon name="refresh" />
        <div className="grow">
          <p>
            <strong>This page is from an older build.</strong>
          </p>
          <p className="digest">Reload it to match the gateway. Nothing is lost.</p>
        </div>
        <div className="row acts">
          <button type="button" className="btn small" onClick={() => location.reload()}>
            Reload
          </button>
        </div>
      </div>
    );
  }
  if (!missed || !onJump || !onDismiss) return null;
  return (
    <div className="banner online waiting" role="status">
      <Icon name="splice" />
      <div className="grow">
        <p>
          <strong>
            {missed.reconnected ? "Reconnected — " : ""}
            {plural(missed.messages, "message")} received while away
          </strong>
        </p>
        <Digest missed={missed} />
      </div>
      <div className="row acts">
        <button type="button" className="btn small" onClick={onJump}>
          Jump to first
        </button>
        <button type="button" className="btn quiet small icon" aria-label="Dismiss" onClick={onDismiss}>
          <Icon name="close" />
        </button>
      </div>
    </div>
  );
}

function Digest({ missed }: { readonly missed: Missed }): ReactNode {
  const parts: ReactNode[] = [];
  const digest = missed.digest;
  const add = (value: number | undefined, words: string, to: string): void => {
    if (value) parts.push(<Link key={words} href={to}>{`${value} ${words}`}</Link>);
  };
  add(digest?.tasks.done, digest?.tasks.done === 1 ? "task done" : "tasks done", "/tasks");
  add(digest?.tasks.failed, digest?.tasks.failed === 1 ? "task failed" : "tasks failed", "/tasks");
  add(digest?.tasks.stopped, "stopped", "/tasks");
  add(digest?.tasks.lost, "lost", "/tasks");
  add(digest?.questions, digest?.questions === 1 ? "question waits" : "questions wait", "/home");
  add(digest?.failures, digest?.failures === 1 ? "failure" : "failures", "/home");
  if (digest?.tool_calls) parts.push(<span key="calls">{plural(digest.tool_calls, "tool call")}</span>);
  return (
    <p className="digest">
      {elapsed(missed.until - missed.from)}.
      {parts.length > 0 && (
        <>
          {" "}
          Also:{" "}
          {parts.map((part, index) => (
            <span key={index}>
              {index > 0 && ", "}
              {part}
            </span>
          ))}
          .
        </>
      )}
    </p>
  );
}
