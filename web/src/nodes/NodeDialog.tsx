/** Lets a session or a card run on another node. A refusal is shown in the words of the gateway. */
import { type ReactNode, useState } from "react";
import { call, newId, Refused } from "../api/http";
import { queryClient } from "../api/queryClient";
import { Confirm } from "../ui/Confirm";
import form from "../ui/form.module.css";
import { Show } from "../ui/Known";
import shared from "../ui/shared.module.css";
import { toast } from "../ui/toasts";
import { WithCode } from "../ui/WithCode";
import styles from "./NodeDialog.module.css";
import { NodeField } from "./NodeField";
import { usePlaced } from "./placed";
import { NODES, useNodes } from "./queries";

export interface Movable {
  readonly kind: "session" | "card";
  readonly id: string;
  readonly name: string;
}

export default function NodeDialog({
  subject,
  onClose,
}: {
  readonly subject: Movable;
  readonly onClose: () => void;
}): ReactNode {
  const { kind, id, name } = subject;
  const placed = usePlaced(kind, id);
  const nodes = useNodes();
  const [chosen, setChosen] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const [key, setKey] = useState(newId); // the same however often it is tried
  const asks = placed.state === "known" ? placed.value.node : "";
  const move = async (node: string): Promise<void> => {
    setBusy(true);
    try {
      if (kind === "session") await call("POST /v1/sessions/{id}/node", { path: { id }, body: { node }, key });
      else await call("PATCH /v1/cards/{id}", { path: { id }, body: { node }, key });
      toast("done", node ? `It runs on ${node} from now on` : "It runs on any node from now on", name);
      onClose();
    } catch (error) {
      setBusy(false);
      setKey(newId());
      const said = error instanceof Error ? error.message : String(error);
      setProblem(error instanceof Refused ? `${said} ${error.hint}`.trim() : said);
      void queryClient.invalidateQueries({ queryKey: NODES });
    }
  };
  return (
    <Confirm
      title={`Where “${name}” runs`}
      verb="Move"
      danger={false}
      disabled={busy || chosen === null || chosen === asks}
      onNo={onClose}
      onYes={() => void move(chosen ?? "")}
    >
      <Show known={placed} rows={2}>
        {({ host }) => (
          <div className={form.form}>
            <p>{host ? `It runs on ${host}, or did so last.` : "No node has worked on it so far."}</p>
            <Show known={nodes} rows={1}>
              {() => (
                <NodeField
                  value={chosen ?? asks}
                  onChange={(node) => {
                    setChosen(node);
                    setProblem("");
                  }}
                />
              )}
            </Show>
            <p className={shared.faint}>
              A label means any node that has it. A directory or an external agent that only one node has keeps it
              there.
            </p>
            {problem && (
              <p role="alert" className={styles.problem}>
                <WithCode text={problem} />
              </p>
            )}
          </div>
        )}
      </Show>
    </Confirm>
  );
}
