"""The runner: starts one worker per session that has something to do, at the start and on every input."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from holdfast.clock import Clock, elapsed
from holdfast.domain.errors import HeldElsewhere, HoldfastError, Unavailable
from holdfast.domain.events import SYSTEM, session_stream
from holdfast.domain.events.problem import Problem
from holdfast.domain.next_step import Advance, Finish, Partial, Rest, closing_events, session_step
from holdfast.domain.placement import Placement
from holdfast.domain.resume import NO_BREAK, Break
from holdfast.domain.session import Session, Turn
from holdfast.domain.summary import failed_summary
from holdfast.nodes import Nodes
from holdfast.periodic import FollowerState
from holdfast.runtime.agents import Agents
from holdfast.runtime.drivers import Driver, Events
from holdfast.runtime.drivers.builtin import BuiltinDriver, MissingDriver
from holdfast.runtime.moves import WakeSession, break_of, why_bound
from holdfast.runtime.turn import SessionWorker
from holdfast.runtime.work_time import BEAT_SECONDS, HeartbeatFile, WorkTime
from holdfast.runtime.writer import SessionWriter, StreamingTexts
from holdfast.sessions import Sessions
from holdfast.store.contract import Store
from holdfast.store.log_follower import LogFollower, growing_pause
from holdfast.store.reads import SessionCursor, TaskFilter
from holdfast.store.rows import NodeRow
from holdfast.tasks.log import TaskLog
from holdfast.timings import USUAL, RuntimeTimings

HOLDER = f"gateway {os.getpid()}"
RESUME_AT_ONCE = 8
"""How many open turns are resumed at the same time after a start."""
WAKING = frozenset(
    {"InputReceived", "InputRevised", "InputWithdrawn", "StopRequested", "WaitAnswered", "SummaryRequested"}
)
FREEING = frozenset({"NodeDrained", "NodeEnded", "NodeChosen"})
"""What frees sessions that another node worked on."""
WAKE_SECONDS = 5.0
DriverFactory = Callable[[SessionWriter, Clock], Driver]
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerFailure:
    """The failure of a session's last worker; another one starts when the timer is over."""

    reason: str
    failures: int
    pause: float
    at: int
    timer: asyncio.TimerHandle


