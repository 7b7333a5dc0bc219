/** What the gateway expects of a session: when it is reset, what prevents it, what was reset while nobody looked. */
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { load, save } from "../api/storage";
import type { ResetOutlook } from "../api/types.gen";
import { elapsed, moment } from "../text";
import { Banner } from "../ui/Banner";
import { Button } from "../ui/Button";
import { useNow } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { Why } from "../ui/Why";
import { undo } from "./Chapter";
import styles from "./InContext.module.css";
import { useOutlook } from "./queries";

/** Beside the context: only when one comes. */
export function NextReset({ id }: { readonly id: string }): ReactNode {
  const outlook = useOutlook(id).data;
  const now = useNow(outlook?.next_at != null);
  if (!outlook) return null;
  const words = resetWords(outlook, now);
  return (
    words && (
      <span className={`${styles.context} ${outlook.postponed ? styles.soon : ""}`} data-context>
        <Icon name="clock" />
        <Why of="session" id={id} word={words} />
      </span>
    )
  );
}

function resetWords({ postponed, next_at: at }: ResetOutlook, now: number): string {
  if (postponed)
    return postponed.until === null ? "Reset postponed" : `Reset postponed, ${moment(postponed.until)} at the latest`;
  if (at === null) return "";
  return at - now > 0 ? `Reset in ${elapsed(at - now)}` : "Reset now";
}

/** A rule opened this chapter and nobody has said anything since. */
export function ResetNotice({ id }: { readonly id: string }): ReactNode {
  const outlook = useOutlook(id).data;
  const [read, setRead] = useState(() => load(`chapter.${id}`, 0));
  const chapter = outlook?.chapter;
  if (!outlook || !chapter?.unseen || chapter.version <= read) return null;
  const began = chapter.opened_at === null ? "" : ` at ${moment(chapter.opened_at)}`;
  const dismiss = (): void => {
    setRead(chapter.version);
    save(`chapter.${id}`, chapter.version);
  };
  return (
    <Banner
      kind="reset"
      look="idle"
      icon="clock"
      title={`Chapter ${chapter.chapter} began${began}: ${chapter.reason}.`}
      actions={
        <>
          <Button small onClick={() => undo(id)}>
            <Icon name="undo" />
            Undo
          </Button>
          <Button quiet small icon aria-label="Dismiss" onClick={dismiss}>
            <Icon name="close" />
          </Button>
        </>
      }
    >
      The model begins anew, nothing is deleted.
      {outlook.running.length > 0 && (
        <>
          {" "}
          Still running:{" "}
          {outlook.running.map((one, at) => (
            <span key={one.task}>
              {at > 0 && ", "}
              <Link href={`/tasks/${one.task}`}>{one.title}</Link>
            </span>
          ))}
          .
        </>
      )}
    </Banner>
  );
}
