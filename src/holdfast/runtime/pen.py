"""The pen: the right to write what is done on one session, and the care that writing needs."""

from __future__ import annotations

import asyncio
import logging

from holdfast.domain.errors import Unavailable
from holdfast.domain.events import AnyEvent, session_stream
from holdfast.domain.session import Session
from holdfast.runtime.clock import Clock
from holdfast.runtime.live import Live
from holdfast.runtime.sessions import Sessions
from holdfast.store.port import Append, Lease, Store, Write

RETRY_SECONDS = 1.0
log = logging.getLogger(__name__)


class Pen:
    """Writes under a lease; when the disk is full it waits with the ink still wet."""

    def __init__(self, store: Store, sessions: Sessions, live: Live, clock: Clock, lease: Lease) -> None:
        self._store = store
        self._sessions = sessions
        self._live = live
        self._clock = clock
        self._lease = lease

    async def look(self, session: Session) -> None:
        """Catch up with what was said meanwhile."""
        await self._sessions.get(session.id)

    async def write(self, session: Session, *events: AnyEvent) -> None:
        """Append and fold. A cancelled worker still finishes the write that it began."""
        task = asyncio.create_task(self._append(session, events))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await task
            raise

    async def _append(self, session: Session, events: tuple[AnyEvent, ...]) -> None:
        write = Write(session_stream(session.id), events)
        before = session.version
        while True:
            try:
                appended = await self._store.append(Append((write,), self._clock.now(), lease=self._lease))
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS)
                if await self._written(write, before):  # the commit was in doubt, and it had happened
                    return await self.look(session)
            else:
                return self._sessions.apply(appended.records)

    async def _written(self, write: Write, before: int) -> bool:
        records = await self._store.load(write.stream, after=before)
        return tuple(record.event for record in records)[-len(write.events) :] == write.events

    async def save(self, session: Session) -> None:
        """Keep the text so far where a crash cannot reach it."""
        stream = session_stream(session.id)
        live = self._live.get(stream)
        if live is not None:
            try:
                await self._store.save_partial(self._lease, live.partial(), at=self._clock.now())
            except Unavailable as error:
                log.warning("the text so far of %s was not saved: %s", stream, error)
