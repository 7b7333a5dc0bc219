/** When sessions begin a new chapter by themselves. Profiles and sessions may say otherwise. */
import type { ReactNode } from "react";
import type { ResetChoice, ResetView } from "../api/types.gen";
import { AsOf, Show } from "../ui/Known";
import shared from "../ui/shared.module.css";
import { toastError } from "../ui/toasts";
import { NumberField } from "./NumberField";
import { changeSettings, useSettings } from "./queries";
import { Saved, useSaved } from "./Saved";
import styles from "./settings.module.css";

const MODES: readonly (readonly [ResetChoice["mode"], string])[] = [
  ["none", "Only when somebody asks"],
  ["idle", "After a time without activity"],
  ["daily", "Once a day"],
  ["both", "Whichever comes first"],
];

export function ResetRules(): ReactNode {
  const known = useSettings();
  const [saved, save] = useSaved();
  const change = (rules: ResetView): void => {
    const session_reset = { ...rules, mode: rules.mode as ResetChoice["mode"] };
    void save(changeSettings({ session_reset })).catch(toastError);
  };
  return (
    <section className={shared.panel} aria-label="Reset of sessions">
      <header>
        <h2>Reset</h2>
        <AsOf known={known} />
        <span className={shared.grow} />
        <Saved at={saved} />
      </header>
      <Show known={known}>
        {({ session_reset: rules }) => (
          <div className={styles.form}>
            <p className={shared.muted}>
              A reset begins a new chapter of a session with an empty context. Nothing is deleted, and what runs is
              handed over.
            </p>
            <label className={styles.field}>
              Sessions are reset
              <select
                className={shared.input}
                value={rules.mode}
                onChange={(event) => change({ ...rules, mode: event.target.value })}
              >
                {MODES.map(([mode, word]) => (
                  <option key={mode} value={mode}>
                    {word}
                  </option>
                ))}
              </select>
            </label>
            {(rules.mode === "idle" || rules.mode === "both") && (
              <NumberField
                label="Minutes without activity"
                value={rules.idle_minutes}
                least={1}
                most={10_000_000}
                onSave={(idle_minutes) => change({ ...rules, idle_minutes })}
              />
            )}
            {(rules.mode === "daily" || rules.mode === "both") && (
              <NumberField
                label="Hour of the day, 0 to 23"
                value={rules.at_hour}
                least={0}
                most={23}
                onSave={(at_hour) => change({ ...rules, at_hour })}
              />
            )}
          </div>
        )}
      </Show>
    </section>
  );
}
