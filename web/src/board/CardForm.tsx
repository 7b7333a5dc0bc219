/** A new card, or another wording of one. */

import { type ReactNode, useState } from "react";
import { call, newId } from "../api/http";
import { knownValue } from "../api/known";
import type { CardDetail, EditCard } from "../api/types.gen";
import { useProfiles } from "../settings/queries";
import { cardLabel } from "../text";
import { useModal } from "../ui/hooks";
import { toastError } from "../ui/toasts";

type Resume = "" | "auto" | "fresh" | "resume";

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
  const profiles = knownValue(useProfiles())?.profiles ?? [];
  const known = detail?.card;
  const [key] = useState(newId);
  const [busy, setBusy] = useState(false);
  const [title, setTitle] = useState(known?.title ?? "");
  const [body, setBody] = useState(detail?.body ?? "");
  const [chosen, setProfile] = useState<string | null>(known?.profile ?? null);
  const [workspace, setWorkspace] = useState(known?.workspace ?? "scratch");
  const [priority, setPriority] = useState(String(known?.priority ?? 0));
  const [resume, setResume] = useState<Resume>((detail?.resume ?? "") as Resume);
  const [attempts, setAttempts] = useState(detail?.max_attempts == null ? "" : String(detail.max_attempts));
  const [triage, setTriage] = useState(false);
  const profile = chosen ?? profiles.find((one) => one.default)?.name ?? "";
  const running = known?.status === "running";
  const save = async (): Promise<void> => {
    setBusy(true);
    const more = { priority: Number(priority) || 0, max_attempts: attempts ? Number(attempts) : null };
    const said = {
      title: title.trim(),
      body,
      profile: profile || null,
      workspace: workspace.trim() || "scratch",
      resume: resume || null,
    };
    try {
      if (known) {
        const change: EditCard = running ? more : { ...said, ...more };
        await call("PATCH /v1/cards/{id}", { path: { id: known.id }, key, body: change });
        onDone(known.id);
      } else {
        const made = await call("POST /v1/cards", { key, body: { ...said, ...more, board, triage } });
        onDone(cardLabel(made.number, made.card));
      }
    } catch (error) {
      setBusy(false);
      toastError(error);
    }
  };
  const word = known ? "Edit the card" : "New card";
  return (
    <dialog ref={useModal()} className="card-form" aria-label={word} onClose={onClose}>
      <form
        method="dialog"
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <h2>{word}</h2>
        {running && (
          <p className="muted">
            The card is running, and its worker has read it. Only its priority and attempts can be changed; a comment
            reaches the worker.
          </p>
        )}
        {!running && (
          <>
            <label>
              Title
              <input
                className="input"
                required
                maxLength={200}
                value={title}
                onChange={(event) => setTitle(event.target.value)}
                autoFocus
              />
            </label>
            <label>
              Description
              <textarea
                className="input"
                rows={7}
                value={body}
                placeholder="Markdown. The worker reads this and all comments."
                onChange={(event) => setBody(event.target.value)}
              />
            </label>
            <div className="pair">
              <label>
                Profile
                <select className="input" value={profile} onChange={(event) => setProfile(event.target.value)}>
                  {!known?.profile && <option value="">None: it is not started</option>}
                  {profiles.map((one) => (
                    <option key={one.name} value={one.name}>
                      {one.name}
                    </option>
                  ))}
                </select>
              </label>
              <label>
                Workspace
                <input
                  className="input mono"
                  value={workspace}
                  list="workspaces"
                  onChange={(event) => setWorkspace(event.target.value)}
                />
                <datalist id="workspaces">
                  <option value="scratch" />
                  <option value="dir:" />
                  <option value="worktree:" />
                </datalist>
              </label>
            </div>
          </>
        )}
        <div className="pair">
          <label>
            Priority
            <input
              className="input"
              type="number"
              min={-1000}
              max={1000}
              value={priority}
              onChange={(event) => setPriority(event.target.value)}
            />
          </label>
          {!running && (
            <label>
              After a block or a crash
              <select className="input" value={resume} onChange={(event) => setResume(event.target.value as Resume)}>
                {!detail?.resume && <option value="">As in its profile</option>}
                <option value="auto">Continue if possible (auto)</option>
                <option value="resume">Always continue (resume)</option>
                <option value="fresh">Always start a new session (fresh)</option>
              </select>
            </label>
          )}
          <label>
            Attempts
            <input
              className="input"
              type="number"
              min={1}
              max={100}
              required={detail?.max_attempts != null}
              placeholder="default of the board"
              value={attempts}
              onChange={(event) => setAttempts(event.target.value)}
            />
          </label>
        </div>
        {!known && (
          <label className="row">
            <input type="checkbox" checked={triage} onChange={(event) => setTriage(event.target.checked)} />
            Triage first: it is not started until somebody moves it
          </label>
        )}
        <div className="acts">
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={busy || (!running && !title.trim())}>
            {known ? "Save" : "Add card"}
          </button>
        </div>
      </form>
    </dialog>
  );
}
