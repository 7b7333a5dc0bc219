import { memo, type ReactNode, useState } from "react";
import { newId, call as send } from "../api/http";
import type { ShownArgument } from "../api/types.gen";
import type { WaitItem } from "../log/model";
import { byWhom, moment } from "../text";
import { Button } from "../ui/Button";
import { visible } from "../ui/blocks";
import { Chip } from "../ui/Chip";
import { Diff } from "../ui/Diff";
import { focusOnMount } from "../ui/hooks";
import { MarkdownText } from "../ui/MarkdownText";
import shared from "../ui/shared.module.css";
import { waitState } from "../ui/states";
import { Time } from "../ui/Time";
import { toast, toastError } from "../ui/toasts";
import { Why } from "../ui/Why";
import { type Agent, AgentFacts } from "./AgentFacts";
import entry from "./Entry.module.css";
import { callLine, prettyArguments } from "./ToolCard";
import styles from "./WaitCard.module.css";

export interface Answerable {
  readonly wait: string;
  readonly purpose: string;
  readonly choices: readonly string[];
  readonly pattern: string;
}

const WORDS: Readonly<Record<string, string>> = {
  allow: "Allow once",
  call: "This call in this session",
  session: "The rule in this session",
  always: "The rule always",
  deny: "Refuse",
  "go on": "Go on",
  "try again": "Try again",
  "wait for me": "Wait for me",
};
/** A choice of an external agent in its own words; of ours, where nothing but this one call can be allowed. */
const ownWord = (choice: string): string => ({ allow: "Allow", deny: "Refuse" })[choice] ?? visible(choice);
export const answerWord = (answer: string): string => WORDS[answer] ?? answer;

/** Send an answer; what it could not do beside that is said. */
export async function sendAnswer(wait: string, answer: string, note = ""): Promise<void> {
  const accepted = await send("POST /v1/answers", { body: { wait, answer, note }, key: newId() });
  if (accepted.warning) toast("failed", accepted.warning);
}

/** The choices as buttons; a question can also be answered in words. */
export function Answers({ wait, few = false }: { readonly wait: Answerable; readonly few?: boolean }): ReactNode {
  const [busy, setBusy] = useState("");
  const [words, setWords] = useState<string | null>(null);
  const answer = async (text: string): Promise<void> => {
    setBusy(text);
    try {
      await sendAnswer(wait.wait, text);
    } catch (error) {
      toastError(error);
      setBusy("");
    }
  };
  const approval = wait.purpose === "approval";
  const offered = wait.choices.length > 0 ? wait.choices : ["allow", "deny"];
  const choices = approval
    ? few
      ? ["allow", "deny"]
      : offered
    : wait.purpose === "question" || wait.choices.length > 0
      ? wait.choices
      : ["go on"];
  const wordy = wait.purpose === "question";
  if (words !== null || (wordy && choices.length === 0)) {
    return (
      <form
        className={styles.words}
        onSubmit={(event) => {
          event.preventDefault();
          if (words?.trim()) void answer(words);
        }}
      >
        <textarea
          className={styles.field}
          rows={2}
          dir="auto"
          aria-label="Your answer"
          ref={words === null ? null : focusOnMount}
          value={words ?? ""}
          onChange={(event) => setWords(event.target.value)}
        />
        {choices.length > 0 && (
          <Button quiet onClick={() => setWords(null)}>
            Back
          </Button>
        )}
        <Button type="submit" primary disabled={busy !== "" || !words?.trim()}>
          Answer
        </Button>
      </form>
    );
  }
  return (
    <>
      {choices.map((choice) => (
        <Button key={choice} small={few} disabled={busy !== ""} onClick={() => void answer(choice)}>
          {approval && !few && !offered.includes("call") ? ownWord(choice) : answerWord(choice)}
        </Button>
      ))}
      {wordy && (
        <Button quiet small={few} disabled={busy !== ""} onClick={() => setWords("")}>
          In words
        </Button>
      )}
    </>
  );
}

const ARGUMENTS: Readonly<Record<string, string>> = {
  cwd: "directory",
  path: "file",
  diff: "changes",
  timeout: "seconds to wait",
  notify: "notification when it ends",
  stdin: "input kept open",
};

const argumentWord = (name: string): string => ARGUMENTS[name] ?? visible(name).replaceAll("_", " ");

const DEFAULTS: Readonly<Record<string, string>> = {
  "background false": "in the foreground",
  "lifetime session": "ends with the session",
  "notify false": "no notification when it ends",
  "stdin false": "no input",
};

