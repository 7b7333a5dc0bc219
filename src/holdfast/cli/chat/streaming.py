"""The answer that is being streamed, cut into pieces of Markdown that can be printed: each once and in order.

A piece is a paragraph, a list, a heading, a table or a block of code: what a renderer can draw without knowing what
follows. A long block of code comes in several pieces, each a block of its own. Pure, and the pieces are the same
whatever pieces the text arrived in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holdfast.cli.chat.blocks import Block, NoticeBlock, TextBlock, ThinkingBlock
from holdfast.domain.transcript_items import StepItem

CODE_LINES = 40
_OPENS = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r"#{1,6}([ \t]|$)")


@dataclass(frozen=True, slots=True)
class _Fence:
    opener: str
    mark: str
    nested: bool

    def closed_by(self, line: str) -> bool:
        stripped = line.strip()
        return len(stripped) >= len(self.mark) and set(stripped) == {self.mark[0]}


class MarkdownSplitter:
    """Takes streamed text and returns finished pieces; `rest` is the unfinished piece."""

    def __init__(self) -> None:
        self.text = ""
        self.pieces: list[TextBlock] = []
        self._lines: list[str] = []
        self._partial = ""
        self._fence: _Fence | None = None
        self._after_blank = False
        self._joined = False

    def feed(self, text: str) -> list[TextBlock]:
        """Add text; return the pieces that it finished."""
        self.text += text
        *whole, self._partial = (self._partial + text).split("\n")
        new = [piece for line in whole for piece in self._line(line)]
        if self._after_blank and self._partial[:1].strip():
            new += self._cut()
        self.pieces += new
        return new

    def finish(self) -> list[TextBlock]:
        """End the text; return what is left as a piece."""
        new = [*self._line(self._partial), *self._cut()]
        self._partial, self._fence = "", None
        self.pieces += new
        return new

    @property
    def rest(self) -> TextBlock:
        """The unfinished piece."""
        return TextBlock("\n".join([*self._lines, self._partial]).strip("\n"), self._joined)

    def _line(self, line: str) -> Iterator[TextBlock]:
        if self._fence is not None:
            yield from self._code(line, self._fence)
            return
        if not line.strip():
            self._after_blank = bool(self._lines)
            if self._lines:
                self._lines.append(line)
            return
        at_margin = not line[0].isspace()
        if self._after_blank and at_margin:
            yield from self._cut()
        self._after_blank = False
        opens = _OPENS.match(line)
        heading = at_margin and _HEADING.match(line) is not None
        if at_margin and (opens is not None or heading):
            yield from self._cut()
        if opens is not None:
            self._fence = _Fence(line, opens["fence"], nested=bool(opens["indent"]))
        self._lines.append(line)
        if heading:
            yield from self._cut()

    def _code(self, line: str, fence: _Fence) -> Iterator[TextBlock]:
        """Handle a line inside a code fence. A fence within a list stays part of the list."""
        self._lines.append(line)
        if fence.closed_by(line):
            self._fence = None
            if not fence.nested:
                yield from self._cut()
        elif len(self._lines) > CODE_LINES and not fence.nested:
            self._lines.append(fence.mark)
            yield from self._cut()
            self._lines, self._joined = [fence.opener], True

    def _cut(self) -> list[TextBlock]:
        markdown = "\n".join(self._lines).strip("\n")
        piece = TextBlock(markdown, self._joined)
        self._lines, self._joined, self._after_blank = [], False, False
        return [piece] if markdown.strip() else []


OTHERWISE = "the stored answer differs from the text above; this is the stored one:"


class AnswerStream:
    """The streamed text of the current step. `thoughts` are all that were shown, to be opened later."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.thoughts: list[str] = []
        self.begin()

    def begin(self) -> None:
        """Begin a new request: the next text is a new answer, also in a repeated step."""
        self._splitter = MarkdownSplitter()
        self._thinking = ""
        self._thinking_shown = 0
        """How much of the thinking was shown as a block."""
        self._thinking_since: float | None = None
        self._is_over = False

    # --- what is alive --------------------------------------------------------------------------

    @property
    def rest(self) -> TextBlock:
        """The unfinished piece of the answer."""
        return self._splitter.rest

    @property
    def thinking(self) -> str:
        """The unfinished thinking; empty once the answer began."""
        return self._thinking[self._thinking_shown :]

    @property
    def thinking_ms(self) -> int | None:
        """For how long it has been thinking."""
        return None if self._thinking_since is None else int((self._clock() - self._thinking_since) * 1000)

    # --- what comes -----------------------------------------------------------------------------

    def extend(self, step: StepItem) -> list[Block]:
        """Add streamed text; return the blocks that it finished."""
        self._thinking = step.thinking
        if self.thinking and self._thinking_since is None:
            self._thinking_since = self._clock()
        text = step.text[len(self._splitter.text) :]
        if not text:
            return []
        shown = self._thinking_block() if text.strip() else []
        return [*shown, *self._splitter.feed(text)]

    def complete(self, step: StepItem) -> list[Block]:
        """Take the whole answer; return the blocks that were not shown yet."""
        whole = step.text
        blocks = self._end(step)
        if whole.startswith(self._splitter.text):
            rest = whole[len(self._splitter.text) :]
            return [*blocks, *self._splitter.feed(rest), *self._splitter.finish()]
        shown, stored = self._splitter.pieces, MarkdownSplitter()
        self._splitter = stored
        pieces = [*stored.feed(whole), *stored.finish()]
        if pieces[: len(shown)] == shown:
            return [*blocks, *pieces[len(shown) :]]
        return [*blocks, NoticeBlock(OTHERWISE, "warning"), *pieces]

    def cut(self, step: StepItem) -> list[Block]:
        """End an interrupted answer. More of it may have been shown than was stored."""
        kept = step.text
        blocks = self._end(step)
        more = kept[len(self._splitter.text) :] if kept.startswith(self._splitter.text) else ""
        return [*blocks, *self._splitter.feed(more), *self._splitter.finish()]

    def _end(self, step: StepItem) -> list[Block]:
        if self._is_over:  # its step began before the first record that we have
            self.begin()
        self._is_over = True
        if step.thinking.startswith(self._thinking):
            self._thinking = step.thinking
        return self._thinking_block()

    def _thinking_block(self) -> list[Block]:
        text, ms = self.thinking.strip(), self.thinking_ms
        self._thinking_shown, self._thinking_since = len(self._thinking), None
        if not text:
            return []
        self.thoughts.append(text)
        return [ThinkingBlock(len(self.thoughts), text, ms)]
