/** What is done with all selected sessions at once: one command for each, and what was refused is said. */
import { type ReactNode, useState } from "react";
import { call, newId, Refused } from "../api/http";
import type { SessionView } from "../api/types.gen";
import { plural } from "../text";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Confirm";
import { toast } from "../ui/toasts";
import styles from "./SelectedActions.module.css";

type What = "archive" | "restore" | "delete";

const DONE: Readonly<Record<What, string>> = { archive: "archived", restore: "restored", delete: "deleted" };

function carryOut(what: What, id: string, running: "keep" | "stop"): Promise<unknown> {
  const path = { id };
  if (what === "restore") return call("POST /v1/sessions/{id}/restore", { path, key: newId() });
  if (what === "archive") return call("POST /v1/sessions/{id}/archive", { path, body: { running }, key: newId() });
  return call("DELETE /v1/sessions/{id}", { path, body: { running }, key: newId() });
}

export default function SelectedActions({
  sessions,
  archived,
  onAll,
  onDone,
}: {
  readonly sessions: readonly SessionView[];
  readonly archived: boolean;
  readonly onAll: () => void;
  readonly onDone: () => void;
}): ReactNode {
  const [asking, setAsking] = useState<What | null>(null);
  const [running, setRunning] = useState<"keep" | "stop">("keep");
  const [busy, setBusy] = useState(false);
  const resting = sessions.filter((row) => row.state === "idle");
  const act = async (what: What): Promise<void> => {
    setBusy(true);
    setAsking(null);
    const results = await Promise.allSettled(resting.map((row) => carryOut(what, row.id, running)));
    const failed = results.filter((result) => result.status === "rejected");
    const [first] = failed;
    const reason = first?.reason instanceof Refused || first?.reason instanceof Error ? first.reason.message : "";
    const good = results.length - failed.length;
    if (failed.length > 0) toast("failed", `${good} of ${plural(results.length, "session")} ${DONE[what]}`, reason);
    setBusy(false);
    onDone();
  };
  const none = resting.length === 0 || busy;
  const hide: What = archived ? "restore" : "archive";
  return (
    <>
      <Button small disabled={none} onClick={() => void act(hide)}>
        {archived ? "Restore" : "Archive"} {resting.length}
      </Button>
      <Button small danger disabled={none} onClick={() => setAsking("delete")}>
        Delete {resting.length}…
      </Button>
      <Button quiet small disabled={busy} onClick={onAll}>
        All loaded
      </Button>
      <Button quiet small disabled={busy} onClick={onDone}>
        Done
      </Button>
      {sessions.length > resting.length && (
        <p className={styles.note}>{plural(sessions.length - resting.length, "session")} at work: stop first.</p>
      )}
      {asking && (
        <Confirm
          title={`Delete ${plural(resting.length, "session")}?`}
          verb={`Delete ${plural(resting.length, "session")}`}
          onNo={() => setAsking(null)}
          onYes={() => void act("delete")}
        >
          <p>All events of these sessions are deleted for good. This cannot be undone.</p>
          <fieldset className={styles.choice}>
            <legend>Commands that still run in them</legend>
            {(["keep", "stop"] as const).map((name) => (
              <label key={name}>
                <input type="radio" name="running" checked={running === name} onChange={() => setRunning(name)} />
                {name === "keep" ? "keep running" : "are stopped"}
              </label>
            ))}
          </fieldset>
        </Confirm>
      )}
    </>
  );
}
