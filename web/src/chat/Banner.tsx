/** One banner at a time: signed out, read-only, offline, older build, reconnected. */
import type { ReactElement, ReactNode } from "react";
import { Link } from "wouter";
import { newerBuild } from "../api/build";
import { connection } from "../api/connection";
import { knownValue } from "../api/known";
import { useStore } from "../api/store";
import { OfflineBanner } from "../shell/OfflineBanner";
import { useStatus } from "../shell/queries";
import { lasted, plural } from "../text";
import { Banner } from "../ui/Banner";
import { Button } from "../ui/Button";
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
      <Banner kind="read-only" look="failed" icon="failed" title={`Nothing new can be stored: ${status.problem}`}>
        Running commands keep running. Holdfast recovers automatically when there is space again.
      </Banner>
    );
  }
  if (newer) {
    return (
      <Banner
        kind="build"
        look="serving"
        icon="refresh"
        title="This page is from an older build."
        actions={
          <Button small onClick={() => location.reload()}>
            Reload
          </Button>
        }
      >
        Reload it to match the gateway. Nothing is lost.
      </Banner>
    );
  }
  if (!missed || !onJump || !onDismiss) return null;
  return (
    <Banner
      kind="away"
      look="waiting"
      icon="splice"
      title={`${missed.reconnected ? "Reconnected — " : ""}${plural(missed.messages, "message")} received while away`}
      actions={
        <>
          <Button small onClick={onJump}>
            Jump to first
          </Button>
          <Button quiet small icon aria-label="Dismiss" onClick={onDismiss}>
            <Icon name="close" />
          </Button>
        </>
      }
    >
      <Digest missed={missed} />
    </Banner>
  );
}

function Digest({ missed }: { readonly missed: Missed }): ReactNode {
  const parts: ReactElement[] = [];
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
    <>
      Away for {lasted(missed.until - missed.from)}.
      {parts.length > 0 && (
        <>
          {" "}
          Also:{" "}
          {parts.map((part, index) => (
            <span key={part.key}>
              {index > 0 && ", "}
              {part}
            </span>
          ))}
          .
        </>
      )}
    </>
  );
}
