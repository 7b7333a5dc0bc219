"""Markdown that is still being written, cut into pieces that will not change any more.

A piece is a paragraph, a list, a heading, a table or a block of code: what a renderer can draw without
knowing what follows. A long block of code comes in several pieces, each a block of its own. Pure, and
the pieces are the same however the text was chopped on its way here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

CODE_LINES = 40
_OPENS = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r"#{1,6}([ \t]|$)")


@dataclass(frozen=True, slots=True)
class Piece:
    """Markdown that can be drawn by itself; `joined` goes on where the piece before ended."""

    markdown: str
    joined: bool = False


@dataclass(frozen=True, slots=True)
class _Fence:
    opener: str
    mark: str
    nested: bool

    def closed_by(self, line: str) -> bool:
        stripped = line.strip()
        return len(stripped) >= len(self.mark) and set(stripped) == {self.mark[0]}


class Splitter:
    """Takes text as it comes and hands out finished pieces; `rest` is the piece in the making."""

    def __init__(self) -> None:
        self.text = ""
        self.pieces: list[Piece] = []
        self._lines: list[str] = []
        self._partial = ""
        self._fence: _Fence | None = None
        self._after_blank = False
        self._joined = False

    def feed(self, text: str) -> list[Piece]:
        """The pieces that this text finished."""
        self.text += text
        *whole, self._partial = (self._partial + text).split("\n")
        new = [piece for line in whole for piece in self._line(line)]
        if self._after_blank and self._partial[:1].strip():
            new += self._cut()
        self.pieces += new
        return new

    def finish(self) -> list[Piece]:
        """There is no more text: whatever is left is a piece."""
        new = [*self._line(self._partial), *self._cut()]
        self._partial, self._fence = "", None
        self.pieces += new
        return new

    @property
    def rest(self) -> Piece:
        """The piece as far as it has come."""
        return Piece("\n".join([*self._lines, self._partial]).strip("\n"), self._joined)

    def _line(self, line: str) -> Iterator[Piece]:
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

    def _code(self, line: str, fence: _Fence) -> Iterator[Piece]:
        """Inside a fence. What is nested in a list stays with its list."""
        self._lines.append(line)
        if fence.closed_by(line):
            self._fence = None
            if not fence.nested:
                yield from self._cut()
        elif len(self._lines) > CODE_LINES and not fence.nested:
            self._lines.append(fence.mark)
            yield from self._cut()
            self._lines, self._joined = [fence.opener], True

    def _cut(self) -> list[Piece]:
        markdown = "\n".join(self._lines).strip("\n")
        piece = Piece(markdown, self._joined)
        self._lines, self._joined, self._after_blank = [], False, False
        return [piece] if markdown.strip() else []
