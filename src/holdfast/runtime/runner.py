"""Who starts workers: one per session that has something to do, at the start and on every word said."""

from __future__ import annotations

import asyncio
import logging

from holdfast.domain.chapter import CompactionFailed
from holdfast.domain.errors import Fenced, HoldfastError, Unavailable
from holdfast.domain.events import session_stream
from holdfast.domain.fact import Problem
from holdfast.domain.session import Session
from holdfast.domain.step import Finish, Rest, next_step
from holdfast.runtime.archive import Archive
from holdfast.runtime.clock import Clock
from holdfast.runtime.live import Live
from holdfast.runtime.pen import Pen, happens
from holdfast.runtime.profiles import Profiles
from holdfast.runtime.sessions import Sessions
from holdfast.runtime.turn import Worker
from holdfast.store.port import Store

RETRY_SECONDS = 1.0
WAKING = frozenset(
    {"InputReceived", "InputRevised", "InputWithdrawn", "StopRequested", "WaitAnswered", "CompactionRequested"}
)
log = logging.getLogger(__name__)


class Runner:
    """Starts a worker for every session that needs one; `start` and `stop` are its whole life."""

    def __init__(
        self,
        store: Store,
        *,
        sessions: Sessions,
        archive: Archive,
        live: Live,
        profiles: Profiles,
        clock: Clock,
        holder: str,
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._archive = archive
        self._live = live
        self._profiles = profiles
        self._clock = clock
        self._holder = holder
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._watch: asyncio.Task[None] | None = None
        self._leaving = asyncio.Event()

    @property
    def working(self) -> list[str]:
        """The sessions that have a worker now."""
        return list(self._workers)

    async def start(self) -> None:
        """Go on with everything that is open, then wait for words."""
        ready = asyncio.Event()
        self._watch = asyncio.create_task(self._follow(ready))
        await ready.wait()
        for row in await self._store.sessions_at_work():
            self.wake(str(row["id"]))

    async def stop(self) -> None:
        """Suspend every worker; what they were doing goes on at the next start."""
        self._leaving.set()
        tasks = [*self._workers.values()]
        if self._watch is not None:
            tasks.append(self._watch)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self, session: str) -> None:
        """See to it that somebody looks at this session."""
        if self._leaving.is_set():
            return
        if session in self._workers:
            self._again.add(session)
            return
        task = asyncio.create_task(self._work(session), name=f"worker {session}")
        self._workers[session] = task
        task.add_done_callback(lambda _: self._ended(session))

    def _ended(self, session: str) -> None:
        del self._workers[session]
        if session in self._again:
            self._again.discard(session)
            self.wake(session)

    async def _follow(self, ready: asyncio.Event) -> None:
        with self._store.subscribe(None) as changes:
            ready.set()
            while True:
                await changes.wait()
                for stream, kinds in changes.take().items():
                    if stream.startswith("session/") and kinds & WAKING:
                        self.wake(stream.removeprefix("session/"))

    async def _work(self, session_id: str) -> None:
        stream = session_stream(session_id)
        try:
            session = await self._sessions.get(session_id)
            step = next_step(session, self._profiles.agent(session).limits, now=self._clock.now())
            if isinstance(step, Rest) and session.chapter.trying is None:  # else somebody died while at it
                self._try_again_later(session)
                return
            lease = await self._store.claim(stream, holder=self._holder)
            pen = Pen(
                self._store,
                sessions=self._sessions,
                archive=self._archive,
                live=self._live,
                clock=self._clock,
                lease=lease,
                leaving=self._leaving,
            )
            try:
                await self._run(session, pen)
            finally:
                await self._store.release(lease)
            self._try_again_later(session)
        except Fenced as error:
            log.warning("worker of %s gave up: %s", session_id, error)
        except Unavailable as error:
            log.warning("worker of %s tries again in %g s: %s", session_id, RETRY_SECONDS, error)
            if not await happens(self._leaving, within=RETRY_SECONDS):
                self._again.add(session_id)
        except HoldfastError as error:
            log.error("worker of %s stopped: %s", session_id, error)

    def _try_again_later(self, session: Session) -> None:
        """A summary that failed is tried again when its time has come; after a restart, at the next turn's end."""
        failed, now = session.chapter.failed, self._clock.now()
        if session.activity == "idle" and failed is not None and (failed.again_at or 0) > now:
            seconds = ((failed.again_at or 0) - now) / 1000
            asyncio.get_running_loop().call_later(seconds, self.wake, session.id)

    async def _run(self, session: Session, pen: Pen) -> None:
        with self._store.subscribe(session_stream(session.id)) as changes:
            worker = Worker(
                session, pen=pen, changes=changes, live=self._live, profiles=self._profiles, clock=self._clock
            )
            try:
                await worker.work(await self._store.partial(session_stream(session.id)))
            except (asyncio.CancelledError, HoldfastError):
                raise
            except Exception as error:  # a bug must not leave a turn that looks as if it were running
                log.exception("worker of %s failed", session.id)
                await self._fail(session, pen, error)

    async def _fail(self, session: Session, pen: Pen, error: Exception) -> None:
        await pen.look(session)
        what, hint = f"{type(error).__name__}: {error}", "`holdfast logs` has the details."
        if (trying := session.chapter.trying) is not None:
            problem = Problem(code="internal", message=f"An internal error ended the summary: {what}", hint=hint)
            failed = CompactionFailed(covers=trying.covers, attempt=trying.attempt, problem=problem, again_at=None)
            await pen.write(session, failed)
        if session.turn is not None:
            message = f"An internal error ended this turn: {what}"
            problem = Problem(code="internal", message=message, hint=hint)
            finish = Finish(session.turn.number, "failed", message, problem)
            await pen.finish(session, finish)
