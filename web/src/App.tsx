import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import { Redirect, Route, Switch, useLocation, useParams } from "wouter";
import { checkBuild } from "./api/build";
import { startOffline } from "./api/connection";
import { lastSession, loadCursors } from "./api/cursors";
import { status } from "./api/endpoints";
import { Refused, whenSignedOut } from "./api/http";
import { forgetSessions } from "./api/liveSession";
import { keepPushes } from "./api/notify";
import { queryClient } from "./api/queryClient";
import { dropSnapshot, keepSnapshot, restoreSnapshot } from "./api/snapshot";
import { useStore } from "./api/store";
import { ChatPage, loadNewSession } from "./chat/ChatPage";
import { SignIn } from "./settings/SignIn";
import { followEvents } from "./shell/liveUpdates";
import { NotFound } from "./shell/NotFound";
import { Shell } from "./shell/Shell";
import { Empty, Loading } from "./ui/Empty";
import { ErrorBoundary } from "./ui/ErrorBoundary";
import { fetchParts } from "./ui/lazyPart";

const pages = {
  home: () => import("./home/HomePage"),
  board: () => import("./board/BoardPage"),
  tasks: () => import("./tasks/TasksPage"),
  task: () => import("./tasks/TaskPage"),
  settings: () => import("./settings/SettingsPage"),
  newSession: loadNewSession,
};
const Home = lazy(pages.home);
const Board = lazy(pages.board);
const CardAnywhere = lazy(() => pages.board().then((found) => ({ default: found.CardAnywhere })));
const Tasks = lazy(pages.tasks);
const Task = lazy(pages.task);
const Settings = lazy(pages.settings);

/** The other pages, while there is a gateway to get them from. */
function fetchRest(): void {
  for (const page of [...Object.values(pages), () => import("./shell/Palette"), () => import("./ui/Markdown")]) {
    page().catch(() => undefined);
  }
  fetchParts();
}

/** Asking the gateway who we are; in; in with what was known, because it does not answer; signed out. */
type Access = "asking" | "in" | "offline" | "out";

export function App({ problem }: { readonly problem: string }): ReactNode {
  const [access, setAccess] = useState<Access>("asking");
  const [from, setFrom] = useState(0);
  const [silent, setSilent] = useState(false);
  const [said, setSaid] = useState(problem);
  const wasIn = useRef(false);
  useEffect(
    () =>
      whenSignedOut(() => {
        if (wasIn.current) setSaid("This browser was signed out. Agents and commands keep running.");
        void dropSnapshot();
        setAccess("out");
      }),
    [],
  );
  useEffect(() => {
    if (access !== "asking" && access !== "offline") return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let left = false;
    const ask = async (): Promise<void> => {
      try {
        const { seq } = await status();
        await loadCursors();
        if (left) return;
        wasIn.current = true;
        setFrom(seq);
        setAccess("in");
        if (access === "offline") void queryClient.invalidateQueries();
      } catch (error) {
        if (left || (error instanceof Refused && error.status === 401)) return;
        const lastLive = access === "asking" ? await restoreSnapshot() : 0;
        if (left) return;
        if (lastLive > 0) {
          startOffline(lastLive);
          return setAccess("offline");
        }
        setSilent(true);
        timer = setTimeout(() => void ask(), 1000);
      }
    };
    void ask();
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [access]);
  useEffect(() => {
    if (access !== "in") return;
    void checkBuild();
    keepPushes();
    const rest = setTimeout(fetchRest, 1500);
    const leave = followEvents(from);
    const stopKeeping = keepSnapshot();
    return () => {
      clearTimeout(rest);
      leave();
      stopKeeping();
    };
  }, [access, from]);
  const signedIn = (): void => {
    queryClient.clear();
    forgetSessions();
    setSaid("");
    setAccess("asking");
  };
  const [place] = useLocation();
  useOpened();
  if (access === "out") return <SignIn problem={said} onDone={signedIn} />;
  if (access === "asking")
    return silent ? (
      <Empty title="The gateway does not respond">
        This page asks every second. Turns are paused until it starts; commands keep running. Start it with{" "}
        <code>holdfast serve</code>.
      </Empty>
    ) : (
      <Loading />
    );
  return (
    <Shell>
      <ErrorBoundary place={place}>
        <Suspense fallback={<Loading />}>
          <Switch>
            <Route path="/">
              <First />
            </Route>
            <Route path="/home">
              <Home />
            </Route>
            <Route path="/s">
              <ChatPage id="" />
            </Route>
            <Route path="/s/:id">
              <ChatOf />
            </Route>
            <Route path="/new">
              <ChatPage id="" isNew />
            </Route>
            <Route path="/board/:name?/:card?">
              <BoardOf />
            </Route>
            <Route path="/card/:id">
              <CardOf />
            </Route>
            <Route path="/tasks">
              <Tasks />
            </Route>
            <Route path="/tasks/:id">
              <TaskOf />
            </Route>
            <Route path="/settings/:section?">
              <Settings />
            </Route>
            <Route path="/chats">
              <Redirect to="/s" replace />
            </Route>
            <Route>
              <NotFound />
            </Route>
          </Switch>
        </Suspense>
      </ErrorBoundary>
    </Shell>
  );
}

/** `/` is the session that this device looked at last. */
function First(): ReactNode {
  const last = useStore(lastSession);
  return <Redirect to={last ? `/s/${last}` : "/home"} replace />;
}

function ChatOf(): ReactNode {
  const { id = "" } = useParams();
  return <ChatPage id={id} />;
}

function BoardOf(): ReactNode {
  const { name = "", card = "" } = useParams();
  return <Board name={name} card={card} />;
}

function CardOf(): ReactNode {
  const { id = "" } = useParams();
  return <CardAnywhere id={id} />;
}

function TaskOf(): ReactNode {
  const { id = "" } = useParams();
  return <Task key={id} id={id} />;
}

/** A notification was clicked. */
function useOpened(): void {
  const [, go] = useLocation();
  useEffect(() => {
    const opened = (event: MessageEvent<{ open?: string }>): void => {
      if (event.data?.open?.startsWith("/")) go(event.data.open);
    };
    navigator.serviceWorker?.addEventListener("message", opened);
    return () => navigator.serviceWorker?.removeEventListener("message", opened);
  }, [go]);
}
