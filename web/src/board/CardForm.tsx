/** A new card, or another wording of one. What was typed for a new one outlives Escape, the page and the tab. */
import { type ReactNode, useEffect, useId, useState } from "react";
import { call, newId } from "../api/http";
import { knownValue } from "../api/known";
import { drop, load, save } from "../api/storage";
import type { CardDetail, EditCard } from "../api/types.gen";
import { NodeField } from "../nodes/NodeField";
import { useProfiles } from "../settings/queries";
import { cardLabel } from "../text";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { SelectField, TextField } from "../ui/fields";
import form from "../ui/form.module.css";
import shared from "../ui/shared.module.css";
import { toastError } from "../ui/toasts";

type Resume = "" | "auto" | "fresh" | "resume";
const RESUMES: readonly (readonly [Resume, string])[] = [
  ["auto", "Continue if possible (auto)"],
  ["resume", "Always continue (resume)"],
  ["fresh", "Always start a new session (fresh)"],
];

interface Fields {
  readonly title: string;
  readonly body: string;
  readonly profile: string | null;
  readonly workspace: string;
  readonly node: string;
  readonly priority: string;
  readonly resume: Resume;
  readonly attempts: string;
  readonly triage: boolean;
}

const EMPTY: Fields = {
  title: "",
  body: "",
  profile: null,
  workspace: "scratch",
  node: "",
  priority: "0",
  resume: "",
  attempts: "",
  triage: false,
};

const fieldsOf = (detail: CardDetail): Fields => ({
  title: detail.card.title,
  body: detail.body,
  profile: detail.card.profile,
  workspace: detail.card.workspace,
  node: detail.card.node ?? "",
  priority: String(detail.card.priority),
  resume: (detail.resume ?? "") as Resume,
  attempts: detail.max_attempts === null ? "" : String(detail.max_attempts),
  triage: false,
});

export function CardForm({
  board,
  detail,
  onClose,
  onDone,
}: {
  readonly board: string;
  readonly detail?: CardDetail;
  readonly onClose: () => void;
  readonly onDone: (card: string) => void;
}): ReactNode {
  const profiles = knownValue(useProfiles())?.profiles;
  const known = detail?.card;
  const draft = `new-card.${board}`;
  const [key] = useState(newId);
  const formId = useId();
  const [busy, setBusy] = useState(false);
  const [fields, setFields] = useState<Fields>(() => (detail ? fieldsOf(detail) : { ...EMPTY, ...load(draft, EMPTY) }));
  const [kept, setKept] = useState(() => !detail && (fields.title !== "" || fields.body !== ""));
  const { title, body, workspace, node, priority, resume, attempts, triage } = fields;
  const set = (change: Partial<Fields>): void => setFields((before) => ({ ...before, ...change }));
  useEffect(() => {
    if (known) return;
    if (title || body) save(draft, fields);
    else drop(draft);
  }, [known, draft, fields, title, body]);
  /** Null while it is not known which one is the default: then nothing is chosen, and nothing is sent. */
  const profile = fields.profile ?? (profiles ? (profiles.find((one) => one.default)?.name ?? "") : null);
  const running = known?.status === "running";
  const send = async (): Promise<void> => {
    setBusy(true);
    const more = { priority: Number(priority) || 0, max_attempts: attempts ? Number(attempts) : null };
    const said = {
      title: title.trim(),
      body,
      profile: profile || null,
      workspace: workspace.trim() || "scratch",
      resume: resume || null,
      ...(node === (known?.node ?? "") ? {} : { node }),
    };
    try {
      if (known) {
        const change: EditCard = running ? more : { ...said, ...more };
        await call("PATCH /v1/cards/{id}", { path: { id: known.id }, key, body: change });
        onDone(known.id);
      } else {
        const made = await call("POST /v1/cards", { key, body: { ...said, ...more, board, triage } });
        drop(draft);
        onDone(cardLabel(made.number, made.card));
      }
    } catch (error) {
      setBusy(false);
      toastError(error);
    }
  };
  const word = known ? "Edit the card" : "New card";
  return (
    <Dialog
      title={word}
      wide
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            form={formId}
            primary
            disabled={busy || (!running && (!title.trim() || profile === null))}
          >
            {known ? "Save" : "Add card"}
          </Button>
        </>
      }
    >
      <form
        id={formId}
        className={form.form}
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        {kept && (
          <p className={shared.muted}>
            This is what you wrote last time.{" "}
            <button
              type="button"
              className={shared.linkButton}
              onClick={() => {
                setFields(EMPTY);
                setKept(false);
              }}
            >
              Begin with an empty card
            </button>
          </p>
        )}
        {running && (
          <p className={shared.muted}>
            The card is running, and its worker has read it. Only its priority and attempts can be changed; a comment
            reaches the worker.
          </p>
        )}
        {!running && (
          <>
            <TextField
              first
              label="Title"
              required
              maxLength={200}
              value={title}
              onChange={(text) => set({ title: text })}
            />
            <TextField
              label="Description"
              rows={7}
              value={body}
              placeholder="Markdown. The worker reads this and all comments."
              onChange={(text) => set({ body: text })}
            />
            <div className={form.pair}>
              <SelectField
                label="Profile"
                value={profile ?? "?"}
                options={[
                  ...(profile === null ? [["?", "Not known yet"] as const] : []),
                  ...(known?.profile ? [] : [["", "None: it is not started"] as const]),
                  ...(profiles?.map((one) => one.name) ?? (profile ? [profile] : [])).map((one) => [one, one] as const),
                ]}
                onChange={(name) => set({ profile: name })}
              />
              <TextField
                mono
                label="Workspace"
                list="workspaces"
                value={workspace}
                onChange={(text) => set({ workspace: text })}
              >
                <datalist id="workspaces">
                  <option value="scratch" />
                  <option value="dir:" />
                  <option value="worktree:" />
                </datalist>
              </TextField>
            </div>
            <NodeField value={node} onChange={(word) => set({ node: word })} />
          </>
        )}
        <div className={form.pair}>
          <TextField
            label="Priority"
            type="number"
            min={-1000}
            max={1000}
            value={priority}
            onChange={(text) => set({ priority: text })}
          />
          {!running && (
            <SelectField
              label="After a block or a crash"
              value={resume}
              options={detail?.resume ? RESUMES : [["", "As in its profile"], ...RESUMES]}
              onChange={(chosen) => set({ resume: chosen })}
            />
          )}
          <TextField
            label="Attempts"
            type="number"
            min={1}
            max={100}
            required={detail?.max_attempts != null}
            placeholder="default of the board"
            value={attempts}
            onChange={(text) => set({ attempts: text })}
          />
        </div>
        {!known && (
          <label className={form.check}>
            <input type="checkbox" checked={triage} onChange={(event) => set({ triage: event.target.checked })} />
            Triage first: it is not started until somebody moves it
          </label>
        )}
      </form>
    </Dialog>
  );
}
