"""A terminal, as much of one as the chat needs: what a person would see, scrollback included.

Cursor movements, erasing, wrapping at the edge, scrolling. Everything else must be a sequence that is known
to draw nothing; an unknown one is an error, because it would be one that the chat must not print.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from unicodedata import east_asian_width

TOKEN = re.compile(r"\x1b\[(?P<private>\??)(?P<numbers>[0-9;]*)(?P<final>[A-Za-z])|(?P<text>[^\x1b])", re.DOTALL)
PARTIAL = re.compile(r"\x1b(\[\??[0-9;]*)?\Z")
INVISIBLE = {"25", "7", "12", "1", "2004", "2026"}


class Emulator:
    """Fed with what was printed; `text` is all lines, `screen` those in sight."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._lines: list[list[str]] = [[]]
        self._row = self._column = 0
        self._wrapped = False
        self._rest = ""

    @property
    def text(self) -> str:
        return "\n".join("".join(line).rstrip() for line in self._lines).rstrip()

    @property
    def screen(self) -> str:
        shown = ["".join(line).rstrip() for line in self._lines[self._top :]]
        return "\n".join(shown).rstrip()

    @property
    def _top(self) -> int:
        return max(0, len(self._lines) - self.rows)

    def feed(self, printed: str) -> None:
        data = self._rest + printed
        partial = PARTIAL.search(data)
        self._rest = partial[0] if partial else ""
        data = data[: len(data) - len(self._rest)]
        at = 0
        while at < len(data):
            token = TOKEN.match(data, at)
            assert token is not None, f"an unknown sequence: {data[at : at + 20]!r}"
            at = token.end()
            if token["text"] is not None:
                self._print(token["text"])
            else:
                self._control(token["private"], token["numbers"], token["final"])

    def _print(self, character: str) -> None:
        match character:
            case "\r":
                self._column = 0
            case "\n":
                self._down()
            case "\b":
                self._column = max(0, self._column - 1)
            case _:
                assert character.isprintable(), repr(character)
                self._put(character)
                return
        self._wrapped = False

    def _put(self, character: str) -> None:
        if self._wrapped:
            self._column = 0
            self._down()
        wide = east_asian_width(character) in "WF"
        line = self._lines[self._row]
        line.extend(" " * (self._column + 1 + wide - len(line)))
        line[self._column] = character
        if wide:
            line[self._column + 1] = ""
        self._column += 1 + wide
        self._wrapped = self._column >= self.columns
        self._column = min(self._column, self.columns - 1)

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._lines):
            self._lines.append([])

    def _control(self, private: str, numbers: str, final: str) -> None:
        if private:
            assert numbers in INVISIBLE, f"an unknown mode: {numbers}"
            return
        if final == "m":
            return
        count = int(numbers or 1)
        moves: dict[str, Callable[[], None]] = {
            "A": lambda: self._move(-count, 0),
            "B": lambda: self._move(count, 0),
            "C": lambda: self._move(0, count),
            "D": lambda: self._move(0, -count),
            "K": self._erase_line,
            "J": self._erase_down,
        }
        moves[final]()
        self._wrapped = False

    def _move(self, rows: int, columns: int) -> None:
        self._row = min(max(self._top, self._row + rows), len(self._lines) - 1)
        self._column = min(max(0, self._column + columns), self.columns - 1)

    def _erase_line(self) -> None:
        del self._lines[self._row][self._column :]

    def _erase_down(self) -> None:
        self._erase_line()
        for line in self._lines[self._row + 1 :]:
            line.clear()
