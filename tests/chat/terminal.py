"""A person at a terminal with `holdfast chat` on it."""

from __future__ import annotations

import codecs
import contextlib
import os
import select
import time
from collections.abc import Iterator
from pathlib import Path

from tests.chat.emulator import Emulator
from tests.cli.commandline import CommandLine
from tests.e2e.fork_server import Child
from tests.eventually import PATIENCE

PROMPT = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
CTRL_C, CTRL_D, ALT_ENTER, UP = "\x03", "\x04", "\x1b\r", "\x1b[A"


class Terminal:
    """Types, and looks at the screen."""

    def __init__(self, child: Child, terminal: int, columns: int, rows: int) -> None:
        self._child = child
        self._terminal = terminal
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.emulator = Emulator(columns, rows)
        self.raw = ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def enter(self, text: str) -> None:
        self.type(f"{text}\r")

    def look(self) -> str:
        """Everything that was ever shown and still stands, above and on the screen."""
        with contextlib.suppress(OSError):  # a terminal that the chat has left is an error to read from
            while select.select([self._terminal], [], [], 0.02)[0]:
                piece = self._decoder.decode(os.read(self._terminal, 65_536))
                self.raw += piece
                self.emulator.feed(piece)
        return self.emulator.text

    def until(self, *texts: str, gone: str = "") -> str:
        """As soon as all of that is to be seen, and that other thing is not."""
        deadline = time.monotonic() + PATIENCE
        while True:
            shown = self.look()
            missing = [text for text in texts if text not in shown]
            if not missing and (not gone or gone not in self.emulator.screen):
                return shown
            assert time.monotonic() < deadline, f"missing {missing or gone!r} in:\n{shown}"

    def until_idle(self, *texts: str) -> str:
        """As soon as it rests again."""
        self.until(*texts)
        deadline = time.monotonic() + PATIENCE
        while "· idle" not in self.emulator.screen.rsplit("\n", 1)[-1]:
            assert time.monotonic() < deadline, self.emulator.text
            self.look()
        return self.emulator.text

    def leave(self, key: str = CTRL_D) -> str:
        """What is left on the terminal when the chat has ended."""
        self.type(key)
        return self.ended()

    def ended(self, code: int = 0) -> str:
        deadline = time.monotonic() + PATIENCE
        while self._child.poll() is None:
            self.look()
            assert time.monotonic() < deadline, self.emulator.text
        shown = self.look()
        assert self._child.returncode == code, shown
        return shown

    def hang_up(self) -> None:
        """The terminal is closed, as by the window's button; the chat ends by itself."""
        os.close(self._terminal)
        self._terminal = -1
        assert self._child.wait(PATIENCE) == 0

    def close(self) -> None:
        if self._child.poll() is None:
            self._child.kill()
            self._child.wait(PATIENCE)
        if self._terminal >= 0:
            os.close(self._terminal)

    @property
    def conversation(self) -> str:
        """Without the first line, the prompt and the toolbar."""
        return self.look().partition("\n")[2].rpartition(f"\n{PROMPT}")[0].strip()


@contextlib.contextmanager
def on_terminal(
    cli: CommandLine, *arguments: str, cwd: Path | None = None, columns: int = 80, rows: int = 40, **env: str
) -> Iterator[Terminal]:
    """Start the chat on a terminal of its own."""
    child, terminal = cli.show(*arguments, cwd=cwd, columns=columns, rows=rows, echo=False, env=env)
    chat = Terminal(child, terminal, columns, rows)
    try:
        yield chat
    finally:
        chat.close()
