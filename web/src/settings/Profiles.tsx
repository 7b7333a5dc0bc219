/** The profiles, which of them new sessions get, and the models that were found. */
import { type ReactNode, useState } from "react";
import { call } from "../api/http";
import { queryClient } from "../api/queryClient";
import type { ProfileView } from "../api/types.gen";
import { permissionWords } from "../chat/permissions";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Confirm";
import { AsOf, Show } from "../ui/Known";
import { Menu } from "../ui/Menu";
import shared from "../ui/shared.module.css";
import { toastError } from "../ui/toasts";
import { keyWords, ProfileForm } from "./ProfileForm";
import { changeSettings, useModels, useProfiles } from "./queries";
import { Saved, useSaved } from "./Saved";
import styles from "./settings.module.css";

export function Profiles(): ReactNode {
  const profiles = useProfiles();
  const models = useModels();
  const [saved, save] = useSaved();
  /** null: none; undefined: a new one. */
  const [editing, setEditing] = useState<ProfileView | null | undefined>(null);
  return (
    <>
      <section className={shared.panel} aria-label="Profiles">
        <header>
          <h2>Profiles</h2>
          <AsOf known={profiles} />
          <span className={shared.grow} />
          <Saved at={saved} />
          <Button small onClick={() => setEditing(undefined)}>
            Add a profile…
          </Button>
        </header>
        <Show known={profiles}>
          {(found) => (
            <>
              {found.problem && (
                <p role="alert" className={styles.problem}>
                  {found.problem}
                </p>
              )}
              <fieldset className={styles.choices}>
                <legend>New sessions use</legend>
                {found.profiles.map((profile) => (
                  <Choice
                    key={profile.name}
                    profile={profile}
                    onEdit={() => setEditing(profile)}
                    onChoose={() => save(changeSettings({ default_profile: profile.name })).catch(toastError)}
                  />
                ))}
              </fieldset>
            </>
          )}
        </Show>
        <p className={shared.faint}>They are kept in config.toml. Keys are never shown here.</p>
        {editing !== null && <ProfileForm profile={editing} onClose={() => setEditing(null)} />}
      </section>
      <section className={shared.panel} aria-label="Models">
        <header>
          <h2>Detected models</h2>
          <AsOf known={models} />
        </header>
        <Show known={models}>
          {({ detected }) =>
            detected.length === 0 ? (
              <p className={shared.muted}>
                No model was found. Set <code>ANTHROPIC_API_KEY</code>, <code>OPENAI_API_KEY</code> or{" "}
                <code>OPENROUTER_API_KEY</code> and run <code>holdfast restart</code>, or start a local model server.
              </p>
            ) : (
              detected.map((found) => (
                <div key={found.provider} className={styles.entry}>
                  <div className={shared.grow}>
                    <b>{found.provider}</b>
                    <div className={shared.muted}>{found.how}</div>
                    <div className={shared.faint}>{found.models.slice(0, 12).join(", ")}</div>
                  </div>
                </div>
              ))
            )
          }
        </Show>
      </section>
    </>
  );
}

function Choice({
  profile,
  onChoose,
  onEdit,
}: {
  readonly profile: ProfileView;
  readonly onChoose: () => void;
  readonly onEdit: () => void;
}): ReactNode {
  const [removing, setRemoving] = useState(false);
  const remove = (): void => {
    setRemoving(false);
    void call("DELETE /v1/profiles/{name}", { path: { name: profile.name } }).then(
      (list) => queryClient.setQueryData(["profiles"], list),
      toastError,
    );
  };
  return (
    <div className={styles.entry}>
      <label className={styles.choice}>
        <input type="radio" name="default-profile" checked={profile.default} onChange={onChoose} />
        <span>
          <b>{profile.name}</b>
          <span className={shared.muted}>
            {" "}
            · {whoWords(profile)} · {originWords(profile.origin)}
          </span>
          <span className={styles.detail}>{permissionWords(profile)}</span>
          <span className={styles.detail}>
            {profile.cwd ? `Works in ${profile.cwd}.` : "Works where each session is started."}{" "}
            {profile.agent ? "" : `${keyWords(profile)} Sandbox for its commands: ${profile.sandbox}.`}
          </span>
        </span>
      </label>
      <Menu
        name={`Menu of the profile ${profile.name}`}
        entries={[
          ...(profile.agent ? [] : [{ word: "Edit…", icon: "edit", act: onEdit }]), // what it has stands in config.toml
          {
            word: "Delete…",
            icon: "close",
            danger: true,
            disabled: profile.origin !== "config",
            act: () => setRemoving(true),
          },
        ]}
      />
      {removing && (
        <Confirm
          title={`Delete the profile ${profile.name}?`}
          verb="Delete 1 profile"
          onNo={() => setRemoving(false)}
          onYes={remove}
        >
          <p>
            It is removed from config.toml. Its sessions stay; each needs another agent before it can go on, and cards
            with this profile are not started.
          </p>
        </Confirm>
      )}
    </div>
  );
}

const whoWords = ({ agent, model }: ProfileView): string =>
  agent ? "external agent" : model === "demo" ? "demo, a script" : model;

const originWords = (origin: string): string =>
  origin === "config" ? "from config.toml" : origin === "detected" ? "found on this machine" : "built in";
