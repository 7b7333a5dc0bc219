/** The inbox: what waits for a person, and what can be done about it here. */
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { call, newId } from "../api/http";
import { type Known, knownValue } from "../api/known";
import type { Inbox, InboxEntry, WaitView } from "../api/types.gen";
import { type Agent, AgentFacts } from "../chat/AgentFacts";
import { useAtWork } from "../chat/queries";
import { Answers, ShownArguments } from "../chat/WaitCard";
import { useProfiles } from "../settings/queries";
import { entryTitle, entryWords, moment } from "../text";
import { Button, buttonClass } from "../ui/Button";
import { Chip } from "../ui/Chip";
import { AsOf, Show } from "../ui/Known";
import shared from "../ui/shared.module.css";
import { entryState } from "../ui/states";
import { toastError } from "../ui/toasts";
import styles from "./request.module.css";

export function NeedsYou({ inbox }: { readonly inbox: Known<Inbox> }): ReactNode {
  const sessions = knownValue(useAtWork());
  const profiles = knownValue(useProfiles())?.profiles;
  const agentOf = (id: string): Agent | undefined => {
    const row = sessions?.find((one) => one.id === id);
    const ofProfile = profiles?.find((one) => one.name === row?.profile)?.model ?? "";
    return row && { ...row, model: row.model || ofProfile };
  };
  return (
    <section className={shared.panel} aria-label="Needs you">
      <header>
        <h2>Needs you</h2>
        <span className={shared.faint}>{(inbox.state === "known" && inbox.value.total) || ""}</span>
        <AsOf known={inbox} />
      </header>
      <Show known={inbox} rows={1}>
        {({ entries, total, waits }) => (
          <>
            {total === 0 && (
              <p className={shared.muted}>
                Nothing needs you. Questions, approvals, failed turns and blocked cards are listed here.
              </p>
            )}
            {entries.map((entry) => (
              <Need
                key={entry.kind + entry.id}
                entry={entry}
                wait={waits.find((wait) => wait.id === entry.id)}
                agent={entry.kind === "approval" ? agentOf(entry.session) : undefined}
              />
            ))}
            {entries.length < total && <p className={shared.muted}>{total - entries.length} more are not shown.</p>}
          </>
        )}
      </Show>
    </section>
  );
}

function Need({
  entry,
  wait,
  agent,
}: {
  readonly entry: InboxEntry;
  readonly wait: WaitView | undefined;
  /** Who asks for an approval, and where it would work. */
  readonly agent: Agent | undefined;
}): ReactNode {
  const [busy, setBusy] = useState(false);
  const dismiss = (): void => {
    setBusy(true);
    call("POST /v1/sessions/{id}/dismiss", { path: { id: entry.id }, body: {}, key: newId() }).catch(
      (error: unknown) => {
        toastError(error);
        setBusy(false);
      },
    );
  };
  return (
    <div className={styles.need} data-why={entry.stream}>
      <Chip state={entryState(entry)} />
      <span className={styles.question} dir="auto">
        {entryWords(entry)}
      </span>
      <span className={styles.where}>
        <Link href={entry.link}>{entryTitle(entry)}</Link> · since {moment(entry.since)}
        {entry.node && ` · on ${entry.node}`}
        {wait?.until ? ` · until ${moment(wait.until)}` : ""}
      </span>
      {agent && (
        <span className={styles.where}>
          <AgentFacts agent={{ ...agent, host: "" }} />
        </span>
      )}
      {wait && wait.shown.length > 0 && (
        <div className={styles.where}>
          <ShownArguments shown={wait.shown} cwd={agent?.cwd ?? ""} />
        </div>
      )}
      <span className={styles.answers} data-keep-clear>
        {wait ? (
          <Answers few wait={{ ...wait, wait: wait.id }} />
        ) : (
          <Link className={buttonClass({ small: true })} href={entry.link}>
            {entry.kind === "blocked_card" ? "Answer" : "Open"}
          </Link>
        )}
        {entry.kind === "failed_turn" && (
          <Button quiet small disabled={busy} onClick={dismiss}>
            Dismiss
          </Button>
        )}
      </span>
    </div>
  );
}
