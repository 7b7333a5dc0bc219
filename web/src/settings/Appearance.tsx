import type { ReactNode } from "react";
import { useStore } from "../api/store";
import { letters, setLetters } from "../shell/keyboard";
import { setTheme, type Theme, theme } from "../shell/theme";
import shared from "../ui/shared.module.css";
import styles from "./settings.module.css";

const THEMES: readonly (readonly [Theme, string])[] = [
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

/** What this browser looks like; kept by it alone. */
export function Appearance(): ReactNode {
  const chosen = useStore(theme);
  const single = useStore(letters);
  return (
    <section className={shared.panel} aria-label="Appearance">
      <header>
        <h2>Appearance of this browser</h2>
      </header>
      <fieldset className={styles.choices}>
        <legend>Theme</legend>
        {THEMES.map(([name, word]) => (
          <label key={name} className={styles.entry}>
            <input type="radio" name="theme" checked={chosen === name} onChange={() => setTheme(name)} />
            {word}
          </label>
        ))}
      </fieldset>
      <label className={styles.entry}>
        <input type="checkbox" checked={single} onChange={(event) => setLetters(event.target.checked)} />
        <span>
          Single letters are keys (<span className={shared.kbd}>?</span> shows all of them)
        </span>
      </label>
    </section>
  );
}
