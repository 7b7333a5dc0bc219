"""The writer of a session's worker: appends under the lease, once, also when the disk is full or a commit is in doubt.

Facts (what happened) are always stored. Decisions (what follows from them) only if nobody wrote to the session since
they were made: else the facts are stored alone, and the worker plans again. The text so far of a running step is not an
event: it is in memory, and the store keeps a copy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from holdfast.clock import Clock, wait_for_event
from holdfast.domain.errors import Conflict, Fenced, HeldElsewhere, Unavailable, VersionConflict
from holdfast.domain.events import session_stream
from holdfast.domain.next_step import Partial
from holdfast.domain.session import Session
from holdfast.runtime.drivers import Events
from holdfast.sessions import Sessions
from holdfast.store.contract import Append, Appended, Lease, Store, Write
from holdfast.store.rows import PartialText
from holdfast.timings import RuntimeTimings

T = TypeVar("T")
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
        """The text so far; empty when nothing is being streamed."""
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
        if self._lease is None:
            raise self._begun_elsewhere()
        if not self._store.holds(self._lease):
            raise Fenced(f"Another node may work on {self._stream}: the lease was not renewed in time.")

    async def refresh(self) -> None:
        """Catch up with the log."""
        self.session = await self._read(lambda: self._sessions.get(self.session.id))

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
            if self._lease is None and (self.session.turn or self.session.chapter.in_progress):
                raise self._begun_elsewhere() from None
            return False
        return True

    async def _append(self, events: Events, at: int, *, expect: int | None, planned: Session | None = None) -> None:
        before = self.session
        write = Write(self._stream, tuple(events.session), expect=expect)
        claim = "" if self._lease is not None else self._holder
        append = first = Append((write, *events.companions), at, lease=self._lease, claim=claim)
        while True:
            conflict: VersionConflict | None = None
            try:
                appended = await self._store.append(append)
            except Unavailable:
                if not await self._may_try_again():
                    raise
            except VersionConflict as error:
                if append is first:
                    raise
                conflict = error  # perhaps with an earlier try, whose commit was in doubt and came late
            else:
                return await self._catch_up(appended, planned)
            version = await self._version_without(write, after=before.version)
            if version is None:
                if self._lease is not None:
                    return await self.refresh()
                await self.take_lease()
                await self.refresh()
                if self.session.version != before.version + len(write.events):
                    raise self._begun_elsewhere()
                return None
            if conflict is not None and append.writes[0].expect in (expect, version):
                raise conflict
            again = Write(self._stream, write.events, expect=version if expect is None else expect)
            append = replace(append, writes=(again, *events.companions))

    def _begun_elsewhere(self) -> Fenced:
        """Without the lease: another worker may have begun the turn, and another one must pick up what it left."""
        return Fenced(f"Another worker has begun to work on {self._stream}.")

    async def _version_without(self, write: Write, *, after: int) -> int | None:
        """Return the version of the session as long as a write in doubt is not in the log; None once it is.

        Its commit may come later than this look, so whoever writes it again binds it to this version. Its first event
        is enough, since an append is atomic.
        """
        records = await self._read(lambda: self._store.load(write.stream, after=after))
        if write.events[0] in [record.event for record in records]:
            return None
        return records[-1].version if records else after

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        """Read, as soon as the store is there; what the worker is doing continues meanwhile."""
        while True:
            try:
                return await read()
            except Unavailable:
                if not await self._may_try_again():
                    raise

    async def _catch_up(self, appended: Appended, planned: Session | None) -> None:
        self._lease = appended.lease or self._lease
        if planned is not None and planned.version == appended.version:
            self.session = self._sessions.adopt(planned)
        else:
            self._sessions.apply(appended.records)
            await self.refresh()

    async def _may_try_again(self) -> bool:
        """Wait a while; return False at once when the gateway ends, since that does not wait for a broken disk."""
        return not await wait_for_event(self._leaving, within=self.timings.append_retry)

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
