import { lazy, type ReactNode, Suspense, useEffect, useRef } from "react";
import { Link, useLocation } from "wouter";
import { useCell } from "../net/cell";
import { line } from "../net/link";
import { lastSession } from "../net/cursors";
import { useInbox, useSessions } from "../net/queries";
import { Icon, Logo } from "../parts/Icon";
import { Toasts } from "../parts/toasts";
import { newSession } from "../chat/newSession";
import { Drawer, drawer, toggleDrawer } from "./drawer";
import { floating } from "./floating";
import { switchTheme } from "./theme";

const Palette = lazy(() => import("./Palette").then((found) => ({ default: found.Palette })));
const Keys = lazy(() => import("./Palette").then((found) => ({ default: found.Keys })));

export function Shell({ children }: { readonly children: ReactNode }): ReactNode {
  const open = useCell(drawer);
  const over = useCell(floating);
  useKeys();
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
        {over === "palette" && <Palette onClose={() => floating.set(null)} />}
        {over === "keys" && <Keys onClose={() => floating.set(null)} />}
      </Suspense>
    </div>
  );
}

const WORDS = { connecting: "Connecting", live: "Live", reconnecting: "Recon­necting", offline: "Offline" } as const;

function Rail(): ReactNode {
  const [place] = useLocation();
  const state = useCell(line).state;
  const last = useCell(lastSession);
  const waits = useInbox().data?.waits.length ?? 0;
  const unread = useSessions(false).data?.sessions.reduce((sum, row) => sum + (place === `/s/${row.id}` ? 0 : (row.unread ?? 0)), 0) ?? 0;
  const phone = matchMedia("(max-width: 720px)").matches;
  const chats = last && !phone ? `/s/${last}` : "/s";
  return (
    <nav className="rail" aria-label="Main">
      <a className="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the content</a>
      <Link className="logo" href="/home" aria-label="Holdfast home"><Logo /></Link>
      <Entry to="/home" icon="home" word="Home" here={place === "/home"} count={waits} what="need you" />
      <Entry to={chats} icon="chat" word="Chats" here={place.startsWith("/s/") || place === "/s"} count={unread} what="unread" />
      <Entry to="/tasks" icon="tasks" word="Tasks" here={place.startsWith("/tasks")} count={0} what="" />
      <Entry to="/settings" icon="settings" word="Settings" here={place.startsWith("/settings")} count={0} what="" />
      <span className="grow" />
      <button className="theme" type="button" onClick={switchTheme}><Icon name="theme" /><span>Theme</span></button>
      <span className={`conn ${state}`} role="status"><i />{WORDS[state]}</span>
    </nav>
  );
}

function Entry({ to, icon, word, here, count, what }: {
  readonly to: string; readonly icon: string; readonly word: string; readonly here: boolean; readonly count: number; readonly what: string;
}): ReactNode {
  return (
    <Link href={to} aria-current={here ? "page" : undefined}>
      <Icon name={icon} /><span>{word}</span>
      {count > 0 && <b className="count"><span className="sr">, </span>{count > 99 ? "99+" : count}<span className="sr"> {what}</span></b>}
    </Link>
  );
}

/** Single letters rest while a field has focus. */
function useKeys(): void {
  const [, go] = useLocation();
  const leader = useRef(0);
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const at = event.target as HTMLElement;
      if (event.key === "Escape" && drawer.get() && !event.defaultPrevented && !document.querySelector("dialog[open]")) {
        if (!at.closest("textarea")) toggleDrawer(false);
        return;
      }
      if ((event.ctrlKey || event.metaKey) && event.key === "k") {
        event.preventDefault();
        floating.set("palette");
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || at.closest("input, textarea, select, dialog, [contenteditable]")) return;
      if (Date.now() - leader.current < 1200) {
        leader.current = 0;
        const to = ({ h: "/home", c: "/s", t: "/tasks", s: "/settings" } as Readonly<Record<string, string>>)[event.key];
        if (to) go(to);
        return;
      }
      if (event.key === "g") leader.current = Date.now();
      else if (event.key === "t") toggleDrawer();
      else if (event.key === "?") floating.set("keys");
      else if (event.key === "j" || event.key === "k") nextRow(event.key === "j" ? 1 : -1);
      else if (event.key === "n") void newSession(go);
      else if (event.key === "m") [...document.querySelectorAll<HTMLElement>(".banner.online button")].at(0)?.click();
      else if (event.key === "/") {
        event.preventDefault();
        document.querySelector<HTMLElement>("[data-search]")?.focus();
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [go]);
}

/** The session or task after or before the focused one. */
function nextRow(step: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>(".sess > a, td a.task")];
  const here = rows.findIndex((row) => row === document.activeElement || row.getAttribute("aria-current") === "page");
  rows[(here + step + rows.length) % Math.max(1, rows.length)]?.focus();
}
