"""The text so far of every running step: frames, not facts. In memory; the store keeps a copy."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.store.contract import Store
from holdfast.store.rows import PartialText


@dataclass(slots=True)
class StreamingText:
    """What has arrived of one step's answer. Followers remember how much of it they have sent."""

    turn: int
    step: int
    since: int
    """The version of the request that it answers: nobody hears of it before that event."""
    text: str = ""
    thinking: str = ""

    def partial(self, *, at: int) -> PartialText:
        """As the store keeps it."""
        return PartialText(self.turn, self.step, self.text, self.thinking, at)


class StreamingTexts:
    """The running step of each stream, if any."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._texts: dict[str, StreamingText] = {}

    def get(self, stream: str) -> StreamingText | None:
        """The text so far."""
        return self._texts.get(stream)

    def start(self, stream: str, *, turn: int, step: int, since: int) -> None:
        """A step begins to speak."""
        self._texts[stream] = StreamingText(turn, step, since)

    def append(self, stream: str, *, text: str, thinking: str) -> None:
        """Add a piece of text, and wake the followers of the stream."""
        streaming = self._texts[stream]
        streaming.text += text
        streaming.thinking += thinking
        self._store.hint(stream)

    def end(self, stream: str) -> None:
        """Its answer is in the log, or was cut."""
        self._texts.pop(stream, None)
