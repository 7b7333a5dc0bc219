import { lazy, type ReactNode, Suspense } from "react";
import { Link, useLocation } from "wouter";
import { connection } from "../api/connection";
import { lastSession } from "../api/cursors";
import { knownValue } from "../api/known";
import { useStore } from "../api/store";
import { useSessions } from "../chat/queries";
import { useMedia } from "../ui/hooks";
import { Icon, Logo } from "../ui/Icon";
import { Toasts } from "../ui/toasts";
import { WhyDialog } from "../ui/Why";
import { useKeys } from "./keyboard";
import { overlay } from "./overlay";
import { useInbox } from "./queries";
import { useSwipe } from "./swipe";
import { Drawer, drawer } from "./TasksDrawer";
import { switchTheme } from "./theme";

const Palette = lazy(() => import("./Palette").then((found) => ({ default: found.Palette })));
const Keys = lazy(() => import("./KeyboardHelp"));

const close = (): void => overlay.set(null);

export function Shell({ children }: { readonly children: ReactNode }): ReactNode {
  const open = useStore(drawer);
  const over = useStore(overlay);
  useKeys();
  useSwipe();
  return (
    <div className="app">
      <Rail />
      <main id="main" tabIndex={-1}>
        <div className={`shell ${open ? "with-drawer" : ""}`}>
          {children}
          {open && <Drawer />}
        </div>
      </main>
      <Toasts />
      <Suspense>
        {over === "palette" && <Palette onClose={close} />}
        {over === "keys" && <Keys onClose={close} />}
        {over !== null && typeof over === "object" && <WhyDialog {...over.why} onClose={close} />}
      </Suspense>
    </div>
  );
}

const WORDS = { connecting: "Connecting", live: "Live", reconnecting: "Recon­necting", offline: "Offline" } as const;

function Rail(): ReactNode {
  const [place] = useLocation();
  const state = useStore(connection).state;
  const last = useStore(lastSession);
  const inbox = knownValue(useInbox());
  const unread = useSessions(false).rows.reduce(
    (sum, row) => sum + (place === `/s/${row.id}` ? 0 : (row.unread ?? 0)),
    0,
  );
  const cards = inbox?.entries.filter((entry) => entry.stream.startsWith("card/")).length ?? 0;
  const phone = useMedia("(max-width: 720px)");
  const chats = last && !phone ? `/s/${last}` : "/s";
  return (
    <nav className="rail" aria-label="Main">
      <a
        className="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the content
      </a>
      <Link className="logo" href="/home" aria-label="Holdfast home">
        <Logo />
      </Link>
      <Entry to="/home" icon="home" word="Home" here={place === "/home"} count={inbox?.total ?? 0} what="need you" />
      <Entry
        to={chats}
        icon="chat"
        word="Chats"
        here={place.startsWith("/s/") || place === "/s"}
        count={unread}
        what="unread"
      />
      <Entry to="/tasks" icon="tasks" word="Tasks" here={place.startsWith("/tasks")} count={0} what="" />
      <Entry to="/board" icon="board" word="Board" here={place.startsWith("/board")} count={cards} what="need you" />
      <Entry to="/settings" icon="settings" word="Settings" here={place.startsWith("/settings")} count={0} what="" />
      <span className="grow" />
      <button className="theme" type="button" onClick={switchTheme}>
        <Icon name="theme" />
        <span>Theme</span>
      </button>
      <span className={`conn ${state}`} role="status">
        <i />
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
  count,
  what,
}: {
  readonly to: string;
  readonly icon: string;
  readonly word: string;
  readonly here: boolean;
  readonly count: number;
  readonly what: string;
}): ReactNode {
  return (
    <Link href={to} aria-current={here ? "page" : undefined}>
      <Icon name={icon} />
      <span>{word}</span>
      {count > 0 && (
        <b className="count">
          <span className="sr">, </span>
          {count > 99 ? "99+" : count}
          <span className="sr"> {what}</span>
        </b>
      )}
    </Link>
  );
}
