/** Who works in a session, with which model, whether it asks, and where; a press changes it. */
import { type ReactNode, useState } from "react";
import { knownValue } from "../api/known";
import type { SessionView } from "../log/model";
import { usePlaced } from "../nodes/placed";
import { useSeveralNodes } from "../nodes/queries";
import { useProfiles } from "../settings/queries";
import { lazyPart } from "../ui/lazyPart";
import styles from "./AgentButton.module.css";
import { AgentFacts } from "./AgentFacts";
import { permissionWord } from "./permissions";

export const AgentDialog = lazyPart(() => import("./AgentDialog"));

export function AgentButton({ view }: { readonly view: SessionView }): ReactNode {
  const [open, setOpen] = useState(false);
  const placed = knownValue(usePlaced("session", view.session, useSeveralNodes()));
  const profile = knownValue(useProfiles())?.profiles.find((one) => one.name === view.profile);
  return (
    <>
      <button type="button" className={styles.button} title="Change the agent" onClick={() => setOpen(true)}>
        <AgentFacts
          agent={{ ...view, host: placed?.host ?? "" }}
          short
          permission={profile ? permissionWord(profile) : ""}
        />
      </button>
      {open && <AgentDialog session={view.session} agent={view} onClose={() => setOpen(false)} />}
    </>
  );
}
