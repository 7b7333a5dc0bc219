"""The writer of a session's worker: appends under the lease, once, also when the disk is full or a commit is in doubt.

Facts (what happened) are always stored. Decisions (what follows from them) only if nobody wrote to the session since
they were made: else the facts are stored alone, and the worker plans again. The text so far of a running step is not an
event: it is in memory, and the store keeps a copy.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from holdfast.clock import Clock, wait_for_event
from holdfast.domain.errors import Conflict, Fenced, HeldElsewhere, Unavailable
from holdfast.domain.events import session_stream
from holdfast.domain.next_step import Partial
from holdfast.domain.session import Session
from holdfast.runtime.drivers import Events
from holdfast.sessions import Sessions
from holdfast.store.contract import Append, Lease, Store, Write
from holdfast.store.rows import PartialText
from holdfast.timings import RuntimeTimings

log = logging.getLogger(__name__)


@dataclass(slots=True)
class StreamingText:
    """What has arrived of one step's answer. Followers remember how much of it they have sent."""

    turn: int
    step: int
    since: int
    """The version of the request that it answers: it is not sent before that event."""
    text: str = ""
    thinking: str = ""

    def partial(self, *, at: int) -> PartialText:
        """Return it as it is stored."""
        return PartialText(self.turn, self.step, self.text, self.thinking, at)


class StreamingTexts:
    """The running step of each stream, if any."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._texts: dict[str, StreamingText] = {}

    def get(self, stream: str) -> StreamingText | None:
        """The text so far."""
        return self._texts.get(stream)

    def arrived(self, stream: str) -> Partial:
        """The text so far; empty when nothing is being said."""
        found = self._texts.get(stream)
        return Partial() if found is None else Partial(found.text, found.thinking)

    def start(self, stream: str, *, turn: int, step: int, since: int) -> None:
        """Begin to stream the answer of a step."""
        self._texts[stream] = StreamingText(turn, step, since)

    def append(self, stream: str, *, text: str, thinking: str) -> None:
        """Add a piece of text, and wake the followers of the stream."""
        streaming = self._texts[stream]
        streaming.text += text
        streaming.thinking += thinking
        self._store.hint(stream)

    def end(self, stream: str) -> None:
        """End the stream: the answer is in the log, or was interrupted."""
        self._texts.pop(stream, None)


class SessionWriter:
    """Appends the events of one worker to its session."""

    def __init__(
        self,
        store: Store,
        session: Session,
        *,
        sessions: Sessions,
        streaming: StreamingTexts,
        clock: Clock,
        holder: str,
        leaving: asyncio.Event,
        timings: RuntimeTimings,
    ) -> None:
        self.timings = timings
        self.session = session
        """The newest snapshot that is known."""
        self._store = store
        self._stream = session_stream(session.id)
        self._sessions = sessions
        self._streaming = streaming
        self._clock = clock
        self._holder = holder
        self._leaving = leaving
        self._lease: Lease | None = None
        self._arrived = Partial()
        """The text so far of the last answer when it was ended."""

    async def take_lease(self) -> None:
        """Take the lease now. Without this the first commit takes it."""
        self._lease = await self._store.claim(self._stream, holder=self._holder)

    def check_lease(self) -> None:
        """Fenced if other nodes may work on this session by now: no effect must begin."""
        if self._lease is not None and not self._store.holds(self._lease):
            raise Fenced(f"Another node may work on {self._stream}: the lease was not renewed in time.")

    async def refresh(self) -> None:
        """Catch up with the log."""
        self.session = await self._sessions.get(self.session.id)

    async def commit(
        self, facts: Events, decisions: Events | None = None, *, at: int, planned: Session | None = None
    ) -> bool:
        """Append, and return whether the decisions were stored. A cancelled worker still finishes the write.

        `planned` is the session after all of them, so that they need not be folded again.
        """
        if not facts and not decisions:
            return True
        writing = asyncio.create_task(self._commit(facts, decisions or Events(), at, planned))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await writing
            raise

    async def _commit(self, facts: Events, decisions: Events, at: int, planned: Session | None) -> bool:
        if not decisions:
            await self._append(facts, at, expect=None, planned=planned)
            return True
        both = Events([*facts.session, *decisions.session], [*facts.companions, *decisions.companions])
        try:
            await self._append(both, at, expect=self.session.version, planned=planned)
        except (Fenced, HeldElsewhere):
            raise
        except Conflict:  # the session, or a stream of the companions, has changed
            if facts:
                await self._append(facts, at, expect=None)
            await self.refresh()
            return False
        return True

    async def _append(self, events: Events, at: int, *, expect: int | None, planned: Session | None = None) -> None:
        before = self.session
        write = Write(self._stream, tuple(events.session), expect=expect)
        claim = "" if self._lease is not None else self._holder
        append = Append((write, *events.companions), at, lease=self._lease, claim=claim)
        while True:
            try:
                appended = await self._store.append(append)
            except Unavailable:
                if await wait_for_event(self._leaving, within=self.timings.append_retry):
                    raise  # a shutdown does not wait for a broken disk
                if not await self._is_stored(write, before.version):
                    continue
                if self._lease is None:  # the commit was in doubt and had happened
                    await self.take_lease()
                return await self.refresh()
            self._lease = appended.lease or self._lease
            if planned is not None and planned.version == appended.version == before.version + len(write.events):
                self.session = self._sessions.adopt(planned)
            else:
                self._sessions.apply(appended.records)
                await self.refresh()
            return None

    async def _is_stored(self, write: Write, before: int) -> bool:
        """Return whether a write in doubt is in the log; its first event is enough, since an append is atomic."""
        records = await self._store.load(write.stream, after=before)
        return write.events[0] in [record.event for record in records]

    # --- the text so far ------------------------------------------------------------------------

    def start_text(self, *, turn: int, step: int) -> None:
        """Begin to stream the text of an answer."""
        self._arrived = Partial()
        self._streaming.start(self._stream, turn=turn, step=step, since=self.session.version)

    def add_text(self, text: str, thinking: str) -> None:
        """Send a piece of the text to the followers of the session."""
        self._streaming.append(self._stream, text=text, thinking=thinking)

    def end_text(self) -> Partial:
        """End the stream, and return the text so far; also when it was ended before."""
        if self._streaming.get(self._stream) is not None:
            self._arrived = self._streaming.arrived(self._stream)
            self._streaming.end(self._stream)
        return self._arrived

    async def save_text(self) -> None:
        """Store the text so far, so that it survives a crash."""
        text = self._streaming.get(self._stream)
        if text is None or self._lease is None:
            return
        try:
            await self._store.save_partial(self._lease, text.partial(at=self._clock.now()))
        except Unavailable as error:
            log.warning("the text so far of %s was not saved: %s", self._stream, error)
