/** An empty list of sessions: why it is empty, and what there is instead. */
import type { ReactNode } from "react";
import { useLocation } from "wouter";
import { knownValue } from "../api/known";
import { Button } from "../ui/Button";
import { Empty, Loading } from "../ui/Empty";
import shared from "../ui/shared.module.css";
import { newSession } from "./newSession";
import { KINDS, type Kind, useOtherKinds } from "./queries";
import styles from "./SessionList.module.css";

const YET: Readonly<Record<Kind, readonly [string, string]>> = {
  mine: ["No session yet", "A session is a conversation with an agent. It lives here, not in this tab."],
  worker: [
    "No worker yet",
    "A card on the board is worked on in a session of its own. These sessions are listed here.",
  ],
  background: [
    "Nothing in the background",
    "What you run in the background has a session of its own, which is listed here.",
  ],
  "": ["No session yet", "A session is a conversation with an agent. It lives here, not in this tab."],
};

/** Which sessions a filter shows. */
const SHOWN: Readonly<Record<Kind, string>> = {
  mine: "sessions of your own",
  worker: "sessions of workers on the board",
  background: "sessions of agents in the background",
  "": "sessions",
};

interface Asked {
  readonly kind: Kind;
  readonly archived: boolean;
  readonly wanted: string;
}

export function NoSessions({ onChoose, ...asked }: Asked & { readonly onChoose: (kind: Kind) => void }): ReactNode {
  const { kind, archived, wanted } = asked;
  const known = useOtherKinds(kind, archived, wanted);
  const [, go] = useLocation();
  if (kind !== "" && known.state === "loading") return <Loading rows={3} />;
  const others = knownValue(known) ?? [];
  if (others.length > 0) {
    return (
      <Empty
        title={none(asked)}
        action={KINDS.filter(([one]) => others.includes(one)).map(([one, word]) => (
          <Button key={one} small className={styles.other} onClick={() => onChoose(one)}>
            Show {word}
          </Button>
        ))}
      >
        There are {others.map((one) => SHOWN[one]).join(" and ")}
        {wanted ? " that match" : archived ? " in the archive" : ""}.
      </Empty>
    );
  }
  if (wanted) return <Empty title="Nothing found">No title and no text has “{wanted}” in it.</Empty>;
  if (archived)
    return <Empty title="Nothing is archived">An archived session is hidden from the list. Nothing is deleted.</Empty>;
  const [title, text] = YET[kind];
  const begin = (
    <Button primary className={shared.phoneOnly} onClick={() => newSession(go)}>
      New session
    </Button>
  );
  return (
    <Empty title={title} action={(kind === "mine" || kind === "") && begin}>
      {text}
    </Empty>
  );
}

const none = ({ kind, archived, wanted }: Asked): string =>
  wanted ? `Nothing found in ${SHOWN[kind]}` : `There are no ${archived ? "archived " : ""}${SHOWN[kind]}`;
