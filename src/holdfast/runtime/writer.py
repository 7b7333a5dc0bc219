"""The pen: the right to write what is done on one session, and the care that writing needs."""

from __future__ import annotations

import asyncio
import logging

from holdfast.clock import Clock, wait_for_event
from holdfast.domain.errors import Conflict, Fenced, Unavailable
from holdfast.domain.events import AnyEvent, session_stream
from holdfast.domain.events.chapter import CompactionStarted
from holdfast.domain.events.session import InputsJoined, TurnFinished, TurnStarted
from holdfast.domain.next_step import Finish, Partial, closing_events
from holdfast.domain.session import Session
from holdfast.runtime.streaming_text import StreamingTexts
from holdfast.sessions import Sessions
from holdfast.store.contract import Append, Lease, Store, Write
from holdfast.tasks.log import TaskLog

RETRY_SECONDS = 1.0
log = logging.getLogger(__name__)


class SessionWriter:
    """Writes under a lease; when the disk is full it waits with the ink still wet."""

    def __init__(
        self,
        store: Store,
        *,
        sessions: Sessions,
        task_log: TaskLog,
        streaming: StreamingTexts,
        clock: Clock,
        lease: Lease,
        leaving: asyncio.Event,
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._task_log = task_log
        self._streaming = streaming
        self._clock = clock
        self._lease = lease
        self._leaving = leaving

    async def refresh(self, session: Session) -> None:
        """Catch up with what was said meanwhile."""
        await self._sessions.get(session.id)

    async def write(self, session: Session, *events: AnyEvent) -> None:
        """Append and fold. A cancelled worker still finishes the write that it began.

        What takes messages out of the queue, or covers turns, is written only if nothing was said meanwhile.
        """
        if not events:
            return
        task = asyncio.create_task(self._append(session, events, session.version))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await task
            raise

    async def write_unless_changed(self, session: Session, event: AnyEvent) -> None:
        """Append only if nobody said anything since the last look."""
        write = Write(session_stream(session.id), (event,), expect=session.version)
        try:
            appended = await self._store.append(Append((write,), self._clock.now(), lease=self._lease))
        except Fenced:
            raise
        except Conflict:
            await self.refresh(session)
        else:
            self._sessions.apply(appended.records)

    async def _append(self, session: Session, events: tuple[AnyEvent, ...], before: int) -> None:
        takes = isinstance(events[0], TurnStarted | InputsJoined | CompactionStarted)
        ends = any(isinstance(event, TurnFinished) for event in events)
        while True:
            # what takes messages or covers turns, and what ends a turn, must not miss what was said just now
            expect = before if takes else session.version if ends else None
            write = Write(session_stream(session.id), events, expect=expect)
            writes = (write, *await self._task_log.companion_writes(session, events))
            try:
                appended = await self._store.append(Append(writes, self._clock.now(), lease=self._lease))
            except Fenced:
                raise
            except Conflict:
                await self.refresh(session)  # something was said, or who was to be told of a task's end was deleted
                if takes and session.version != before:
                    return None  # look again at what is next
                if len(writes) == 1 and not ends:
                    raise
            except Unavailable:
                if await wait_for_event(self._leaving, within=RETRY_SECONDS):
                    raise  # a gateway that says goodbye does not wait for a sick disk
                if await self._is_stored(write, before):  # the commit was in doubt, and it had happened
                    return await self.refresh(session)
            else:
                self._sessions.apply(appended.records)
                if session.version < appended.version:  # somebody was reading, or something was said meanwhile
                    await self.refresh(session)
                return None

    async def _is_stored(self, write: Write, before: int) -> bool:
        """Whether it is in the log: all or nothing, so its first event tells; words may stand around it."""
        records = await self._store.load(write.stream, after=before)
        return write.events[0] in [record.event for record in records]

    async def finish(self, session: Session, finish: Finish) -> None:
        """End the turn; of an answer that is cut by it, what had arrived is kept."""
        stream = session_stream(session.id)
        streaming = self._streaming.get(stream)
        partial = Partial(streaming.text, streaming.thinking) if streaming is not None else Partial()
        self._streaming.end(stream)
        await self.write(session, *closing_events(session, finish, partial, now=self._clock.now()))

    async def save_partial(self, session: Session) -> None:
        """Keep the text so far where a crash cannot reach it."""
        stream = session_stream(session.id)
        streaming = self._streaming.get(stream)
        if streaming is not None:
            try:
                await self._store.save_partial(self._lease, streaming.partial(at=self._clock.now()))
            except Unavailable as error:
                log.warning("the text so far of %s was not saved: %s", stream, error)
