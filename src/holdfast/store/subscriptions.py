"""Subscriptions to commits. A notice is a hint only: the log says what happened.

Lives on the event loop; the writer posts one notice per commit. Since a notice may be lost, followers of a
single stream are woken now and then; followers of all streams sweep (`log_follower.py`).
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from types import TracebackType
from typing import Self

from holdfast.domain.events import session_stream, task_stream
from holdfast.domain.events.system import SessionDeleted
from holdfast.domain.events.task import TaskPruned
from holdfast.store.contract import Subscription, Wanted
from holdfast.store.decisions import NewEvent
from holdfast.timings import USUAL

RECENT_LINES, RECENT_LINE_BYTES = 32, 4_096
"""For each followed stream: at most 128 KB."""


class LogSubscription(Subscription):
    """Follows one stream, or with `None` all of them."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        stream: str | None,
        wanted: Wanted | None,
        elsewhere: Wanted | None,
    ) -> None:
        self._subscriptions = subscriptions
        self._stream = stream
        self._wanted = wanted
        self._elsewhere = elsewhere or wanted
        self._next: asyncio.Future[None] | None = None
        self._changed: dict[str, set[str]] = {}

    def next(self) -> asyncio.Future[None]:
        if self._next is None or self._next.cancelled():
            self._next = asyncio.get_running_loop().create_future()
            if self._changed:
                self._next.set_result(None)
        return self._next

    async def wait(self) -> None:
        if not self._changed:
            await asyncio.shield(self.next())

    def drain(self) -> dict[str, set[str]]:
        changed, self._changed = self._changed, {}
        if changed:
            self._next = None
        return changed

    def notice(self, stream: str, kind: str | None, *, elsewhere: bool = False) -> None:
        """Called when something was committed, here or by another node; None is a hint."""
        wanted = self._elsewhere if elsewhere else self._wanted
        if wanted is not None and kind is not None and not wanted(stream, kind):
            return
        kinds = self._changed.setdefault(stream, set())
        if kind is not None:
            kinds.add(kind)
        if self._next is not None and not self._next.done():
            self._next.set_result(None)

    def __enter__(self) -> Self:
        self._subscriptions.followers[self._stream].add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        followers = self._subscriptions.followers[self._stream]
        followers.discard(self)
        if not followers:
            del self._subscriptions.followers[self._stream]
            if self._stream is not None:
                self._subscriptions.recent.forget(self._stream)


class RecentLines:
    """The newest stored lines of followed streams: what was just committed need not be read back."""

    def __init__(self) -> None:
        self._streams: dict[str, tuple[int, list[bytes]]] = {}
        """Of each stream the version of its first line here, and the lines."""

    def add(self, stream: str, version: int, line: bytes) -> None:
        """Keep one more; too many, or one that is large, push the earlier ones out."""
        first, lines = self._streams.get(stream, (version, []))
        if first + len(lines) != version or len(lines) >= RECENT_LINES or len(line) > RECENT_LINE_BYTES:
            first, lines = version, []
            self._streams[stream] = first, lines
        if len(line) <= RECENT_LINE_BYTES:
            lines.append(line)
            self._streams[stream] = first, lines

    def after(self, stream: str, version: int) -> tuple[bytes, ...]:
        """The lines behind a version of a stream; none if they are not all here."""
        first, lines = self._streams.get(stream, (0, []))
        return tuple(lines[version + 1 - first :]) if 0 < first <= version + 1 else ()

    def is_last(self, stream: str, version: int) -> bool:
        """Whether the last line that was added has this version."""
        first, lines = self._streams.get(stream, (0, []))
        return bool(lines) and first + len(lines) == version + 1

    def forget(self, stream: str) -> None:
        """Forget a stream that has no followers, or was deleted."""
        self._streams.pop(stream, None)


class Subscriptions:
    """All followers, by stream."""

    def __init__(self, *, sweep_seconds: float = USUAL.store.sweep) -> None:
        self.followers: defaultdict[str | None, set[LogSubscription]] = defaultdict(set)
        self.recent = RecentLines()
        self.ticked = threading.Event()
        """For the search index, which follows from a thread of its own."""
        self._sweep_seconds = sweep_seconds
        self._sweep: asyncio.TimerHandle | None = None

    def follow(
        self, stream: str | None, wanted: Wanted | None = None, elsewhere: Wanted | None = None
    ) -> LogSubscription:
        """A subscription that begins when it is entered."""
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(self._sweep_seconds, self._wake_all)
        return LogSubscription(self, stream, wanted, elsewhere)

    def committed(self, stored: list[NewEvent]) -> None:
        """Wake the followers of the streams of these events."""
        self.ticked.set()
        for new in stored:
            stream, kind = new.record.stream, type(new.record.event).__name__
            if followers := self.followers.get(stream):
                self.recent.add(stream, new.record.version, new.data)
                for follower in followers:
                    follower.notice(stream, kind)
            match new.record.event:
                case SessionDeleted(session=session):
                    self.recent.forget(session_stream(session))
                case TaskPruned(task=task):
                    self.recent.forget(task_stream(task))
                case _:
                    pass
            for follower in self.followers.get(None, ()):
                follower.notice(stream, kind)

    def committed_elsewhere(self, stream: str, kind: str) -> None:
        """Another node has committed an event: wake the followers of its stream. It is to be read."""
        self.ticked.set()
        self.recent.forget(stream)
        for followed in (stream, None):
            for follower in self.followers.get(followed, ()):
                follower.notice(stream, kind, elsewhere=True)

    def hint(self, stream: str) -> None:
        """Wake the followers of this stream."""
        for follower in self.followers.get(stream, ()):
            follower.notice(stream, None)

    def close(self) -> None:
        """Stop waking followers."""
        if self._sweep is not None:
            self._sweep.cancel()

    def _wake_all(self) -> None:
        for stream in [*self.followers]:
            if stream is not None:
                self.hint(stream)
        self._sweep = asyncio.get_running_loop().call_later(self._sweep_seconds, self._wake_all)
