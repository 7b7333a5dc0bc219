export function switchTheme(): void {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = dark ? "light" : "dark";
  root.dataset.theme = theme;
  try {
    localStorage.setItem("holdfast.theme", theme); // plain text: theme.js reads it before anything else runs
  } catch {
    // disabled: for as long as this page lives
  }
}
