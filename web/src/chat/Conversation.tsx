import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { connection } from "../api/connection";
import { leaveSession, markSeen } from "../api/cursors";
import { call, newId } from "../api/http";
import { knownValue, lastContact, useHeard } from "../api/known";
import { type LiveSession, liveSession } from "../api/liveSession";
import { useLooking } from "../api/looking";
import { useStore } from "../api/store";
import type { TaskView } from "../api/types.gen";
import { placeOf, type SessionView, stateOf } from "../log/model";
import { useIsExternal } from "../settings/queries";
import { DrawerButton } from "../shell/drawer";
import { span } from "../text";
import { Bar } from "../ui/Bar";
import { Button, buttonClass } from "../ui/Button";
import { visible } from "../ui/blocks";
import { Chip } from "../ui/Chip";
import { Empty, Loading } from "../ui/Empty";
import { useTitle } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { AsOfTime } from "../ui/Known";
import line from "../ui/line.module.css";
import shared from "../ui/shared.module.css";
import { sessionState } from "../ui/states";
import { toastError } from "../ui/toasts";
import { AgentButton } from "./AgentButton";
import { AgentFacts } from "./AgentFacts";
import { type Missed, spliceIndex, useAway } from "./away";
import { BackToChats } from "./BackToChats";
import { Banners } from "./Banner";
import { Composer, Outbox } from "./Composer";
import styles from "./Conversation.module.css";
import { type Acts, Entry, type FlowItem } from "./Entry";
import entry from "./Entry.module.css";
import { FindBar } from "./FindBar";
import { Flow, type FlowHandle } from "./Flow";
import flowStyles from "./Flow.module.css";
import { InContext } from "./InContext";
import { asTheyHappened } from "./itemOrder";
import { modeInForce } from "./modes";
import { NextReset, ResetNotice } from "./NextReset";
import pane from "./pane.module.css";
import { useSessionTasks } from "./queries";
import { SessionMenu } from "./SessionMenu";
import { TasksOfCalls } from "./ToolCard";

/** Links of our own push, and that is no hashchange. */
const MOVED = ["hashchange", "pushState"] as const;

export function Conversation({
  id,
  bare = false,
}: {
  readonly id: string;
  /** The page around it has a bar of its own. */
  readonly bare?: boolean;
}): ReactNode {
  const live = useMemo(() => liveSession(id), [id]);
  useEffect(() => live.read(), [live]);
  const gone = useStore(live.gone);
  const loaded = useStore(live.view).version > 0;
  const heard = useHeard();
  if (gone) {
    return (
      <section className={pane.pane} aria-label="Conversation">
        {!bare && (
          <Bar>
            <h1>Not here</h1>
          </Bar>
        )}
        <Empty
          title="This session no longer exists"
          action={
            <Link className={buttonClass()} href="/home">
              Go to Home
            </Link>
          }
        >
          {gone}
        </Empty>
        <div className={flowStyles.flow}>
          <div className={flowStyles.inner}>
            <Outbox session={id} />
          </div>
        </div>
      </section>
    );
  }
  if (loaded) return <Open live={live} bare={bare} />;
  return (
    <section className={pane.pane} aria-label="Conversation">
      {!bare && (
        <Bar>
          <BackToChats />
        </Bar>
      )}
      <div className={pane.banners}>
        <Banners />
      </div>
      {heard ? (
        <Loading />
      ) : (
        <>
          <Empty title="Not known while offline">
            This browser has not read this session. It is shown when the gateway answers; nothing is lost.
          </Empty>
          <Outbox session={id} />
        </>
      )}
    </section>
  );
}

