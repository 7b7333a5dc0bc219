/** The profiles, which of them new sessions get, and the models that were found. */
import type { ReactNode } from "react";
import type { ProfileView } from "../api/types.gen";
import { plural } from "../text";
import { AsOf, Show } from "../ui/Known";
import shared from "../ui/shared.module.css";
import { toastError } from "../ui/toasts";
import { changeSettings, useModels, useProfiles } from "./queries";
import { Saved, useSaved } from "./Saved";
import styles from "./settings.module.css";

export function Profiles(): ReactNode {
  const profiles = useProfiles();
  const models = useModels();
  const [saved, save] = useSaved();
  return (
    <>
      <section className={shared.panel} aria-label="Profiles">
        <header>
          <h2>Profiles</h2>
          <AsOf known={profiles} />
          <span className={shared.grow} />
          <Saved at={saved} />
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
                    onChoose={() => save(changeSettings({ default_profile: profile.name })).catch(toastError)}
                  />
                ))}
              </fieldset>
            </>
          )}
        </Show>
        <p className={shared.faint}>
          A new profile: <code>holdfast profiles add NAME --model PROVIDER:MODEL</code>. Keys are never shown here.
        </p>
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

function Choice({ profile, onChoose }: { readonly profile: ProfileView; readonly onChoose: () => void }): ReactNode {
  return (
    <label className={styles.entry}>
      <input type="radio" name="default-profile" checked={profile.default} onChange={onChoose} />
      <span className={shared.grow}>
        <b>{profile.name}</b>
        <span className={shared.muted}>
          {" "}
          · {profile.model === "demo" ? "demo, a script" : profile.model} ·{" "}
          {plural(Object.keys(profile.tools).length, "tool rule")} · {originWords(profile.origin)}
        </span>
        <span className={styles.detail}>Sandbox for its commands: {profile.sandbox}</span>
      </span>
    </label>
  );
}

const originWords = (origin: string): string =>
  origin === "config" ? "from config.toml" : origin === "detected" ? "found on this machine" : "built in";
