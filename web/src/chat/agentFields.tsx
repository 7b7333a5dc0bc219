/** What can be chosen of an agent: for a new session and for one that exists. */
import type { ReactNode } from "react";
import { knownValue } from "../api/known";
import type { DetectedModel, ProfileView } from "../api/types.gen";
import shared from "../ui/shared.module.css";
import { useModels } from "./queries";

const nameOf = (found: DetectedModel, model: string): string => `${found.provider}:${model}`;

/** A profile with what answers in it. */
export const profileTitle = ({ name, model, agent }: ProfileView): string => {
  const what = agent ? `agent ${agent}` : model;
  return what && what !== name ? `${name} (${what})` : name;
};

/** A model by its name; empty is the one of the profile. */
export function ModelField({
  profile,
  value,
  onChange,
}: {
  readonly profile: ProfileView;
  readonly value: string;
  readonly onChange: (model: string) => void;
}): ReactNode {
  const models = useModels();
  const found = knownValue(models)?.detected ?? []; // suggestions; every other name can be typed too
  const names = found.flatMap((one) => one.models.map((model) => nameOf(one, model)));
  return (
    <label>
      Model
      <input
        className={shared.input}
        list="models-found"
        value={value}
        placeholder={`${profile.model}, as in the profile`}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id="models-found">
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {models.state === "unknown" && (
        <span className={shared.faint}>which there are is not known: {models.reason}</span>
      )}
    </label>
  );
}
