"""A person at a terminal with `holdfast chat` on it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect  # type: ignore[import-untyped]

from tests.chat.emulator import Emulator
from tests.cli.commandline import PROGRAM, CommandLine
from tests.eventually import PATIENCE

PROMPT = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
CTRL_C, CTRL_D, ALT_ENTER, UP = "\x03", "\x04", "\x1b\r", "\x1b[A"


class Seat:
    """Types, and looks at the screen."""

    def __init__(self, child: Any, columns: int, rows: int) -> None:
        self.child = child
        self.emulator = Emulator(columns, rows)
        self.raw = ""

    def type(self, text: str) -> None:
        self.child.send(text)

    def enter(self, text: str) -> None:
        self.child.send(f"{text}\r")

    def look(self) -> str:
        """Everything that was ever shown and still stands, above and on the screen."""
        with contextlib.suppress(pexpect.TIMEOUT, pexpect.EOF):
            while piece := self.child.read_nonblocking(65_536, timeout=0.02):
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
        while self.child.isalive():
            self.look()
            assert time.monotonic() < deadline, self.emulator.text
        shown = self.look()
        self.child.close()
        assert self.child.exitstatus == code, shown
        return shown

    def hang_up(self) -> None:
        """The terminal is closed, as by the window's button; the chat ends by itself."""
        self.child.ptyproc.fileobj.close()
        self.child.ptyproc.wait()
        assert self.child.ptyproc.exitstatus == 0

    @property
    def conversation(self) -> str:
        """Without the first line, the prompt and the toolbar."""
        return self.look().partition("\n")[2].rpartition(f"\n{PROMPT}")[0].strip()


@contextlib.contextmanager
def sit_down(
    cli: CommandLine, *arguments: str, cwd: Path | None = None, columns: int = 80, rows: int = 40, **env: str
) -> Iterator[Seat]:
    """Start the chat on a terminal of its own."""
    child = pexpect.spawn(
        PROGRAM[0],
        [*PROGRAM[1:], *arguments],
        cwd=str(cwd) if cwd is not None else None,
        env=cli.environment(**{"TERM": "xterm-256color"} | env),
        dimensions=(rows, columns),
        encoding="utf-8",
        codec_errors="replace",
        timeout=PATIENCE,
        echo=False,
    )
    child.delaybeforesend = None
    try:
        yield Seat(child, columns, rows)
    finally:
        child.close(force=True)
