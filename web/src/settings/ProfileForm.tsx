/** A profile to add or to change. What is wrong is said beside the field that it is about. */
import { type ReactNode, useId, useState } from "react";
import { call, Refused } from "../api/http";
import { knownValue } from "../api/known";
import { queryClient } from "../api/queryClient";
import type { EditProfile, ProfileView } from "../api/types.gen";
import { Confirm } from "../ui/Confirm";
import shared from "../ui/shared.module.css";
import styles from "./ProfileForm.module.css";
import { parseRules, rulesText } from "./profileRules";
import { useModels } from "./queries";

type Place = "name" | "model" | "cwd" | "tools" | "instructions" | "all";
type Permission = "ask" | "all" | "own";

const PERMISSIONS: readonly (readonly [Permission, string])[] = [
  ["ask", "Ask before commands and changes"],
  ["all", "Ask nothing: everything is allowed"],
  ["own", "Rules of its own"],
];
const TOOLS: Readonly<Record<"ask" | "all", NonNullable<EditProfile["tools"]>>> = { ask: {}, all: { "*": "allow" } };
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

const permissionOf = (tools: ProfileView["tools"]): Permission => {
  const rules = Object.entries(tools);
  if (rules.length === 0) return "ask";
  return rules.length === 1 && tools["*"] === "allow" ? "all" : "own";
};

export function ProfileForm({
  profile,
  onClose,
}: {
  /** The one to change; undefined for a new one. */
  readonly profile: ProfileView | undefined;
  readonly onClose: () => void;
}): ReactNode {
  const [name, setName] = useState("");
  const [model, setModel] = useState(profile?.model ?? "");
  const [cwd, setCwd] = useState(profile?.cwd ?? "");
  const [permission, setPermission] = useState<Permission>(permissionOf(profile?.tools ?? {}));
  const [rules, setRules] = useState(rulesText(profile?.tools ?? {}));
  const [instructions, setInstructions] = useState(profile?.instructions ?? "");
  const [problem, setProblem] = useState<{ readonly at: Place; readonly text: string } | null>(null);
  const [busy, setBusy] = useState(false);
  const models = knownValue(useModels())?.detected ?? []; // suggestions; every other name can be typed too
  const suggestions = useId();
  const save = async (): Promise<void> => {
    const own = permission === "own" ? parseRules(rules) : { tools: TOOLS[permission] };
    if (!profile && !NAME.test(name))
      return setProblem({ at: "name", text: "Letters, digits, and . _ - after the first; at most 64 of them." });
    if (!model.trim()) return setProblem({ at: "model", text: "Write demo, or PROVIDER:MODEL." });
    if ("problem" in own) return setProblem({ at: "tools", text: own.problem });
    const body: EditProfile = { model: model.trim(), cwd: cwd.trim(), instructions, tools: own.tools };
    setBusy(true);
    try {
      const list = profile
        ? await call("PATCH /v1/profiles/{name}", { path: { name: profile.name }, body })
        : await call("POST /v1/profiles", { body: { ...body, model: model.trim(), name } });
      queryClient.setQueryData(["profiles"], list);
      onClose();
    } catch (error) {
      setBusy(false);
      setProblem(problemOf(error));
    }
  };
  const field = (at: Place, label: string, input: (props: FieldProps) => ReactNode, hint = ""): ReactNode => (
    <Field label={label} hint={hint} problem={problem?.at === at ? problem.text : ""}>
      {input}
    </Field>
  );
  return (
    <Confirm
      title={profile ? `Profile ${profile.name}` : "Add a profile"}
      verb={profile ? "Save the profile" : "Add the profile"}
      danger={false}
      disabled={busy}
      onNo={onClose}
      onYes={() => void save()}
    >
      <div className={styles.fields}>
        {!profile &&
          field("name", "Name", (props) => (
            <input {...props} value={name} onChange={(event) => setName(event.target.value)} />
          ))}
        {field(
          "model",
          "Model",
          (props) => (
            <>
              <input
                {...props}
                list={suggestions}
                placeholder="PROVIDER:MODEL"
                value={model}
                onChange={(event) => setModel(event.target.value)}
              />
              <datalist id={suggestions}>
                {models.flatMap((one) =>
                  one.models.map((each) => <option key={one.provider + each} value={`${one.provider}:${each}`} />),
                )}
              </datalist>
            </>
          ),
          profile && keyWords(profile),
        )}
        {field(
          "cwd",
          "Directory",
          (props) => (
            <input
              {...props}
              className={`${props.className} ${shared.mono}`}
              dir="ltr"
              value={cwd}
              onChange={(event) => setCwd(event.target.value)}
            />
          ),
          "On the machine of the gateway. Empty: the directory in which each session is started.",
        )}
        {field("all", "Permissions", (props) => (
          <select {...props} value={permission} onChange={(event) => setPermission(event.target.value as Permission)}>
            {PERMISSIONS.map(([value, word]) => (
              <option key={value} value={value}>
                {word}
              </option>
            ))}
          </select>
        ))}
        {permission === "own" &&
          field(
            "tools",
            "Rules",
            (props) => (
              <textarea
                {...props}
                className={`${props.className} ${shared.mono} ${styles.rules}`}
                rows={Math.min(10, rules.split("\n").length + 1)}
                dir="ltr"
                spellCheck={false}
                value={rules}
                onChange={(event) => setRules(event.target.value)}
              />
            ),
            "One rule per line: a tool or a pattern, then = and allow, ask or deny.",
          )}
        {field("instructions", "Instructions", (props) => (
          <textarea
            {...props}
            rows={4}
            dir="auto"
            value={instructions}
            onChange={(event) => setInstructions(event.target.value)}
          />
        ))}
        {problem?.at === "all" && (
          <p role="alert" className={styles.problem}>
            {problem.text}
          </p>
        )}
      </div>
    </Confirm>
  );
}

interface FieldProps {
  readonly id: string;
  readonly className: string;
  readonly "aria-invalid": boolean;
  readonly "aria-describedby": string;
}

function Field({
  label,
  hint,
  problem,
  children,
}: {
  readonly label: string;
  readonly hint: string;
  readonly problem: string;
  readonly children: (props: FieldProps) => ReactNode;
}): ReactNode {
  const id = useId();
  const below = `${id}-below`;
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {children({ id, className: shared.input ?? "", "aria-invalid": problem !== "", "aria-describedby": below })}
      <span id={below} className={problem ? styles.problem : styles.hint} role={problem ? "alert" : undefined}>
        {problem || hint}
      </span>
    </div>
  );
}

/** Where it belongs: the gateway names the setting, as in `profiles.NAME.model`. */
function problemOf(error: unknown): { readonly at: Place; readonly text: string } {
  const text = error instanceof Error ? error.message : String(error);
  if (!(error instanceof Refused)) return { at: "all", text: `${text} Nothing was saved.` };
  const named = /(?:\.|\b(?=cwd))(model|cwd|tools|name)\b/.exec(text)?.[1] as Place | undefined;
  return { at: named ?? (/exists already/.test(text) ? "name" : "all"), text };
}

/** Whether its model can be asked; the key itself is never shown. */
export function keyWords({ key_name, key_set }: ProfileView): string {
  if (!key_name) return "Its model needs no key.";
  return key_set
    ? `Key: set (${key_name}).`
    : `Key: not set. Set ${key_name} in a terminal, and run holdfast restart there.`;
}
