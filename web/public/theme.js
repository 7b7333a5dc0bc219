// Before the first paint: the theme that was chosen in this browser, else the system's.
try {
  var theme = localStorage.getItem("holdfast.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch (_) { /* storage is disabled: the system decides */ }