/** A phrase for an argument that the call left out, and its default value; as in the terminal. */
export function defaultWords({ name, value }: ShownArgument): string {
  const phrase = DEFAULTS[`${name} ${value}`];
  if (phrase) return phrase;
  if (name === "timeout") return `waits up to ${visible(value)} s`;
  if (value === "true") return argumentWord(name);
  return value === "" || value === "false" ? `no ${argumentWord(name)}` : `${argumentWord(name)} ${visible(value)}`;
}

/**
 * Every argument of the call that is approved; what the call left out is in one line. The directory `cwd` is shown
 * with the agent already.
 */
export function ShownArguments({
  shown,
  cwd,
}: {
  readonly shown: readonly ShownArgument[];
  readonly cwd: string;
}): ReactNode {
  const usual = shown.filter((argument) => argument.usual);
  return (
    <>
      {shown
        .filter((argument) => !argument.usual && !(argument.name === "cwd" && argument.value === cwd))
        .map((argument) => (
          <div key={argument.name} className={styles.argument}>
            <span className={shared.faint}>{argumentWord(argument.name)}</span>
            <Shown argument={argument} />
          </div>
        ))}
      {usual.length > 0 && (
        <p className={`${shared.faint} ${styles.argument}`}>Defaults: {usual.map(defaultWords).join(", ")}</p>
      )}
    </>
  );
}

function Shown({ argument }: { readonly argument: ShownArgument }): ReactNode {
  const rest = argument.left_out ? `… ${argument.left_out} more characters` : "";
  if (argument.name === "diff")
    return (
      <div className={styles.what}>
        <Diff text={argument.value} />
        {rest}
      </div>
    );
  return (
    <div className={styles.what} tabIndex={0} role="group" aria-label={argumentWord(argument.name)}>
      {visible(argument.value)}
      {rest && `\n${rest}`}
    </div>
  );
}

function ShownCall({ item, cwd }: { readonly item: WaitItem; readonly cwd: string }): ReactNode {
  const [all, setAll] = useState(item.shown.length === 0);
  const cut = item.shown.some((argument) => (argument.left_out ?? 0) > 0);
  return (
    <>
      <ShownArguments shown={item.shown} cwd={cwd} />
      {item.call && all && (
        <div className={styles.what} title={callLine(item.call)}>
          {prettyArguments(item.call.arguments)}
        </div>
      )}
      {item.call && cut && !all && (
        <Button quiet small onClick={() => setAll(true)}>
          Show all of it
        </Button>
      )}
    </>
  );
}

export const WaitCard = memo(function WaitCard({
  item,
  session,
  agent,
  open,
}: {
  readonly item: WaitItem;
  readonly session: string;
  readonly agent: Agent;
  readonly open: boolean;
}): ReactNode {
  const state = waitState(item);
  if (item.purpose === "retry") {
    return (
      <p className={entry.meta}>
        <Chip state={state} />
        <span>
          {item.reason}
          {item.until && open ? `, tries again at ${moment(item.until)}` : ""}
        </span>
        <Why of="session" id={session} />
      </p>
    );
  }
  if (item.answer || !open) return <Answered item={item} />;
  const approval = item.purpose === "approval";
  return (
    <div className={styles.card} role="group" aria-label={state.word}>
      <div className={styles.head}>
        <Chip state={state} word={approval ? "Approval" : "Waiting for you"} />
        {item.until !== null && (
          <span className={shared.faint}>
            until {moment(item.until)}
            {item.otherwise ? `, then: ${answerWord(item.otherwise)}` : ""}
          </span>
        )}
        <span className={shared.grow} />
        <Why of="session" id={session} />
      </div>
      <div className={styles.question}>
        <MarkdownText text={visible(item.reason)} live={false} />
      </div>
      {approval && <AgentFacts agent={agent} />}
      {approval && <ShownCall item={item} cwd={agent.cwd} />}
      {approval && item.pattern && (
        <p className={`${shared.faint} ${styles.argument}`}>
          The rule: <code>{visible(item.pattern)}</code>
        </p>
      )}
      <div className={styles.answers} data-keep-clear>
        <Answers wait={item} />
      </div>
    </div>
  );
});

/** One line: what was asked, who answered what, and when. */
function Answered({ item }: { readonly item: WaitItem }): ReactNode {
  const { answer } = item;
  return (
    <p className={entry.meta}>
      <span dir="auto">{visible(item.reason)}</span>
      {answer ? (
        <span>
          <b dir="auto">{answerWord(answer.text)}</b>
          {answer.note && <span dir="auto">: {visible(answer.note)}</span>}, {byWhom(answer.by)} at{" "}
          <Time at={answer.at} />
        </span>
      ) : (
        <span>not answered; the turn ended</span>
      )}
    </p>
  );
}
