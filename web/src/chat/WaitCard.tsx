import { memo, type ReactNode, useState } from "react";
import { call as ask, newId } from "../api/http";
import type { ShownArgument } from "../api/types.gen";
import type { WaitItem } from "../log/model";
import { byWhom, moment } from "../text";
import { visible } from "../ui/blocks";
import { Chip } from "../ui/Chip";
import { waitState } from "../ui/states";
import { Time } from "../ui/Time";
import { toast, toastError } from "../ui/toasts";
import { Why } from "../ui/Why";
import { callLine, prettyArguments } from "./ToolCard";

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
};
export const answerWord = (answer: string): string => WORDS[answer] ?? answer;

/** The choices as buttons; a question can also be answered in words. */
export function Answers({ wait, few = false }: { readonly wait: Answerable; readonly few?: boolean }): ReactNode {
  const [busy, setBusy] = useState("");
  const [words, setWords] = useState<string | null>(null);
  const answer = async (text: string): Promise<void> => {
    setBusy(text);
    try {
      const accepted = await ask("POST /v1/answers", { body: { wait: wait.wait, answer: text }, key: newId() });
      if (accepted.warning) toast("failed", accepted.warning);
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
    : wait.purpose === "question"
      ? wait.choices
      : ["go on"];
  const wordy = wait.purpose === "question";
  if (words !== null || (wordy && choices.length === 0)) {
    return (
      <form
        className="w-full flex gap-2 items-end"
        onSubmit={(event) => {
          event.preventDefault();
          if (words?.trim()) void answer(words);
        }}
      >
        <textarea
          className="input !h-auto grow py-1"
          rows={2}
          aria-label="Your answer"
          autoFocus={words !== null}
          value={words ?? ""}
          onChange={(event) => setWords(event.target.value)}
        />
        {choices.length > 0 && (
          <button type="button" className="btn quiet" onClick={() => setWords(null)}>
            Back
          </button>
        )}
        <button type="submit" className="btn primary" disabled={busy !== "" || !words?.trim()}>
          Answer
        </button>
      </form>
    );
  }
  return (
    <>
      {choices.map((choice) => (
        <button
          key={choice}
          type="button"
          className={`btn ${few ? "small" : ""}`}
          disabled={busy !== ""}
          onClick={() => void answer(choice)}
        >
          {answerWord(choice)}
        </button>
      ))}
      {wordy && (
        <button
          type="button"
          className={`btn quiet ${few ? "small" : ""}`}
          disabled={busy !== ""}
          onClick={() => setWords("")}
        >
          In words
        </button>
      )}
    </>
  );
}

const argumentText = (argument: ShownArgument): string =>
  visible(argument.value) + (argument.left_out ? `\n… ${argument.left_out} more characters` : "");

/** Every argument of the call that is approved; what the call left out stands in one line. */
export function ShownArguments({ shown }: { readonly shown: readonly ShownArgument[] }): ReactNode {
  const usual = shown.filter((argument) => argument.usual);
  return (
    <>
      {shown
        .filter((argument) => !argument.usual)
        .map((argument) => (
          <div key={argument.name} className="mt-1">
            <span className="faint">{visible(argument.name)}</span>
            <div className="what whitespace-pre-wrap break-words max-h-96 overflow-auto">{argumentText(argument)}</div>
          </div>
        ))}
      {usual.length > 0 && (
        <p className="faint mt-1">
          defaults: {usual.map((argument) => `${argument.name} ${argument.value || "empty"}`).join(", ")}
        </p>
      )}
    </>
  );
}

function ShownCall({ item }: { readonly item: WaitItem }): ReactNode {
  const [all, setAll] = useState(item.shown.length === 0);
  const cut = item.shown.some((argument) => (argument.left_out ?? 0) > 0);
  return (
    <>
      <ShownArguments shown={item.shown} />
      {item.call && all && (
        <div className="what" title={callLine(item.call)}>
          {prettyArguments(item.call.arguments)}
        </div>
      )}
      {item.call && cut && !all && (
        <button type="button" className="btn quiet small" onClick={() => setAll(true)}>
          Show all of it
        </button>
      )}
    </>
  );
}

export const WaitCard = memo(function WaitCard({
  item,
  session,
  open,
}: {
  readonly item: WaitItem;
  readonly session: string;
  readonly open: boolean;
}): ReactNode {
  const state = waitState(item);
  if (item.purpose === "retry") {
    return (
      <p className="meta">
        <Chip state={state} />
        <span>
          {item.reason}
          {item.until && open ? `, tries again at ${moment(item.until)}` : ""}
        </span>
        <Why of="session" id={session} />
      </p>
    );
  }
  if (item.answer || !open) {
    const answer = item.answer;
    return (
      <p className="meta">
        <span>{visible(item.reason)}</span>
        {answer ? (
          <span>
            <b>{answerWord(answer.text)}</b>, {byWhom(answer.by)} at <Time at={answer.at} />
          </span>
        ) : (
          <span>not answered; the turn ended</span>
        )}
      </p>
    );
  }
  return (
    <div className="ask" role="group" aria-label={state.word}>
      <div className="row">
        <Chip state={state} word={item.purpose === "approval" ? "Approval" : "Waiting for you"} />
        {item.until !== null && (
          <span className="faint">
            until {moment(item.until)}
            {item.otherwise ? `, then: ${answerWord(item.otherwise)}` : ""}
          </span>
        )}
        <span className="grow" />
        <Why of="session" id={session} />
      </div>
      <p className="prose mt-1.5">{visible(item.reason)}</p>
      {item.purpose === "approval" && <ShownCall item={item} />}
      {item.purpose === "approval" && item.pattern && (
        <p className="faint mt-1">
          The rule: <code>{visible(item.pattern)}</code>
        </p>
      )}
      <div className="row pick">
        <Answers wait={item} />
      </div>
    </div>
  );
});
