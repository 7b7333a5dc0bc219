"""The text that other nodes are generating, for clients of this node who watch.

While somebody watches a session whose turn runs elsewhere, the pieces that its node saves are read a few times a
second, for all such sessions in one query. Nothing is read while nobody watches, or where there is one gateway only.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.domain.errors import HoldfastError
from holdfast.runtime.writer import StreamingText
from holdfast.store.contract import Store
from holdfast.store.rows import TextPiece

log = logging.getLogger(__name__)


@dataclass(slots=True)
class RemoteText:
    """What was read of the text of a step."""

    text: StreamingText
    """`since` distinguishes one try of a step from the next."""
    pieces: int = 0
    version: int = 0
    """The version of the session at which the step was still running."""


class RemoteTexts:
    """The running steps of other nodes that somebody watches here."""

    def __init__(self, store: Store, every: float) -> None:
        self._store = store
        self._every = every
        self._watchers: Counter[str] = Counter()
        self._running: set[str] = set()
        """Watched streams whose turn may be running elsewhere."""
        self._texts: dict[str, RemoteText] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self, stream: str | None) -> Iterator[None]:
        """While somebody follows a stream."""
        if stream is None or not self._store.is_shared:
            yield
            return
        self._watchers[stream] += 1
        try:
            yield
        finally:
            self._watchers[stream] -= 1
            if not self._watchers[stream]:
                del self._watchers[stream]
                self._forget(stream)

    def get(self, stream: str, *, after: int) -> StreamingText | None:
        """Return the text so far, for a client that has every event up to a version and none after it.

        Only then is it certain that the answer itself was not sent yet.
        """
        if not self._store.is_shared or stream not in self._watchers or self._store.holds_stream(stream):
            return None
        self._running.add(stream)
        if self._task is None:
            self._task = asyncio.create_task(self._keep_reading(), name="texts of other nodes")
        found = self._texts.get(stream)
        return found.text if found is not None and found.version == after else None

    async def close(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep_reading(self) -> None:
        while self._running:
            try:
                await self._read()
            except Exception as error:  # whatever it is, the next text may be readable
                known = isinstance(error, HoldfastError)
                log.warning("texts of other nodes could not be read: %s", error, exc_info=None if known else error)
            await asyncio.sleep(self._every)
        self._task = None

    async def _read(self) -> None:
        asked = {stream: known.pieces if (known := self._texts.get(stream)) else 0 for stream in self._running}
        found: dict[str, list[TextPiece]] = {}
        for piece in await self._store.running_texts(asked):
            found.setdefault(piece.stream, []).append(piece)
        for stream in asked:
            if stream not in found or stream not in self._watchers:
                self._forget(stream)
            elif self._add(stream, found[stream]):
                self._store.hint(stream)

    def _add(self, stream: str, pieces: list[TextPiece]) -> bool:
        """Add pieces to a text; return whether there is something new."""
        first = pieces[0]
        if first.number is None:  # nothing was said yet
            self._texts.pop(stream, None)
            return False
        known = self._texts.get(stream)
        place = (first.turn, first.step, first.at)
        if known is None or place != (known.text.turn, known.text.step, known.text.since):
            if known is not None and known.pieces and len(pieces) < (pieces[-1].number or 0) + 1:
                del self._texts[stream]  # another step, of which the first pieces were not asked for
                return False
            known = self._texts[stream] = RemoteText(StreamingText(*place))
        new = [piece for piece in pieces if (piece.number or 0) >= known.pieces]
        for piece in new:
            known.text.text += piece.text
            known.text.thinking += piece.thinking
        is_news = bool(new) or known.version != first.version
        known.pieces, known.version = known.pieces + len(new), first.version
        return is_news

    def _forget(self, stream: str) -> None:
        self._running.discard(stream)
        self._texts.pop(stream, None)
