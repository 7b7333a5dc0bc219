/** Before the first message: who answers, with which model, in which directory. */
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { call, newId, Refused } from "../api/http";
import { knownValue } from "../api/known";
import { drop, load, save } from "../api/storage";
import type { ProfileView } from "../api/types.gen";
import type { SessionMode } from "../log/model";
import { NodeField } from "../nodes/NodeField";
import { nodeOptions, useNodes } from "../nodes/queries";
import { useProfiles } from "../settings/queries";
import { DrawerButton } from "../shell/drawer";
import { Bar } from "../ui/Bar";
import { Button } from "../ui/Button";
import { Empty } from "../ui/Empty";
import { SelectField } from "../ui/fields";
import { useTitle } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { Show } from "../ui/Known";
import shared from "../ui/shared.module.css";
import { ModelField, profileTitle } from "./agentFields";
import { BackToChats } from "./BackToChats";
import { Banners } from "./Banner";
import composer from "./Composer.module.css";
import { MODE_OPTIONS } from "./modes";
import styles from "./NewSession.module.css";
import pane from "./pane.module.css";
import { permissionWords } from "./permissions";
import { useSessions } from "./queries";

const DEMO = "demo";

/** What worked last on this device. */
interface Choice {
  readonly profile: string;
  readonly model: string;
  readonly cwd: string;
  /** A choice that was stored before there were modes has none. */
  readonly mode?: SessionMode;
  /** The name or label of the nodes on which it may run; none where there is only one. */
  readonly node?: string;
}

const NOTHING: Choice = { profile: "", model: "", cwd: "" };

export default function NewSession(): ReactNode {
  const profiles = useProfiles();
  useTitle("New session");
  return (
    <section className={pane.pane} aria-label="Conversation">
      <Bar>
        <BackToChats />
        <h1>New session</h1>
        <span className={shared.grow} />
        <DrawerButton />
      </Bar>
      <div className={pane.banners}>
        <Banners />
      </div>
      <Show known={profiles} rows={4}>
        {({ profiles: all, cwd = "" }) => <Form profiles={all} home={cwd} />}
      </Show>
    </section>
  );
}

