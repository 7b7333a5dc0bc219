import { QueryClientProvider } from "@tanstack/react-query";
import { createRoot } from "react-dom/client";
import "./styles/app.css";
import { App } from "./App";
import { login } from "./api/endpoints";
import { queryClient } from "./api/queryClient";
import { deviceName, signInProblem } from "./settings/SignIn";
import { putIcons } from "./ui/Icon";

/** The one-time code leaves the address before anything else happens. */
function takeCode(): string {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1] ?? "";
  if (code) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

async function start(): Promise<void> {
  const code = takeCode();
  let problem = "";
  if (code) {
    try {
      await login(code, deviceName());
    } catch (error) {
      problem = signInProblem(error);
    }
  }
  putIcons();
  const root = document.getElementById("root");
  if (!root) return;
  createRoot(root).render(
    <QueryClientProvider client={queryClient}>
      <App problem={problem} />
    </QueryClientProvider>,
  );
  if ("serviceWorker" in navigator) void navigator.serviceWorker.register("/sw.js").catch(() => undefined);
}

void start();