function Open({ live, bare }: { readonly live: LiveSession; readonly bare: boolean }): ReactNode {
  const view = useStore(live.view);
  const away = useAway(live);
  const connected = useStore(connection).state === "live"; // both lines: one may come back later than the other
  const flow = useRef<FlowHandle>(null);
  const [atEnd, setAtEnd] = useState(true);
  const [marked, setMarked] = useState<number | null>(null);
  const [, go] = useLocation();
  const title = visible(view.title) || "New session";
  useTitle(title);

  const jump = useCallback((version: number) => {
    setMarked(version);
    flow.current?.toVersion(version);
  }, []);
  useEffect(() => {
    if (marked === null) return;
    const timer = setTimeout(() => setMarked(null), 2000);
    return () => clearTimeout(timer);
  }, [marked]);

  // The address may name an event or a run that has not come yet; once there, nobody is taken back to it.
  const wanted = useRef(true);
  const follow = useCallback((): void => {
    if (wanted.current === false && !location.pathname.endsWith(live.id)) return; // on the way to another page
    const known = live.view.get();
    const [, run = "", plain = ""] = /^#(?:run-(\d+)|(\d+))$/.exec(location.hash) ?? [];
    const version = run ? (known.runs[Number(run)] ?? Infinity) : Number(plain);
    wanted.current = version > known.version;
    if (version > 0 && !wanted.current) jump(version);
  }, [jump, live]);
  useEffect(() => {
    if (wanted.current && view.version > 0) follow();
  }, [follow, view.version]);
  useEffect(() => {
    for (const kind of MOVED) window.addEventListener(kind, follow);
    return () => {
      for (const kind of MOVED) window.removeEventListener(kind, follow);
    };
  }, [follow]);

  // Read is what stands on the screen of somebody who can see it.
  useEffect(() => {
    const mark = (): void => {
      if (away.ready && atEnd && document.visibilityState === "visible" && connected) markSeen(live.id, view.version);
    };
    mark();
    document.addEventListener("visibilitychange", mark);
    return () => document.removeEventListener("visibilitychange", mark);
  }, [away.ready, atEnd, connected, live.id, view.version]);
  useLooking(`session/${live.id}`);
  // When this session was last looked at: "while away" begins there.
  const looking = away.ready && connected;
  useEffect(() => {
    if (!looking) return;
    const leave = (): void => {
      if (document.visibilityState === "hidden") leaveSession(live.id);
    };
    const hide = (): void => leaveSession(live.id);
    document.addEventListener("visibilitychange", leave);
    window.addEventListener("pagehide", hide);
    return () => {
      document.removeEventListener("visibilitychange", leave);
      window.removeEventListener("pagehide", hide);
      if (document.visibilityState === "visible") leaveSession(live.id);
    };
  }, [looking, live.id]);

  const acts = useMemo(
    (): Acts => ({
      fork: (version) =>
        void call("POST /v1/sessions/{id}/fork", { path: { id: live.id }, body: { version } }).then(
          ({ session }) => go(`/s/${session}`),
          toastError,
        ),
      repeat: async (turn, text) => {
        const body = text === undefined ? { turn } : { turn, text };
        try {
          await call("POST /v1/sessions/{id}/repeat", { path: { id: live.id }, body, key: newId() });
        } catch (error) {
          toastError(error);
          throw error;
        }
        flow.current?.toEnd();
      },
    }),
    [live.id, go],
  );

  const missed = away.missed;
  const { items, calls } = useWithTasks(view);
  const openKey = view.items[view.wait ?? -1]?.key;
  const spliceAt = spliceIndex(items, missed);
  const markedAt = marked === null ? -1 : placeOf(items, marked);
  const mode = modeInForce(view);
  const agent = useMemo(
    () => ({ profile: view.profile, model: view.model, cwd: view.cwd, mode }),
    [view.profile, view.model, view.cwd, mode],
  );
  const repeatable = useRepeatable(view);
  const render = (item: FlowItem, index: number): ReactNode => {
    const isAway = missed !== null && spliceAt >= 0 && index >= spliceAt && item.version <= missed.upTo;
    return [
      missed !== null && index === spliceAt && <Splice key="splice" missed={missed} />,
      <Entry
        key={item.key}
        item={item}
        session={live.id}
        agent={agent}
        open={openKey === item.key}
        away={isAway}
        marked={index === markedAt}
        undoable={item.version > 0 && item.version === view.resets.at(-1)}
        repeatable={repeatable(item)}
        acts={acts}
      />,
    ];
  };
  const empty = view.items.length === 0 && view.queue.length === 0;
  return (
    <section className={pane.pane} aria-label="Conversation">
      {!bare && <ConversationBar view={view} title={title} />}
      <div className={pane.banners}>
        <Banners
          missed={away.shown ? missed : null}
          onJump={() => missed && jump(missed.first)}
          onDismiss={away.dismiss}
        />
        <ResetNotice id={live.id} />
      </div>
      <FindBar items={view.items} onJump={jump} />
      <TasksOfCalls value={calls}>
        <Flow key={live.id} ref={flow} items={items} onEnd={setAtEnd} render={render}>
          <Outbox session={live.id} />
          {empty && (
            <Empty title="An empty session">
              Describe what to do. The agent keeps working when you close this tab.
              <AgentFacts agent={agent} />
            </Empty>
          )}
          {view.turn?.suspended && (
            <p className={`${line.line} ${entry.entry} ${entry.meta}`}>
              <Chip state={sessionState("suspended", null)} />{" "}
              <span>It continues automatically when the gateway is back.</span>
            </p>
          )}
        </Flow>
      </TasksOfCalls>
      {!atEnd && (
        <Button className={styles.newer} onClick={() => flow.current?.toEnd()}>
          <Icon name="down" />
          To the end
        </Button>
      )}
      <Announcer live={live} missed={away.shown ? (missed?.messages ?? 0) : 0} />
      <Composer
        key={live.id}
        view={view}
        onSent={() => {
          away.dismiss();
          flow.current?.toEnd();
        }}
      />
    </section>
  );
}

