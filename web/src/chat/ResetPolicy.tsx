/** When a session is reset by itself: the rules that hold, where they come from, and other ones for this session. */
import { type ReactNode, useState } from "react";
import { call } from "../api/http";
import type { ResetPolicy } from "../api/types.gen";
import { duration } from "../text";
import { Confirm } from "../ui/Confirm";
import { Loading } from "../ui/Empty";
import { SelectField, TextField } from "../ui/fields";
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
const YES_NO = [
  ["", "As in its profile"],
  ["yes", "Yes"],
  ["no", "No"],
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
  const now = policy.mode || rules?.mode;
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
            <SelectField
              label="Mode"
              value={policy.mode ?? ""}
              options={MODES}
              onChange={(mode) => set({ mode: mode || null })}
            />
            {(now === "idle" || now === "both") && (
              <TextField
                label="Idle minutes"
                type="number"
                min={1}
                max={10_000_000}
                value={String(policy.idle_minutes ?? "")}
                placeholder={String(Math.round((rules?.idle_ms ?? 0) / 60_000))}
                onChange={(text) => set({ idle_minutes: number(text) })}
              />
            )}
            {(now === "daily" || now === "both") && (
              <TextField
                label="At hour"
                type="number"
                min={0}
                max={23}
                value={String(policy.at_hour ?? "")}
                placeholder={String(rules?.at_hour ?? "")}
                onChange={(text) => set({ at_hour: number(text) })}
              />
            )}
            {now !== "none" && (
              <>
                <TextField
                  label="Postponed at most"
                  value={policy.max_postpone ?? ""}
                  placeholder={duration(rules?.max_postpone_ms ?? 0).replaceAll(" ", "")}
                  onChange={(text) => set({ max_postpone: text.trim() || null })}
                />
                <SelectField
                  label="Running tasks"
                  value={policy.on_live_process ?? ""}
                  options={LIVE}
                  onChange={(fate) => set({ on_live_process: fate || null })}
                />
                <SelectField
                  label="Hand-over note"
                  value={yesOrNo(policy.hand_over_note)}
                  options={YES_NO}
                  onChange={(answer) => set({ hand_over_note: isYes(answer) })}
                />
                <SelectField
                  label="Tell me"
                  value={yesOrNo(policy.notify)}
                  options={YES_NO}
                  onChange={(answer) => set({ notify: isYes(answer) })}
                />
              </>
            )}
          </fieldset>
        </>
      )}
    </Confirm>
  );
}

const yesOrNo = (said: boolean | null | undefined): "" | "yes" | "no" => (said == null ? "" : said ? "yes" : "no");
const isYes = (answer: "" | "yes" | "no"): boolean | null => (answer === "" ? null : answer === "yes");
