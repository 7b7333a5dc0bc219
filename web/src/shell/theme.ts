/** Light, dark, or as the system: `public/theme.js` applies it before the first paint. */
import { Store } from "../api/store";

export type Theme = "system" | "light" | "dark";
const KEY = "holdfast.theme"; // plain text, because theme.js reads it before anything else runs

function stored(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === "light" || found === "dark" ? found : "system";
  } catch {
    return "system";
  }
}

export const theme = new Store<Theme>(stored());

export function setTheme(chosen: Theme): void {
  theme.set(chosen);
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  try {
    if (chosen === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, chosen);
  } catch {
    // disabled: for as long as this page lives
  }
}

/** The other one than what is seen now. */
export function switchTheme(): void {
  const shown = theme.get();
  const dark = shown === "system" ? matchMedia("(prefers-color-scheme: dark)").matches : shown === "dark";
  setTheme(dark ? "light" : "dark");
}