function Form({ profiles, home }: { readonly profiles: readonly ProfileView[]; readonly home: string }): ReactNode {
  const [, go] = useLocation();
  const [text, setText] = useState(() => load("draft.new", ""));
  const [choice, setChoice] = useState<Choice>(() => load("new-session", NOTHING));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const key = useRef(newId()); // the same however often it is tried
  const area = useRef<HTMLTextAreaElement>(null);
  const several = knownValue(useNodes());
  const usual = profiles.find((one) => one.default) ?? profiles[0];
  const profile = profiles.find((one) => one.name === choice.profile) ?? usual;
  useEffect(() => (text ? save("draft.new", text) : drop("draft.new")), [text]);
  useEffect(() => {
    if (matchMedia("(min-width: 721px)").matches) area.current?.focus({ preventScroll: true });
  }, []);
  if (!profile)
    return (
      <Empty title="There is no profile">
        Add one in the{" "}
        <Link className={shared.linkButton} href="/settings/profiles">
          settings
        </Link>
        .
      </Empty>
    );
  const mode = choice.mode ?? "profile";
  const node = several && nodeOptions(several, "").some(([word]) => word === choice.node) ? (choice.node ?? "") : "";
  const change = (next: Partial<Choice>): void => {
    setChoice({ ...choice, ...next });
    setProblem("");
    key.current = newId();
  };
  const start = async (): Promise<void> => {
    if (!text.trim() || busy) return;
    setBusy(true);
    setProblem("");
    const body = {
      text,
      profile: profile.name,
      ...(choice.model.trim() && !profile.agent ? { model: choice.model.trim() } : {}),
      ...(choice.cwd.trim() ? { cwd: choice.cwd.trim() } : {}),
      ...(profile.agent ? {} : { mode }),
      ...(node ? { node } : {}),
    };
    try {
      const { session } = await call("POST /v1/sessions", { body, key: key.current });
      save("new-session", { ...choice, profile: profile.name });
      drop("draft.new");
      go(`/s/${session}`);
    } catch (error) {
      setBusy(false);
      const said = error instanceof Error ? error.message : String(error);
      setProblem(error instanceof Refused ? `${said} ${error.hint}`.trim() : `${said} Nothing was sent.`);
      if (error instanceof Refused) key.current = newId();
    }
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing || event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    void start();
  };
  return (
    <div className={styles.page}>
      <div className={styles.form}>
        <Who profile={profile} />
        <div className={styles.fields}>
          <SelectField
            label="Profile"
            value={profile.name}
            options={profiles.map((one) => [one.name, `${profileTitle(one)}${one.default ? ", the default" : ""}`])}
            onChange={(name) => change({ profile: name, model: "" })}
          />
          {!profile.agent && (
            <ModelField profile={profile} value={choice.model} onChange={(model) => change({ model })} />
          )}
          {!profile.agent && (
            <SelectField
              label="Mode"
              value={mode}
              options={MODE_OPTIONS}
              onChange={(chosen) => change({ mode: chosen })}
            />
          )}
          <Directory profile={profile} home={home} value={choice.cwd} onChange={(cwd) => change({ cwd })} />
          <NodeField value={node} onChange={(word) => change({ node: word })} />
        </div>
        {(profile.agent || mode === "profile") && <p className={shared.faint}>{permissionWords(profile)}</p>}
        {problem && (
          <p role="alert" className={styles.problem}>
            {problem}
          </p>
        )}
      </div>
      <div className={composer.composer} data-keep-clear>
        <div className={composer.box}>
          <textarea
            ref={area}
            rows={2}
            dir="auto"
            aria-label="Message"
            placeholder={`Message ${profile.name}`}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={pressed}
          />
          <div className={composer.buttons}>
            <span className={`${composer.hint} ${shared.cut}`}>Enter starts the session, Shift+Enter adds a line</span>
            <span className={shared.grow} />
            <Button primary disabled={!text.trim() || busy} onClick={() => void start()}>
              <Icon name="send" />
              Start
            </Button>
          </div>
        </div>
      </div>
    </div>
  );
}

const DEMOS = ["say hello", "sh git --version", "slow 10 one two three four five"];

/** Who answers: a model, or the script of the demo. */
function Who({ profile }: { readonly profile: ProfileView }): ReactNode {
  if (profile.agent)
    return (
      <Empty title={`${profile.name} answers`}>
        An external agent with tools and rules of its own. It keeps working when you close this tab, and what it asks
        waits for you.
      </Empty>
    );
  if (profile.model !== DEMO)
    return (
      <Empty title={`${profile.name} answers`}>
        With the model {profile.model}. Describe what to do. It keeps working when you close this tab.
      </Empty>
    );
  return (
    <Empty title="A script answers, no AI">
      The profile {profile.name} uses the demo agent, which follows simple commands, such as{" "}
      {DEMOS.map((one, index) => (
        <span key={one}>
          {index > 0 && ", "}
          <code>{one}</code>
        </span>
      ))}
      . To talk to a model, add a profile for it in the{" "}
      <Link className={shared.linkButton} href="/settings/profiles">
        settings
      </Link>
      , which also show the models that were found on this machine.
    </Empty>
  );
}

function Directory({
  profile,
  home,
  value,
  onChange,
}: {
  readonly profile: ProfileView;
  readonly home: string;
  readonly value: string;
  readonly onChange: (cwd: string) => void;
}): ReactNode {
  const { rows } = useSessions(false, "", "mine");
  const used = [...new Set(rows.map((row) => row.cwd))].slice(0, 20);
  return (
    <label>
      Directory
      <input
        className={`${shared.input} ${shared.mono}`}
        dir="ltr"
        list="directories-used"
        value={profile.cwd || value}
        disabled={profile.cwd !== ""}
        placeholder={home}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id="directories-used">
        {used.map((path) => (
          <option key={path} value={path} />
        ))}
      </datalist>
      {profile.cwd !== "" && <span className={shared.faint}>the profile chooses it</span>}
    </label>
  );
}
