"""The answer that is being streamed, cut into pieces of Markdown that can be printed: each once and in order.

In the end the whole answer comes as an event. What was shown already is never shown again.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.cli.chat.blocks import Block, Remark, Spoke, Thought
from holdfast.cli.chat.pieces import Piece, Splitter
from holdfast.domain.transcript_items import StepItem

OTHERWISE = "the answer was stored otherwise than it was spoken; this is the stored one:"


class Speech:
    """One step at a time. `thoughts` are all that were shown, to be opened later."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.thoughts: list[str] = []
        self.begin()

    def begin(self) -> None:
        """A model was asked: what comes now is a new answer, also when it is the same step again."""
        self._said = Splitter()
        self._thinking = ""
        self._told = 0
        """How much of the thinking was shown as a block."""
        self._since: float | None = None
        self._is_over = False

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

    def grown(self, step: StepItem) -> list[Block]:
        """More of the answer was streamed; the blocks that it finished."""
        self._thinking = step.thinking
        if self.thinking and self._since is None:
            self._since = self._clock()
        text = step.text[len(self._said.text) :]
        if not text:
            return []
        shown = self._tell_thought() if text.strip() else []
        return [*shown, *map(_spoke, self._said.feed(text))]

    def responded(self, step: StepItem) -> list[Block]:
        """The whole answer: whatever of it was not shown yet."""
        whole = step.text
        blocks = self._end(step)
        if whole.startswith(self._said.text):
            rest = whole[len(self._said.text) :]
            return [*blocks, *map(_spoke, [*self._said.feed(rest), *self._said.finish()])]
        shown, stored = self._said.pieces, Splitter()
        self._said = stored
        pieces = [*stored.feed(whole), *stored.finish()]
        if pieces[: len(shown)] == shown:
            return [*blocks, *map(_spoke, pieces[len(shown) :])]
        return [*blocks, Remark(OTHERWISE, "warning"), *map(_spoke, pieces)]

    def cut(self, step: StepItem) -> list[Block]:
        """The answer ends here, as far as it had come; we may have seen more of it than was kept."""
        kept = step.text
        blocks = self._end(step)
        more = kept[len(self._said.text) :] if kept.startswith(self._said.text) else ""
        return [*blocks, *map(_spoke, [*self._said.feed(more), *self._said.finish()])]

    def _end(self, step: StepItem) -> list[Block]:
        if self._is_over:  # its step began before the first record that we have
            self.begin()
        self._is_over = True
        if step.thinking.startswith(self._thinking):
            self._thinking = step.thinking
        return self._tell_thought()

    def _tell_thought(self) -> list[Block]:
        text, ms = self.thinking.strip(), self.thinking_ms
        self._told, self._since = len(self._thinking), None
        if not text:
            return []
        self.thoughts.append(text)
        return [Thought(len(self.thoughts), text, ms)]


def _spoke(piece: Piece) -> Block:
    return Spoke(piece.markdown, piece.joined)
