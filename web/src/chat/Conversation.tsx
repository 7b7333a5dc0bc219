import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { connection } from "../api/connection";
import { flushSeen, markSeen } from "../api/cursors";
import { call } from "../api/http";
import { type LiveSession, liveSession } from "../api/liveSession";
import { useStore } from "../api/store";
import { type Item, placeOf, stateOf } from "../log/model";
import { DrawerButton } from "../shell/TasksDrawer";
import { clock } from "../text";
import { visible } from "../ui/blocks";
import { Chip } from "../ui/Chip";
import { Empty, Loading } from "../ui/Empty";
import { useTitle } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { sessionState } from "../ui/states";
import { toastError } from "../ui/toasts";
import { useAway } from "./away";
import { Banners } from "./Banner";
import { Composer, Outbox } from "./Composer";
import { Entry } from "./Entry";
import { FindBar } from "./FindBar";
import { Flow, type FlowHandle } from "./Flow";
import { InContext } from "./InContext";
import { NextReset, ResetNotice } from "./NextReset";
import { SessionMenu } from "./SessionMenu";

/** Links of our own push, and that is no hashchange. */
const MOVED = ["hashchange", "pushState"] as const;

export function Conversation({ id }: { readonly id: string }): ReactNode {
  const live = useMemo(() => liveSession(id), [id]);
  useEffect(() => live.read(), [live]);
  const gone = useStore(live.gone);
  const loaded = useStore(live.view).version > 0;
  if (gone) {
    return (
      <section className="conv" aria-label="Conversation">
        <div className="bar">
          <h1>Not here</h1>
        </div>
        <Empty
          title="This session no longer exists"
          action={
            <Link className="btn" href="/home">
              Go to Home
            </Link>
          }
        >
          {gone}
        </Empty>
        <div className="flow">
          <div className="flow-in">
            <Outbox session={id} />
          </div>
        </div>
      </section>
    );
  }
  return loaded ? (
    <Open live={live} />
  ) : (
    <section className="conv" aria-label="Conversation">
      <div className="bar" />
      <Loading />
    </section>
  );
}

function Open({ live }: { readonly live: LiveSession }): ReactNode {
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
    if (wanted.current) follow();
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
  useEffect(() => flushSeen, [live.id]);

  const fork = useCallback(
    (version: number) => {
      void call("POST /v1/sessions/{id}/fork", { path: { id: live.id }, body: { version } }).then(
        ({ session }) => go(`/s/${session}`),
        toastError,
      );
    },
    [live.id, go],
  );

  const missed = away.missed;
  const openWait = view.wait;
  const spliceAt = missed ? placeOf(view.items, missed.first) : -1;
  const markedAt = marked === null ? -1 : placeOf(view.items, marked);
  const state = sessionState(stateOf(view), null);
  const render = (item: Item, index: number): ReactNode => {
    const isAway = missed !== null && spliceAt >= 0 && index >= spliceAt && item.version <= missed.upTo;
    const splice = isAway && index === spliceAt;
    return [
      splice && (
        <div key="splice" className="line away splice">
          <span className="knot cut-here">
            <Icon name="splice" />
          </span>
          <div>
            Received while away · {clock(missed.from)} – {clock(missed.until)}
          </div>
        </div>
      ),
      <Entry
        key={item.key}
        item={item}
        session={live.id}
        open={openWait === index}
        away={isAway}
        marked={index === markedAt}
        undoable={item.version === view.resets.at(-1)}
        onFork={fork}
      />,
    ];
  };
  const waits = stateOf(view) === "waiting";
  return (
    <section className="conv" aria-label="Conversation">
      <div className="bar">
        <Link className="btn quiet icon phone" href="/s" aria-label="Back to chats">
          <Icon name="left" />
        </Link>
        <h1 className="cut">{title}</h1>
        <span className="wide">
          <Chip
            state={state}
            {...(waits && view.items[openWait ?? -1]?.kind === "wait" ? { word: "Waiting for you" } : {})}
          />
        </span>
        <span className="grow" />
        <NextReset id={live.id} />
        <InContext view={view} />
        <span className="faint wide cut">
          {[view.profile, view.model].filter((word, at, all) => word && all.indexOf(word) === at).join(" · ")}
        </span>
        <DrawerButton />
        <SessionMenu view={view} />
      </div>
      <div className="banners">
        <Banners
          missed={away.shown ? missed : null}
          onJump={() => missed && jump(missed.first)}
          onDismiss={away.dismiss}
        />
        <ResetNotice id={live.id} />
      </div>
      <FindBar items={view.items} onJump={jump} />
      <Flow key={live.id} ref={flow} items={view.items} onEnd={setAtEnd} render={render}>
        <Outbox session={live.id} />
        {view.items.length === 0 && view.queue.length === 0 && (
          <Empty title="An empty session">Describe what to do. The agent keeps working when you close this tab.</Empty>
        )}
        {view.turn?.suspended && (
          <p className="line entry meta">
            <Chip state={sessionState("suspended", null)} />{" "}
            <span>It continues automatically when the gateway is back.</span>
          </p>
        )}
      </Flow>
      {!atEnd && (
        <button type="button" className="btn newer" onClick={() => flow.current?.toEnd()}>
          <Icon name="down" />
          To the end
        </button>
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

/** What a screen reader hears: the state, then finished messages, never the stream. */
function Announcer({ live, missed }: { readonly live: LiveSession; readonly missed: number }): ReactNode {
  const view = useStore(live.view);
  const state = stateOf(view);
  const last = view.items.findLast((item) => item.kind === "step" && !item.live && item.text);
  const first = useRef(last?.version ?? 0);
  const text = last?.kind === "step" && last.version > first.current ? last.text.slice(0, 200) : "";
  return (
    <div className="sr" aria-live="polite">
      {state === "running" ? `${view.profile} is working` : text}
      {missed > 0 ? ` ${missed} received while away` : ""}
    </div>
  );
}
