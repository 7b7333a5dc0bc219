"""The answer that is being spoken: pieces that overlap, come twice or come late, shown once and in order.

A follower that attaches again gets the text so far once more; in the end the whole answer comes as an
event. What was shown already is never shown again.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.cli.chat.blocks import Block, Remark, Spoke, Thought
from holdfast.cli.chat.pieces import Piece, Splitter
from holdfast.client.events import TextDelta
from holdfast.client.http import Json

OTHERWISE = "the answer was stored otherwise than it was spoken; this is the stored one:"


class Speech:
    """One step at a time. `thoughts` are all that were shown, to be opened later."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.thoughts: list[str] = []
        self._over: tuple[int, int] | None = None
        self._begin((0, 0))

    def begin(self, turn: int, step: int) -> None:
        """A model was asked: what comes now is a new answer, also when it is the same step again."""
        self._over = None
        self._begin((turn, step))

    def _begin(self, key: tuple[int, int]) -> None:
        self._key = key
        self._said = Splitter()
        self._thinking = ""
        self._told = 0
        """How much of the thinking was shown as a block."""
        self._since: float | None = None

    # --- what is alive --------------------------------------------------------------------------

    @property
    def rest(self) -> Piece:
        """The piece in the making."""
        return self._said.rest

    @property
    def thinking(self) -> str:
        """The thinking in the making; empty when the agent speaks."""
        return self._thinking[self._told :]

    @property
    def thinking_ms(self) -> int | None:
        """For how long it has been thinking."""
        return None if self._since is None else int((self._clock() - self._since) * 1000)

    # --- what comes -----------------------------------------------------------------------------

    def spoken(self, piece: TextDelta) -> list[Block]:
        """Take a piece; the blocks that it finished."""
        key = (piece.turn, piece.step)
        if key == self._over:
            return []
        if key != self._key:
            self._begin(key)
        self._thinking += _new(piece.thinking, piece.thinking_offset, len(self._thinking))
        if self.thinking and self._since is None:
            self._since = self._clock()
        text = _new(piece.text, piece.offset, len(self._said.text))
        if not text:
            return []
        shown = self._tell_thought() if text.strip() else []
        return [*shown, *map(_spoke, self._said.feed(text))]

    def responded(self, event: Json) -> list[Block]:
        """The whole answer: whatever of it was not shown yet."""
        whole = str(event["text"])
        blocks = self._end(event)
        if whole.startswith(self._said.text):
            rest = whole[len(self._said.text) :]
            return [*blocks, *map(_spoke, [*self._said.feed(rest), *self._said.finish()])]
        shown, stored = self._said.pieces, Splitter()
        pieces = [*stored.feed(whole), *stored.finish()]
        if pieces[: len(shown)] == shown:
            return [*blocks, *map(_spoke, pieces[len(shown) :])]
        return [*blocks, Remark(OTHERWISE, "warning"), *map(_spoke, pieces)]

    def cut(self, event: Json) -> list[Block]:
        """The answer ends here, as far as it had come; we may have seen more of it than was kept."""
        kept = str(event["text"])
        blocks = self._end(event)
        more = kept[len(self._said.text) :] if kept.startswith(self._said.text) else ""
        return [*blocks, *map(_spoke, [*self._said.feed(more), *self._said.finish()])]

    def _end(self, event: Json) -> list[Block]:
        key = (event["turn"], event["step"])
        if key != self._key:
            self._begin(key)
        self._over = key
        thinking = str(event["thinking"])
        if thinking.startswith(self._thinking):
            self._thinking = thinking
        return self._tell_thought()

    def _tell_thought(self) -> list[Block]:
        text, ms = self.thinking.strip(), self.thinking_ms
        self._told, self._since = len(self._thinking), None
        if not text:
            return []
        self.thoughts.append(text)
        return [Thought(len(self.thoughts), text, ms)]


def _new(text: str, offset: int, known: int) -> str:
    """What of this text is new; a text beyond a gap is left to the event that brings the whole."""
    return text[known - offset :] if offset <= known else ""


def _spoke(piece: Piece) -> Block:
    return Spoke(piece.markdown, piece.joined)
