/** When a session is reset by itself: the rules that hold, where they come from, and other ones for this session. */
import { type ReactNode, useState } from "react";
import { call } from "../api/http";
import type { ResetPolicy } from "../api/types.gen";
import { duration } from "../text";
import { Confirm } from "../ui/Confirm";
import { Loading } from "../ui/Empty";
import form from "../ui/form.module.css";
import shared from "../ui/shared.module.css";
import { toastError } from "../ui/toasts";
import { useOutlook } from "./queries";
import styles from "./ResetPolicy.module.css";
import type { Subject } from "./SessionDialogs";

const MODES = [
  ["", "As in its profile"],
  ["none", "Never automatically"],
  ["idle", "After some time without messages"],
  ["daily", "Every day"],
  ["both", "Both"],
] as const;
const LIVE = [
  ["", "As in its profile"],
  ["hand_over", "Kept for the new chapter"],
  ["stop_idle", "Stopped when idle"],
  ["stop", "Stopped"],
] as const;
const SAID: Readonly<Record<string, string>> = {
  session: "chosen for this session",
  profile: "from its profile",
  config: "from config.toml",
  default: "by default",
};

/** When it is reset by itself: what holds and who said so, and what to say for this session alone. */
export function ResetPolicyDialog({
  session,
  onClose,
}: {
  readonly session: Subject;
  readonly onClose: () => void;
}): ReactNode {
  const outlook = useOutlook(session.id, 0).data;
  const [changed, setChanged] = useState<ResetPolicy | null>(null);
  const policy: ResetPolicy = changed ?? outlook?.policy ?? {};
  const set = (change: ResetPolicy): void => setChanged({ ...policy, ...change });
  const act = (): void => {
    void call("POST /v1/sessions/{id}/reset/policy", { path: { id: session.id }, body: { policy } }).then(
      onClose,
      toastError,
    );
  };
  const number = (text: string): number | null => (text.trim() === "" ? null : Number(text));
  const rules = outlook?.rules;
  const from = (name: string): string => SAID[outlook?.origins[name] ?? ""] ?? "";
  const held: readonly (readonly [string, string, string])[] = rules
    ? [
        ["mode", "Resets", MODES.find(([name]) => name === rules.mode)?.[1] ?? rules.mode],
        ["idle_minutes", "Idle", duration(rules.idle_ms)],
        ["at_hour", "Daily at", `${rules.at_hour}:00${rules.timezone ? ` ${rules.timezone}` : ""}`],
        ["max_postpone", "Postponed at most", duration(rules.max_postpone_ms)],
        ["process_max_age", "A command is believed", `for ${duration(rules.process_max_age_ms)}`],
        [
          "on_live_process",
          "What runs is",
          LIVE.find(([name]) => name === rules.on_live_process)?.[1].toLowerCase() ?? "",
        ],
        ["hand_over_note", "Hand-over note", rules.hand_over_note ? "yes" : "no"],
        ["notify", "Tells you", rules.notify ? "yes" : "no"],
      ]
    : [];
  const mode = policy.mode ?? "";
  const now = mode || rules?.mode;
  return (
    <Confirm
      title="When this session is reset"
      verb="Save"
      danger={false}
      disabled={changed === null}
      onNo={onClose}
      onYes={act}
    >
      {!outlook ? (
        <Loading rows={4} />
      ) : (
        <>
          <dl className={styles.rules} aria-label="Current rules">
            {held.map(([name, word, value]) => (
              <div key={name}>
                <dt>{word}</dt>
                <dd>
                  {value} <span className={shared.faint}>{from(name)}</span>
                </dd>
              </div>
            ))}
          </dl>
          <fieldset className={`${form.group} ${form.form} ${form.two}`}>
            <legend>For this session alone</legend>
            <label>
              Mode
              <select
                className={shared.input}
                value={mode}
                onChange={(event) =>
                  set({ mode: (event.target.value || null) as (ResetPolicy["mode"] & string) | null })
                }
              >
                {MODES.map(([name, word]) => (
                  <option key={name} value={name}>
                    {word}
                  </option>
                ))}
              </select>
            </label>
            {(now === "idle" || now === "both") && (
              <label>
                Idle minutes
                <input
                  className={shared.input}
                  type="number"
                  min={1}
                  max={10_000_000}
                  value={policy.idle_minutes ?? ""}
                  placeholder={String(Math.round((rules?.idle_ms ?? 0) / 60_000))}
                  onChange={(event) => set({ idle_minutes: number(event.target.value) })}
                />
              </label>
            )}
            {(now === "daily" || now === "both") && (
              <label>
                At hour
                <input
                  className={shared.input}
                  type="number"
                  min={0}
                  max={23}
                  value={policy.at_hour ?? ""}
                  placeholder={String(rules?.at_hour ?? "")}
                  onChange={(event) => set({ at_hour: number(event.target.value) })}
                />
              </label>
            )}
            {now !== "none" && (
              <>
                <label>
                  Postponed at most
                  <input
                    className={shared.input}
                    value={policy.max_postpone ?? ""}
                    placeholder={duration(rules?.max_postpone_ms ?? 0).replaceAll(" ", "")}
                    onChange={(event) => set({ max_postpone: event.target.value.trim() || null })}
                  />
                </label>
                <label>
                  Running tasks
                  <select
                    className={shared.input}
                    value={policy.on_live_process ?? ""}
                    onChange={(event) =>
                      set({
                        on_live_process: (event.target.value || null) as
                          | (ResetPolicy["on_live_process"] & string)
                          | null,
                      })
                    }
                  >
                    {LIVE.map(([name, word]) => (
                      <option key={name} value={name}>
                        {word}
                      </option>
                    ))}
                  </select>
                </label>
                <Choice
                  word="Hand-over note"
                  value={policy.hand_over_note ?? null}
                  onChange={(value) => set({ hand_over_note: value })}
                />
                <Choice word="Tell me" value={policy.notify ?? null} onChange={(value) => set({ notify: value })} />
              </>
            )}
          </fieldset>
        </>
      )}
    </Confirm>
  );
}

function Choice({
  word,
  value,
  onChange,
}: {
  readonly word: string;
  readonly value: boolean | null;
  readonly onChange: (value: boolean | null) => void;
}): ReactNode {
  return (
    <label>
      {word}
      <select
        className={shared.input}
        value={value === null ? "" : String(value)}
        onChange={(event) => onChange(event.target.value === "" ? null : event.target.value === "true")}
      >
        <option value="">As in its profile</option>
        <option value="true">Yes</option>
        <option value="false">No</option>
      </select>
    </label>
  );
}
