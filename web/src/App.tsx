import { lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import { Redirect, Route, Switch, useLocation, useParams } from "wouter";
import { Conversation } from "./chat/Conversation";
import { SessionList } from "./chat/SessionList";
import { useCell } from "./net/cell";
import { checkBuild } from "./net/build";
import { lastSession, loadCursors } from "./net/cursors";
import { Refused, request, whenSignedOut } from "./net/http";
import { queries, useSessions } from "./net/queries";
import { followWorld } from "./net/world";
import { Broken } from "./parts/Broken";
import { Empty, Loading } from "./parts/Empty";
import { SignIn } from "./pages/SignIn";
import { Shell } from "./shell/Shell";
import { newSession } from "./chat/newSession";
import { Banners } from "./chat/Banner";

const pages = {
  home: () => import("./pages/Home"),
  tasks: () => import("./tasks/TasksPage"),
  task: () => import("./tasks/TaskPage"),
  settings: () => import("./pages/Settings"),
};
const Home = lazy(pages.home);
const Tasks = lazy(pages.tasks);
const Task = lazy(pages.task);
const Settings = lazy(pages.settings);

/** The other pages, while there is a gateway to get them from. */
function fetchRest(): void {
  for (const page of [...Object.values(pages), () => import("./shell/Palette"), () => import("./parts/Markdown")]) {
    page().catch(() => undefined);
  }
}

type Door = "asking" | "in" | "out" | "away";

export function App({ problem }: { readonly problem: string }): ReactNode {
  const [door, setDoor] = useState<Door>("asking");
  useEffect(() => {
    whenSignedOut(() => setDoor("out"));
    if (door !== "asking") return;
    const knock = async (): Promise<void> => {
      try {
        await request("GET /v1/status");
        await loadCursors();
        setDoor("in");
      } catch (error) {
        if (!(error instanceof Refused && error.status === 401)) setTimeout(() => void knock(), 1000);
      }
    };
    void knock();
  }, [door]);
  useEffect(() => {
    if (door !== "in") return;
    void checkBuild();
    setTimeout(fetchRest, 1500);
    const leave = followWorld();
    return () => void leave.then((close) => close());
  }, [door]);
  const [place] = useLocation();
  useOpened();
  if (door === "out") return <SignIn problem={problem} onDone={() => { queries.clear(); setDoor("asking"); }} />;
  if (door !== "in") return <Loading />;
  return (
    <Shell>
      <Broken place={place}><Suspense fallback={<Loading />}>
        <Switch>
          <Route path="/"><First /></Route>
          <Route path="/home"><Home /></Route>
          <Route path="/s"><Chat id="" /></Route>
          <Route path="/s/:id"><ChatOf /></Route>
          <Route path="/tasks"><Tasks /></Route>
          <Route path="/tasks/:id"><TaskOf /></Route>
          <Route path="/settings/:section?"><Settings /></Route>
          <Route><Empty title="There is no such page">The address may be mistyped.</Empty></Route>
        </Switch>
      </Suspense></Broken>
    </Shell>
  );
}

/** `/` is the session that this device looked at last. */
function First(): ReactNode {
  const last = useCell(lastSession);
  return <Redirect to={last ? `/s/${last}` : "/home"} replace />;
}

function ChatOf(): ReactNode {
  const { id = "" } = useParams();
  return <Chat id={id} />;
}

function TaskOf(): ReactNode {
  const { id = "" } = useParams();
  return <Task key={id} id={id} />;
}

function Chat({ id }: { readonly id: string }): ReactNode {
  const [, go] = useLocation();
  const none = useSessions(false).data?.sessions.length === 0;
  return (
    <div className={`chat ${id ? "in-conv" : "in-list"}`}>
      <SessionList current={id} />
      {id ? <Conversation key={id} id={id} /> : (
        <section className="conv" aria-label="Conversation">
          <Banners />
          <Empty title={none ? "Begin with a session" : "Choose a session"} action={<button type="button" className="btn primary" onClick={() => void newSession(go)}>New session</button>}>
            A session is a conversation with an agent. Close this tab whenever you like: the work goes on.
          </Empty>
        </section>
      )}
    </div>
  );
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