function ConversationBar({ view, title }: { readonly view: SessionView; readonly title: string }): ReactNode {
  const heard = useHeard();
  const wait = view.items[view.wait ?? -1];
  const waits = stateOf(view) === "waiting" && wait?.kind === "wait" && wait.purpose !== "retry";
  return (
    <Bar>
      <BackToChats />
      <h1 className={`${shared.cut} ${styles.title}`} dir="auto" data-least="96">
        {title}
      </h1>
      <span className={`${shared.notOnPhone} ${styles.state}`}>
        <Chip state={sessionState(stateOf(view), null)} {...(waits ? { word: "Waiting for you" } : {})} />{" "}
        {!heard && <AsOfTime at={lastContact() || (view.items.at(-1)?.at ?? 0)} />}
      </span>
      <span className={shared.grow} />
      <NextReset id={view.session} />
      <span className={styles.context}>{heard && <InContext view={view} />}</span>
      <span className={styles.facts}>
        <AgentButton view={view} />
      </span>
      <DrawerButton />
      <SessionMenu view={view} />
    </Bar>
  );
}

function Splice({ missed }: { readonly missed: Missed }): ReactNode {
  return (
    <article className={`${line.line} ${line.away} ${styles.splice}`} data-kind="splice">
      <span className={styles.spliceKnot}>
        <Icon name="splice" />
      </span>
      <div>Received while away · {span(missed.from, missed.until)}</div>
    </article>
  );
}

/** The items, with what went to the background where it began or where its end was noted; the tasks of the calls. */
function useWithTasks(view: SessionView): {
  readonly items: readonly FlowItem[];
  readonly calls: ReadonlyMap<string, TaskView>;
} {
  const tasks = knownValue(useSessionTasks(view.session));
  const calls = useMemo(
    () => new Map((tasks ?? []).filter((task) => task.call !== "").map((task) => [task.call, task])),
    [tasks],
  );
  const items = useMemo(() => {
    const shown = asTheyHappened(view);
    if (tasks === undefined || tasks.length === 0) return shown;
    const byId = new Map(tasks.map((task) => [task.id, task]));
    // The last note of each task.
    const noted = new Map(view.items.map((item) => [item.kind === "note" ? item.task : "", item.key]));
    const found: FlowItem[] = shown.map((item) => {
      const task = item.kind === "note" && noted.get(item.task) === item.key ? byId.get(item.task) : undefined;
      return task ? { kind: "background", key: item.key, version: item.version, at: item.at, task } : item;
    });
    const traces = tasks.filter(
      (task) => !task.foreground && task.call === "" && task.worker !== view.session && !noted.has(task.id),
    );
    for (const task of traces.sort((a, b) => a.started_at - b.started_at)) {
      const trace: FlowItem = { kind: "background", key: `t${task.id}`, version: 0, at: task.started_at, task };
      const after = found.findIndex((item) => item.at > task.started_at);
      found.splice(after < 0 ? found.length : after, 0, trace);
    }
    return found;
  }, [view, tasks]);
  return { items, calls };
}

/** Which turns can be repeated: those that the model sees, while nothing runs. */
function useRepeatable(view: SessionView): (item: FlowItem) => boolean {
  const undone = useMemo(
    () => new Set(view.items.flatMap((item) => (item.kind === "end" && item.undone ? [item.turn] : []))),
    [view.items],
  );
  const isExternal = useIsExternal(view.profile);
  const rests =
    !isExternal && view.turn === null && view.queue.length === 0 && view.run === 0 && !view.compaction.trying;
  const since = view.resets.at(-1) ?? 0;
  return (item) => {
    if (!rests || item.version < since) return false;
    if (item.kind === "end") return !undone.has(item.turn);
    return item.kind === "person" && !undone.has(item.message.turn ?? 0);
  };
}

/** What a screen reader hears: the state, then finished messages, never the stream. */
function Announcer({ live, missed }: { readonly live: LiveSession; readonly missed: number }): ReactNode {
  const view = useStore(live.view);
  const state = stateOf(view);
  const last = view.items.findLast((item) => item.kind === "step" && !item.live && item.text);
  const first = useRef(last?.version ?? 0);
  const text = last?.kind === "step" && last.version > first.current ? last.text.slice(0, 200) : "";
  return (
    <div className={shared.srOnly} aria-live="polite">
      {state === "running" ? `${view.profile} is working` : text}
      {missed > 0 ? ` ${missed} received while away` : ""}
    </div>
  );
}
