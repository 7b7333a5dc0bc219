/** The first minute: who answers and why, how to connect a model, three things to try. Gone once a session exists. */
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { call } from "../api/http";
import { bothKnown, knownValue } from "../api/known";
import { post } from "../api/outbox";
import type { DetectedModel, ProfileView } from "../api/types.gen";
import { useSessions } from "../chat/queries";
import { useAgents, useModels, useProfiles } from "../settings/queries";
import shared from "../ui/shared.module.css";
import { toastError } from "../ui/toasts";
import styles from "./FirstSteps.module.css";

interface Idea {
  readonly title: string;
  readonly what: string;
  readonly message: string;
}

/** For the demo agent, which is a script. */
const DEMO: readonly Idea[] = [
  {
    title: "Close the tab while it answers",
    what: "It speaks for 20 seconds. Close this tab, come back, and nothing is missing.",
    message: "slow 20 This answer goes on while nobody looks. Close the tab and come back: every word is there.",
  },
  {
    title: "Run a command in the background",
    what: "It counts for a minute as a task of its own. It outlives this tab and the gateway.",
    message: "bg for i in $(seq 60); do echo $i; sleep 1; done\ntasks",
  },
  {
    title: "Be asked",
    what: "It asks you something. The question waits for you there and on Home, for as long as it takes.",
    message: 'call question {"text": "Which colour do you like?", "choices": ["blue", "green"]}',
  },
];

const MODEL: readonly Idea[] = [
  {
    title: "Ask about a directory",
    what: "It reads what is there and says what it found.",
    message: "Look at the files in the working directory and tell me in five sentences what this is.",
  },
  {
    title: "Run a command in the background",
    what: "A task of its own, which outlives this tab and the gateway.",
    message: "Start a command in the background that counts to 60, one number a second, and tell me how to follow it.",
  },
  {
    title: "Plan before doing",
    what: "It asks you before it changes anything.",
    message: "Propose three small improvements for the code in the working directory. Change nothing before I answer.",
  },
];

export function FirstSteps(): ReactNode {
  const sessions = useSessions(false).known;
  if (sessions.state !== "known" || sessions.value.length > 0) return null;
  return <Welcome />;
}

/** Also where the chat is still empty. */
export function Welcome(): ReactNode {
  const known = bothKnown(useProfiles(), useModels());
  if (known.state !== "known") return null;
  const [{ profiles, cwd }, { detected }] = known.value;
  const agent = profiles.find((profile) => profile.default);
  if (!agent) return null;
  const isDemo = agent.model === "demo";
  return (
    <section className={shared.panel} aria-label="First steps">
      <header>
        <h2>Begin here</h2>
      </header>
      <div className={styles.body}>
        <p>
          <strong>{isDemo ? "A script answers, no AI." : `${agent.agent || agent.model} answers.`}</strong>{" "}
          {reason(agent, detected)}
        </p>
        {isDemo && <Connect />}
        <p className={shared.muted}>
          The profile is {agent.name}. It works in <code>{agent.cwd || cwd}</code>.
          {agent.agent ? "" : ` Sandbox for its commands: ${agent.sandbox}.`}
        </p>
        <ul className={styles.ideas}>
          {(isDemo ? DEMO : MODEL).map((idea) => (
            <li key={idea.title}>
              <Try idea={idea} profile={agent.name} />
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}

function reason(agent: ProfileView, detected: readonly DetectedModel[]): string {
  if (agent.origin === "config") return `The profile ${agent.name} in config.toml says so.`;
  const found = detected.find((model) => model.provider === agent.name);
  if (found) return `It was found: ${found.how}.`;
  return "No model was found on this machine.";
}

function Connect(): ReactNode {
  const agents = knownValue(useAgents())?.agents.filter((agent) => agent.program !== "") ?? [];
  return (
    <>
      <p>To connect a model, do one of these on the machine of the gateway:</p>
      <ul className={styles.ways}>
        <li>
          set <code>ANTHROPIC_API_KEY</code>, <code>OPENAI_API_KEY</code> or <code>OPENROUTER_API_KEY</code>
          {", then run "}
          <code>holdfast restart</code>
        </li>
        <li>start a local server (Ollama, LM Studio, llama-server, vLLM) on its usual port</li>
        {agents.map((agent) => (
          <li key={agent.name}>
            let {agent.title}, which is installed there, work here: <code>holdfast agents add {agent.name}</code>
          </li>
        ))}
      </ul>
    </>
  );
}

function Try({ idea, profile }: { readonly idea: Idea; readonly profile: string }): ReactNode {
  const [, go] = useLocation();
  const [busy, setBusy] = useState(false);
  const start = (): void => {
    setBusy(true);
    void call("POST /v1/sessions", { body: { profile } }).then(
      ({ session }) => {
        post(session, idea.message, "queue");
        go(`/s/${session}`);
      },
      (error: unknown) => {
        toastError(error);
        setBusy(false);
      },
    );
  };
  return (
    <button type="button" className={styles.idea} disabled={busy} onClick={start}>
      <strong>{idea.title}</strong>
      <span>{idea.what}</span>
    </button>
  );
}
