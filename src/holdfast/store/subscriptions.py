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


class LogSubscription:
    """One subscription; `None` follows every stream."""

    def __init__(self, tail: Subscriptions, stream: str | None) -> None:
        self._tail = tail
        self._stream = stream
        self._event = asyncio.Event()
        self._changed: dict[str, set[str]] = {}

    async def wait(self) -> None:
        """Return when something was committed since the last `take`."""
        await self._event.wait()

    def drain(self) -> dict[str, set[str]]:
        """The streams that changed since the last call, with the kinds of their new events."""
        changed, self._changed = self._changed, {}
        self._event.clear()
        return changed

    def notice(self, stream: str, kind: str | None) -> None:
        """Called by the tail; None is a nudge."""
        kinds = self._changed.setdefault(stream, set())
        if kind is not None:
            kinds.add(kind)
        self._event.set()

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

    def follow(self, stream: str | None) -> LogSubscription:
        """A subscription that begins when it is entered."""
        return LogSubscription(self, stream)

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
