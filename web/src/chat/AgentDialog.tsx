/** Who answers in a session from now on: its profile, its model, and what it may do at most. */
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { call, newId } from "../api/http";
import { knownValue } from "../api/known";
import type { ProfileView } from "../api/types.gen";
import type { SessionMode } from "../log/model";
import { useProfiles } from "../settings/queries";
import { Confirm } from "../ui/Confirm";
import { SelectField } from "../ui/fields";
import form from "../ui/form.module.css";
import { AsOf, Show } from "../ui/Known";
import shared from "../ui/shared.module.css";
import styles from "./AgentDialog.module.css";
import type { Agent } from "./AgentFacts";
import { ModelField, profileTitle } from "./agentFields";
import { MODE_OPTIONS, MODE_WORDS } from "./modes";
import { permissionWords } from "./permissions";

export default function AgentDialog({
  session,
  agent,
  onClose,
}: {
  readonly session: string;
  readonly agent: Agent;
  readonly onClose: () => void;
}): ReactNode {
  const profiles = useProfiles();
  const [name, setName] = useState(agent.profile);
  const [typed, setTyped] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const usual = knownValue(profiles)?.profiles.find((one) => one.name === name);
  const own = name === agent.profile && usual?.model !== agent.model ? agent.model : "";
  const model = (typed ?? own).trim();
  const [mode, setMode] = useState<SessionMode>(agent.mode ?? "profile");
  const otherAgent = name !== agent.profile || model !== own;
  const otherMode = mode !== (agent.mode ?? "profile");
  const inherited = agent.inheritedMode ?? "profile";
  const change = async (): Promise<void> => {
    setBusy(true);
    const body = { model, ...(name === agent.profile ? {} : { profile: name }) };
    try {
      // the mode first: should the second one fail, the new agent has not begun without it
      if (otherMode) await call("POST /v1/sessions/{id}/mode", { path: { id: session }, body: { mode }, key: newId() });
      if (otherAgent) await call("POST /v1/sessions/{id}/agent", { path: { id: session }, body, key: newId() });
      onClose();
    } catch (error) {
      setBusy(false);
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <Confirm
      title="Agent of this session"
      verb="Change the agent"
      danger={false}
      disabled={!(otherAgent || otherMode) || busy}
      onNo={onClose}
      onYes={() => void change()}
    >
      <AsOf known={profiles} />
      <Show known={profiles} rows={3}>
        {({ profiles: all }) => (
          <div className={`${form.form} ${styles.fields}`}>
            <SelectField
              label="Profile"
              value={name}
              options={[
                ...(all.some((one) => one.name === agent.profile)
                  ? []
                  : [[agent.profile, `${agent.profile}, which no longer exists`] as const]),
                ...all.map((one) => [one.name, profileTitle(one)] as const),
              ]}
              onChange={(chosen) => {
                setName(chosen);
                setTyped(null);
                setProblem("");
              }}
            />
            {usual && !usual.agent && (
              <ModelField
                profile={usual}
                value={typed ?? own}
                onChange={(next) => {
                  setTyped(next);
                  setProblem("");
                }}
              />
            )}
            {usual && !usual.agent && (
              <SelectField
                label="Mode"
                value={mode}
                options={MODE_OPTIONS}
                onChange={(chosen) => {
                  setMode(chosen);
                  setProblem("");
                }}
              />
            )}
            {inherited !== "profile" && (
              <p className={shared.faint}>
                The session that created this one was: {MODE_WORDS[inherited]}. That holds here.
              </p>
            )}
            {problem && (
              <p role="alert" className={styles.problem}>
                {problem}
              </p>
            )}
            {usual && <Permissions profile={usual} />}
            <div>
              <h3>Directory</h3>
              <p className={styles.path} dir="ltr">
                {agent.cwd}
              </p>
              <p className={shared.faint}>A session keeps its directory.</p>
            </div>
          </div>
        )}
      </Show>
    </Confirm>
  );
}

function Permissions({ profile }: { readonly profile: ProfileView }): ReactNode {
  return (
    <div>
      <h3>Permissions</h3>
      <p>{permissionWords(profile)}</p>
      <p className={shared.faint}>
        Sandbox for its commands: {profile.sandbox}. The rules belong to the profile:{" "}
        <Link className={styles.link} href="/settings/profiles">
          Settings, Profiles
        </Link>
        .
      </p>
    </div>
  );
}