class Runner:
    """Starts a worker for every session that needs one."""

    def __init__(
        self,
        store: Store,
        *,
        sessions: Sessions,
        task_log: TaskLog,
        streaming: StreamingTexts,
        agents: Agents,
        clock: Clock,
        heartbeat: HeartbeatFile | None = None,
        timings: RuntimeTimings = USUAL.runtime,
    ) -> None:
        self._timings = timings
        self._store = store
        self._sessions = sessions
        self._task_log = task_log
        self._streaming = streaming
        self._agents = agents
        self._clock = clock
        self._heartbeat = heartbeat
        self._nodes = Nodes(store, task_log.profiles)
        self.drivers: dict[str, DriverFactory] = {BuiltinDriver.name: BuiltinDriver}
        """Drivers by their name in `SessionCreated.driver`. More are added before `start`."""
        self._work_time = WorkTime()
        self._beating: asyncio.Task[None] | None = None
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._taken_over: set[str] = set()
        """Sessions that another node left to this one: they are not handed on, since nodes may disagree about them."""
        self._failures: dict[str, WorkerFailure] = {}
        self._at_rest: dict[str, int] = {}
        """By session: the version at which it was open and had nothing to do, since it waits for a person."""
        self._to_resume: dict[str, None] = {}
        """Open sessions that have no worker yet, in order."""
        self._resuming: asyncio.Task[None] | None = None
        self._follower = LogFollower(
            store,
            self._react,
            wanted=_wakes,
            name="the runner",
            sweep=self.sweep,
            sweep_seconds=timings.sweep,
            elsewhere=self._wakes_here,
        )
        self._leaving = asyncio.Event()

    @property
    def working(self) -> list[str]:
        """The sessions that have a worker now."""
        return list(self._workers)

    @property
    def state(self) -> FollowerState:
        """The health of the log follower."""
        return self._follower.state

    def last_failure(self, session: str) -> WorkerFailure | None:
        """Return the failure of a session's last worker, while it waits for the next one."""
        return None if session in self._workers else self._failures.get(session)

    async def start(self) -> None:
        """Resume everything that is open, a few turns at a time, then follow the log."""
        try:
            await self.sweep()
        except Unavailable as error:  # the follower's own sweep tries again
            log.warning("the open sessions could not be read yet: %s", error)
        await self._follower.start()
        self._beating = asyncio.create_task(self._beat())

    async def stop(self) -> None:
        """Stop every worker; their turns are resumed at the next start."""
        self._leaving.set()
        for failure in self._failures.values():
            failure.timer.cancel()
        tasks = [*self._workers.values()]
        tasks += [task for task in (self._resuming, self._beating) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(self._follower.stop(), *tasks, return_exceptions=True)

    async def hand_over(self) -> list[str]:
        """Suspend the turns that other nodes can continue; return the sessions that must go on here."""
        for session, worker in [*self._workers.items()]:
            if (await self._sessions.get(session)).driver == BuiltinDriver.name:
                worker.cancel()
                await asyncio.gather(worker, return_exceptions=True)
        return self.working

    def wake(self, session: str) -> None:
        """Start a worker for this session; if it has one, another one follows."""
        if self._leaving.is_set():
            return
        self._to_resume.pop(session, None)
        if session in self._workers:
            self._again.add(session)
            return
        if (failure := self._failures.get(session)) is not None:
            failure.timer.cancel()
        task = asyncio.create_task(self._work_with_retry(session), name=f"worker {session}")
        self._workers[session] = task
        task.add_done_callback(lambda _: self._ended(session))

    def take_over(self, session: str) -> None:
        """Start a worker for a session that another node left to this one."""
        self._taken_over.add(session)
        self.wake(session)

    def _ended(self, session: str) -> None:
        del self._workers[session]
        if session in self._again:
            self._again.discard(session)
            self.wake(session)

    def _wakes_here(self, stream: str, kind: str) -> bool:
        """Whether this node reacts to what another one has written: that one is the first to claim a free session."""
        return kind in FREEING or (_wakes(stream, kind) and self._store.holds_stream(stream))

    async def _react(self, stream: str, _kinds: set[str]) -> None:
        if stream == SYSTEM:
            await self.sweep()
        else:
            self.wake(stream.removeprefix("session/"))

    async def sweep(self) -> None:
        """Start workers for open sessions that have none, here or on another node."""
        rows = await self._store.unclaimed_sessions(node=self._store.node)
        versions = {row.id: row.version for row in rows}
        self._at_rest = {id: seen for id, seen in self._at_rest.items() if versions.get(id) == seen}
        for id in versions:
            if not (id in self._workers or id in self._at_rest or id in self._failures):
                self._to_resume[id] = None
        if self._to_resume and (self._resuming is None or self._resuming.done()):
            self._resuming = asyncio.create_task(self._resume_pending())

    async def _resume_pending(self) -> None:
        """Resume a few turns at a time: many requests at once would run into the limits of providers."""
        while self._to_resume and not self._leaving.is_set():
            some = [*self._to_resume][:RESUME_AT_ONCE]
            for id in some:
                self.wake(id)
            await asyncio.wait([self._workers[id] for id in some], timeout=self._timings.resume)

    async def _beat(self) -> None:
        """Store a sign of life every few seconds while there are workers."""
        while self._heartbeat is not None:
            if self._workers:
                await asyncio.to_thread(self._heartbeat.beat)
            await asyncio.sleep(BEAT_SECONDS)

    async def _measure_break(self, session: Session, before: NodeRow | None) -> Break:
        """Return for how long no worker worked on an open turn, as far as that is known."""
        if session.turn is None:
            return NO_BREAK
        if before is not None and before.name != self._store.node:
            return break_of(before)
        if (failure := self._failures.get(session.id)) is not None:
            return Break(elapsed(self._clock, failure.at), f"its worker ended: {failure.reason.rstrip('.')}")
        away = None if self._heartbeat is None else self._heartbeat.away_ms()
        signs = await self._signs_of_commands(session, session.turn) if session.turn.open_calls else []
        return Break(away, command_ms=min((elapsed(self._clock, sign) for sign in signs), default=None))

    async def _signs_of_commands(self, session: Session, turn: Turn) -> list[int]:
        """Return when the commands that the turn waits for ended, or now: they run without a gateway."""
        of_session = TaskFilter(session=session.id, foreground=True)
        rows = await self._store.tasks(of_session, before=SessionCursor(), limit=len(turn.open_calls))
        rows = [row for row in rows if row.call in turn.open_calls]
        ended = [row.finished_at for row in rows if row.finished_at is not None]
        alive = [self._clock.now() for row in rows if row.state == "running" and _is_there(row.pid)]
        return ended + alive

    async def _work_with_retry(self, session_id: str) -> None:
        """Run a worker for a session; after an error start another one, after a growing pause."""
        try:
            await self._prepare_worker(session_id)
        except HeldElsewhere:
            self._failures.pop(session_id, None)  # it is that node's business; a sweep finds it when it is free
        except Exception as error:
            self._failed(session_id, error)
        else:
            self._failures.pop(session_id, None)
        finally:
            self._taken_over.discard(session_id)

    def _failed(self, session: str, error: Exception) -> None:
        before = self._failures.get(session)
        failures = 1 if before is None else before.failures + 1
        pause = growing_pause(failures, first=self._timings.retry)
        words = error.message if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}"
        unexpected = None if isinstance(error, HoldfastError) else error
        log.warning("worker of %s ended, another one starts in %g s: %s", session, pause, words, exc_info=unexpected)
        timer = asyncio.get_running_loop().call_later(pause, self.wake, session)
        self._failures[session] = WorkerFailure(words, failures, pause, self._clock.now(), timer)
        if self._leaving.is_set():
            timer.cancel()

    async def _prepare_worker(self, session_id: str) -> None:
        session = await self._sessions.get(session_id)
        writer = SessionWriter(
            self._store,
            session,
            sessions=self._sessions,
            streaming=self._streaming,
            clock=self._clock,
            holder=HOLDER,
            leaving=self._leaving,
            timings=self._timings,
        )
        before = await self._store.lease_holder(session_stream(session_id)) if self._store.is_shared else None
        if before is not None and before.ended_at is None and before.name != self._store.node:
            raise HeldElsewhere(f"Node {before.name} works on {session_stream(session_id)}.")
        if not await self._may_work_on(session, before):
            return
        driver = self._driver(writer)
        died = session.chapter.in_progress is not None  # the last worker, while it wrote a summary
        if not died and await self._is_at_rest(session, driver):
            if session.activity != "idle":
                self._at_rest[session_id] = session.version
            self._try_again_later(session)
            return
        left = None
        if session.turn is not None or session.chapter.in_progress is not None:
            await writer.take_lease()  # an earlier worker is fenced before what it left is read
            await writer.refresh()
            left = await self._store.partial(session_stream(session_id))
        partial = Partial() if left is None else Partial(left.text, left.thinking, left.at)
        await self._run_worker(writer, driver, partial, before)
        self._try_again_later(writer.session)

    async def _may_work_on(self, session: Session, before: NodeRow | None) -> bool:
        """Return whether this node may work on a session. If not, it is left to a node that may."""
        if await why_bound(session, before, node=self._store.node):
            return False
        is_ours = before is not None and before.ended_at is None
        last = session.home if before is None else before.name
        is_drained = self._store.is_draining and session.driver == BuiltinDriver.name
        if not is_drained:
            if is_ours and session.turn is not None:
                return True  # the turn ends where it is at work
            asks = self._nodes.placement(session.profile, session.node)
            if asks.is_free and last in ("", self._store.node):
                return True
        placement = await self._nodes.of_session(session, before)
        if not is_drained and await self._nodes.fits_here(placement):
            return True
        if is_ours and not placement.bound_to:  # else the lease says where its directory is
            await self._store.give_back(session_stream(session.id))
            session = await self._sessions.get(session.id)  # other nodes left messages before that to us
        if session.activity != "idle" and session.id not in self._taken_over:
            await self._wake_on_another_node(session.id, placement)
        return False

    async def _wake_on_another_node(self, session: str, placement: Placement) -> None:
        """Wake a session on the node that may work on it and works on the fewest; a sweep there finds it if we fail."""
        fitting = [node.name for node in await self._nodes.all() if node.takes_work and placement.fits(node)]
        if self._store.exchange is None or not fitting:
            return
        busy = Counter(work.node for work in await self._store.work_of_nodes())
        node = min(fitting, key=lambda name: (busy[name], name))
        with suppress(HoldfastError):
            await self._store.exchange.ask(node, msgspec.msgpack.encode(WakeSession(session)), within=WAKE_SECONDS)

    def _driver(self, writer: SessionWriter) -> Driver:
        make = self.drivers.get(writer.session.driver)
        return MissingDriver(writer, self._clock, known=[*self.drivers]) if make is None else make(writer, self._clock)

    async def _is_at_rest(self, session: Session, driver: Driver) -> bool:
        agent, now = await self._agents.of(session), self._clock.now()
        step = session_step(session, agent.limits, now=now, joins=driver.joins)
        return isinstance(driver.next(session, agent, now=now) if isinstance(step, Advance) else step, Rest)

    def _try_again_later(self, session: Session) -> None:
        """Wake the session when its failed summary is due; after a restart, that happens at the next turn's end."""
        failed, now = session.chapter.failed, self._clock.now()
        if session.activity == "idle" and failed is not None and (failed.retry_at or 0) > now:
            seconds = ((failed.retry_at or 0) - now) / 1000
            asyncio.get_running_loop().call_later(seconds, self.wake, session.id)

    async def _run_worker(self, writer: SessionWriter, driver: Driver, left: Partial, before: NodeRow | None) -> None:
        with self._store.subscribe(session_stream(writer.session.id)) as changes:
            worker = SessionWorker(
                writer,
                driver,
                changes=changes,
                agents=self._agents,
                task_log=self._task_log,
                clock=self._clock,
                work_time=self._work_time,
                plan_seconds=self._timings.plan,
            )
            try:
                await worker.run(left, await self._measure_break(writer.session, before))
            except (asyncio.CancelledError, HoldfastError):
                raise
            except Exception as error:  # a bug must not leave a turn that seems to be running
                log.exception("worker of %s failed", writer.session.id)
                await writer.refresh()
                session = writer.session
                if session.turn is None and session.chapter.in_progress is None:
                    raise  # no turn is open that could fail: another worker tries
                await self._fail(writer, error)

    async def _fail(self, writer: SessionWriter, error: Exception) -> None:
        """Fail the open turn or summary."""
        while not await writer.commit(Events(), await self._failure(writer, error), at=self._clock.now()):
            pass  # the session or its task has changed meanwhile

    async def _failure(self, writer: SessionWriter, error: Exception) -> Events:
        session, found = writer.session, Events()
        what, hint = f"{type(error).__name__}: {error}", "`holdfast logs` has the details."
        if (trying := session.chapter.in_progress) is not None:
            problem = Problem(code="internal", message=f"An internal error ended the summary: {what}", hint=hint)
            found.session.append(failed_summary(trying, problem, retry_at=None))
        if session.turn is not None:
            message = f"An internal error ended this turn: {what}"
            problem = Problem(code="internal", message=message, hint=hint)
            finish = Finish(session.turn.number, "failed", message, problem)
            found.companions += await self._task_log.turn_finished(session, finish)
            found.session += closing_events(session, finish, writer.end_text(), now=self._clock.now())
        return found


def _is_there(pid: int | None) -> bool:
    return Path(f"/proc/{pid}").exists()


def _wakes(stream: str, kind: str) -> bool:
    return kind in FREEING or (kind in WAKING and stream.startswith("session/"))
