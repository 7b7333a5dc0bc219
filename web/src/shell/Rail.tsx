/** The pages, what needs somebody on each, the theme, and the connection in words. */
import { type ReactNode, useEffect } from "react";
import { Link, useLocation } from "wouter";
import { connection } from "../api/connection";
import { lastSession } from "../api/cursors";
import { knownValue } from "../api/known";
import { showWaiting } from "../api/notify";
import { useStore } from "../api/store";
import { useUnread } from "../chat/queries";
import { useMedia } from "../ui/hooks";
import { Icon, Logo } from "../ui/Icon";
import shared from "../ui/shared.module.css";
import { useInbox } from "./queries";
import styles from "./Rail.module.css";
import { switchTheme } from "./theme";

const WORDS = {
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Recon\u00adnecting",
  offline: "Offline",
} as const;

/** Go to the content without a change of the address. */
function skip(): void {
  document.getElementById("main")?.focus();
}

export function Rail(): ReactNode {
  const [place] = useLocation();
  const state = useStore(connection).state;
  const last = useStore(lastSession);
  const inbox = knownValue(useInbox());
  const unread = knownValue(useUnread())?.mine?.messages ?? 0;
  const cards = inbox?.entries.filter((entry) => entry.stream.startsWith("card/")).length ?? 0;
  const waiting = inbox?.total;
  useEffect(() => {
    if (waiting !== undefined) showWaiting(waiting);
  }, [waiting]);
  const phone = useMedia("(max-width: 720px)");
  const chats = last && !phone ? `/s/${last}` : "/s";
  return (
    <nav className={styles.rail} aria-label="Main">
      <button type="button" className={styles.skip} onClick={skip}>
        Skip to the content
      </button>
      <Link className={styles.logo} href="/home" aria-label="Holdfast home">
        <Logo />
      </Link>
      <Entry to="/home" icon="home" word="Home" here={place === "/home"} count={inbox?.total ?? 0} what="need you" />
      <Entry
        to={chats}
        icon="chat"
        word="Chats"
        here={place.startsWith("/s/") || place === "/s" || place === "/new"}
        count={unread}
        what="unread"
      />
      <Entry to="/tasks" icon="tasks" word="Tasks" here={place.startsWith("/tasks")} />
      <Entry to="/board" icon="board" word="Board" here={place.startsWith("/board")} count={cards} what="need you" />
      <Entry to="/settings" icon="settings" word="Settings" here={place.startsWith("/settings")} />
      <span className={styles.room} />
      <button className={`${styles.entry} ${styles.theme}`} type="button" onClick={switchTheme}>
        <Icon name="theme" />
        <span>Theme</span>
      </button>
      <span className={styles.connection} data-connection role="status">
        <i className={`${styles.dot} ${state === "live" || state === "connecting" ? "" : styles[state]}`} />
        {WORDS[state]}
      </span>
    </nav>
  );
}

function Entry({
  to,
  icon,
  word,
  here,
  count = 0,
  what = "",
}: {
  readonly to: string;
  readonly icon: string;
  readonly word: string;
  readonly here: boolean;
  readonly count?: number;
  readonly what?: string;
}): ReactNode {
  return (
    <Link className={styles.entry} href={to} aria-current={here ? "page" : undefined}>
      <Icon name={icon} />
      <span>{word}</span>
      {count > 0 && (
        <b className={styles.count}>
          <span className={shared.srOnly}>, </span>
          {count > 99 ? "99+" : count}
          <span className={shared.srOnly}> {what}</span>
        </b>
      )}
    </Link>
  );
}
