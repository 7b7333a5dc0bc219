import { type ReactNode, useEffect, useRef, useState } from "react";
import { login } from "../api/endpoints";
import { Refused } from "../api/http";
import { Button } from "../ui/Button";
import { useTitle } from "../ui/hooks";
import { Logo } from "../ui/Icon";
import shared from "../ui/shared.module.css";
import styles from "./SignIn.module.css";

export function SignIn({ problem, onDone }: { readonly problem: string; readonly onDone: () => void }): ReactNode {
  const [code, setCode] = useState("");
  const [said, setSaid] = useState(problem);
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  useTitle("Sign in");
  const send = async (): Promise<void> => {
    setBusy(true);
    try {
      await login(code.trim().replace(/^.*#(code=)?/, ""), deviceName());
      onDone();
    } catch (error) {
      setSaid(signInProblem(error));
      setBusy(false);
    }
  };
  return (
    <main className={styles.page}>
      <form
        className={`${shared.panel} ${styles.form}`}
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <span className={styles.logo}>
          <Logo />
        </span>
        <h1>Sign in to Holdfast</h1>
        {said && (
          <p role="alert" className={styles.problem}>
            {said}
          </p>
        )}
        <p className={shared.muted}>
          Run <code>holdfast open</code> on the machine where the gateway runs. It opens this page with a one-time code,
          or prints one for another device.
        </p>
        <label className={styles.field}>
          One-time code
          <input
            className={shared.input}
            value={code}
            onChange={(event) => setCode(event.target.value)}
            autoComplete="one-time-code"
            spellCheck={false}
            ref={field}
          />
        </label>
        <Button type="submit" primary disabled={busy || !code.trim()}>
          Sign in
        </Button>
      </form>
    </main>
  );
}

export function signInProblem(error: unknown): string {
  if (error instanceof Refused && error.status === 401)
    return "This sign-in code was used or is older than 10 min. Run `holdfast open` for a new one.";
  if (error instanceof Refused) return `${error.message} ${error.hint}`;
  return "The gateway does not respond. Is it running?";
}

/** What this browser is called in the list of devices. */
export function deviceName(): string {
  const agent = navigator.userAgent;
  const browser = /Firefox/.test(agent)
    ? "Firefox"
    : /Edg\//.test(agent)
      ? "Edge"
      : /Chrome/.test(agent)
        ? "Chrome"
        : /Safari/.test(agent)
          ? "Safari"
          : "Browser";
  const system = /Android/.test(agent)
    ? "Android"
    : /iPhone|iPad/.test(agent)
      ? "iOS"
      : /Mac/.test(agent)
        ? "macOS"
        : /Windows/.test(agent)
          ? "Windows"
          : "Linux";
  return `${browser} on ${system}`;
}
