/** What is asked before a session is reset, archived, deleted or made shorter. What runs for it is shown first. */
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { call, newId } from "../api/http";
import { queryClient } from "../api/queryClient";
import type { RunningTaskView } from "../api/types.gen";
import { count, duration, plural } from "../text";
import { Confirm } from "../ui/Confirm";
import { Loading } from "../ui/Empty";
import { TextField } from "../ui/fields";
import form from "../ui/form.module.css";
import shared from "../ui/shared.module.css";
import { toast, toastError } from "../ui/toasts";
import { useOutlook } from "./queries";
import { ResetPolicyDialog } from "./ResetPolicy";

export interface Subject {
  readonly id: string;
  readonly title: string;
}

const FITS: Readonly<Record<string, string>> = {
  config: "(from config.toml)",
  window: "(model window less room for the answer)",
  default: "(by default)",
};

type Fate = "keep" | "stop";

export type Asked = "reset" | "policy" | "compact" | "archive" | "delete";

export default function SessionDialog({
  what,
  session,
  onClose,
  onDeleted,
}: {
  readonly what: Asked;
  readonly session: Subject;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}): ReactNode {
  if (what === "policy") return <ResetPolicyDialog session={session} onClose={onClose} />;
  if (what === "compact") return <Compact session={session} onClose={onClose} />;
  return <Ending key={what} what={what} session={session} onClose={onClose} onDeleted={onDeleted} />;
}

const ENDINGS = {
  reset: {
    title: "Reset",
    danger: false,
    text: [
      "A new chapter begins: the model does not see any more what was said so far.",
      "It all stays here and in the search, and the reset can be undone.",
    ].join(" "),
    keep: "Keep them: they are handed over to the new chapter",
    stop: "Stop them with the old chapter",
  },
  archive: {
    title: "Archive",
    danger: false,
    text: "It is hidden from the list. Nothing is deleted.",
    keep: "Keep them running",
    stop: "Stop them",
  },
  delete: {
    title: "Delete",
    danger: true,
    text: [
      "Its events and the outputs of commands that it waited for are deleted permanently.",
      "Tasks that it started are kept.",
    ].join(" "),
    keep: "Keep them running",
    stop: "Stop them",
  },
} as const;

function Ending({
  what,
  session,
  onClose,
  onDeleted,
}: {
  readonly what: "reset" | "archive" | "delete";
  readonly session: Subject;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}): ReactNode {
  const outlook = useOutlook(session.id, 0);
  const [fate, setFate] = useState<Fate | null>(null);
  const [note, setNote] = useState(false);
  const [busy, setBusy] = useState(false);
  const words = ENDINGS[what];
  const running = outlook.data?.running ?? [];
  const open = running.length > 0;
  const act = async (): Promise<void> => {
    const path = { id: session.id };
    const body = open && fate ? { running: fate } : {};
    setBusy(true);
    try {
      if (what === "reset") await call("POST /v1/sessions/{id}/reset", { path, body: { ...body, note }, key: newId() });
      else if (what === "archive") await call("POST /v1/sessions/{id}/archive", { path, body });
      else await call("DELETE /v1/sessions/{id}", { path, body });
      onClose();
      if (what === "delete") onDeleted();
    } catch (error) {
      toastError(error);
      setBusy(false);
      void queryClient.invalidateQueries({ queryKey: ["outlook", session.id] }); // something may run meanwhile
    }
  };
  const verb = what === "delete" ? "Delete 1 session" : words.title;
  return (
    <Confirm
      title={`${words.title} “${session.title || "New session"}”?`}
      verb={fate === "stop" && open ? `${verb} and stop ${plural(running.length, "task")}` : verb}
      danger={words.danger || (open && fate === "stop")}
      disabled={busy || outlook.isLoading || (open && fate === null)}
      onNo={onClose}
      onYes={() => void act()}
    >
      <p>{words.text}</p>
      {outlook.isLoading && <Loading rows={1} />}
      {outlook.isError && <p>What still runs here is not known: {outlook.error.message}</p>}
      {open && (
        <fieldset className={form.group}>
          <legend>
            {plural(running.length, "task")} still {running.length === 1 ? "runs" : "run"} here
          </legend>
          <ul className={form.list}>
            {running.map((one) => (
              <Still key={one.task} one={one} />
            ))}
          </ul>
          {(["keep", "stop"] as const).map((choice) => (
            <label key={choice} className={form.check}>
              <input type="radio" name="fate" checked={fate === choice} onChange={() => setFate(choice)} />
              {words[choice]}
            </label>
          ))}
        </fieldset>
      )}
      {what === "reset" && (
        <label className={`${form.check} ${form.group}`}>
          <input type="checkbox" checked={note} onChange={(event) => setNote(event.target.checked)} />
          First let the agent write a hand-over note for the new chapter
        </label>
      )}
    </Confirm>
  );
}

function Still({ one }: { readonly one: RunningTaskView }): ReactNode {
  return (
    <li>
      <span className={`${shared.cut} ${shared.grow} ${one.kind === "process" ? shared.mono : ""}`} title={one.command}>
        {one.title}
      </span>
      <span className={shared.faint} title={one.evidence}>
        {[one.activity || one.kind, duration(one.age_ms)].join(" · ")}
      </span>
    </li>
  );
}

function Compact({ session, onClose }: { readonly session: Subject; readonly onClose: () => void }): ReactNode {
  const [text, setText] = useState("");
  const found = useQuery({
    queryKey: ["context", session.id, "now"],
    staleTime: 0,
    queryFn: () => call("GET /v1/sessions/{id}/context", { path: { id: session.id }, query: { texts: false } }),
  }).data;
  const act = (): void => {
    onClose();
    void call("POST /v1/sessions/{id}/compact", { path: { id: session.id }, body: { instructions: text.trim() } }).then(
      () =>
        toast(
          "working",
          "The context is being made shorter",
          "A summary takes the place of the oldest turns. The originals stay.",
        ),
      toastError,
    );
  };
  const word = found?.summary === "model" ? "summary" : "digest";
  const summary = found?.summary ? [`a ${word} stands for turns up to ${found.covers}`] : [];
  const facts: readonly (readonly [string, string])[] = found
    ? [
        ["In use", `about ${count(found.used)} tokens`],
        [
          "Made shorter by itself",
          found.threshold ? `from ${count(found.threshold)} on, when the session rests` : "never",
        ],
        ["Fits at most", found.limit ? `${count(found.limit)} ${FITS[found.limit_source] ?? ""}` : "unknown"],
        ["The model sees", found.window === null ? "its window is unknown" : `${count(found.window)} at once`],
        ["Chapter", [found.chapter, ...summary].join(", ")],
      ]
    : [];
  return (
    <Confirm title="Compact now" verb="Compact now" danger={false} onNo={onClose} onYes={act}>
      <p>
        A summary replaces the oldest turns in what the model sees. The conversation here stays complete and searchable.
      </p>
      <dl className={form.facts}>
        {facts.map(([name, value]) => [<dt key={`t${name}`}>{name}</dt>, <dd key={name}>{value}</dd>])}
      </dl>
      <div className={`${form.group} ${form.form}`}>
        <TextField
          label="What the summary must keep (optional)"
          rows={2}
          maxLength={4000}
          value={text}
          onChange={setText}
        />
      </div>
    </Confirm>
  );
}
