"""Who wants to know that something was committed. A hint only: the log says what happened.

Lives on the event loop; the writer posts one notice per commit.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from types import TracebackType
from typing import Self

from holdfast.domain.events import Record
from holdfast.store.contract import Wanted


class LogSubscription:
    """One subscription; `None` follows every stream."""

    def __init__(self, tail: Subscriptions, stream: str | None, wanted: Wanted | None) -> None:
        self._tail = tail
        self._stream = stream
        self._wanted = wanted
        self._next: asyncio.Future[None] | None = None
        self._changed: dict[str, set[str]] = {}

    def next(self) -> asyncio.Future[None]:
        """A future that is done when something was committed since the last `drain`; the same one until then."""
        if self._next is None or self._next.cancelled():
            self._next = asyncio.get_running_loop().create_future()
            if self._changed:
                self._next.set_result(None)
        return self._next

    async def wait(self) -> None:
        """Return when something was committed since the last `drain`."""
        if not self._changed:
            await asyncio.shield(self.next())

    def drain(self) -> dict[str, set[str]]:
        """The streams that changed since the last call, with the kinds of their new events."""
        changed, self._changed = self._changed, {}
        if changed:
            self._next = None
        return changed

    def notice(self, stream: str, kind: str | None) -> None:
        """Called by the tail; None is a nudge."""
        if self._wanted is not None and kind is not None and not self._wanted(stream, kind):
            return
        kinds = self._changed.setdefault(stream, set())
        if kind is not None:
            kinds.add(kind)
        if self._next is not None and not self._next.done():
            self._next.set_result(None)

    def __enter__(self) -> Self:
        self._tail.followers[self._stream].add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        followers = self._tail.followers[self._stream]
        followers.discard(self)
        if not followers:
            del self._tail.followers[self._stream]


class Subscriptions:
    """All followers, by stream."""

    def __init__(self) -> None:
        self.followers: defaultdict[str | None, set[LogSubscription]] = defaultdict(set)
        self.ticked = threading.Event()
        """For the search index, which follows from a thread of its own."""

    def follow(self, stream: str | None, wanted: Wanted | None = None) -> LogSubscription:
        """A subscription that begins when it is entered."""
        return LogSubscription(self, stream, wanted)

    def committed(self, records: list[Record]) -> None:
        """Wake whoever follows these streams."""
        self.ticked.set()
        for record in records:
            kind = type(record.event).__name__
            for follower in self.followers.get(record.stream, ()):
                follower.notice(record.stream, kind)
            for follower in self.followers.get(None, ()):
                follower.notice(record.stream, kind)

    def hint(self, stream: str) -> None:
        """Wake those who follow just this stream."""
        for follower in self.followers.get(stream, ()):
            follower.notice(stream, None)
