"""The chat on a terminal that can do nothing but print lines (`TERM=dumb`): no colours, no cursor."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys

from holdfast.cli.chat.attach import Opening, header, screenful
from holdfast.cli.chat.blocks import Block
from holdfast.cli.chat.live import waiting_line
from holdfast.cli.chat.paint import Painter
from holdfast.cli.chat.talk import Chat
from holdfast.cli.screen import clean, one_line, shorten

SCREEN_LINES = 20
BYTES = 65_536


class Lines:
    """A screen that only grows."""

    def __init__(self) -> None:
        columns = shutil.get_terminal_size().columns
        self._painter = Painter(columns, colors=False, styled=False)
        self._last: Block | None = None
        self._chat: Chat | None = None
        self._left = asyncio.Event()
        self._rest = b""
        self._queued: set[str] = set()
        self._told_away = False
        self._told_wait = ""
        self._told: dict[str, str] = {}
        self.hung_up = False

    async def run(self, chat: Chat) -> None:
        """Until the end of the input."""
        self._chat = chat
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, chat.stop)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        loop.add_signal_handler(signal.SIGTERM, self.leave)
        chat.start()
        loop.add_reader(sys.stdin.fileno(), self._read)
        try:
            await self._left.wait()
        finally:
            loop.remove_reader(sys.stdin.fileno())

    def enter(self, opening: Opening) -> None:
        """Where we are, and the last lines."""
        self._queued, self._told_wait = set(opening.view.queue), ""
        lines, self._last = screenful(opening, self._painter, SCREEN_LINES)
        self._print([header(opening.view, self._painter.columns), *([opening.hint] if opening.hint else []), *lines])

    def show(self, blocks: list[Block]) -> None:
        """Print them."""
        self._print(self._painter.blocks(blocks, after=self._last))
        self._last = blocks[-1]

    def refresh(self) -> None:
        """Say once what a better terminal would show all the time."""
        chat = self._chat
        if chat is None:
            return
        view = chat.view
        for place, queued in enumerate(view.queue.values(), 1):
            if view.turn is not None and queued.input not in self._queued:
                self._queued.add(queued.input)
                self._say(f"queued {place}: {one_line(queued.text)}")
        if chat.is_away != self._told_away:
            self._told_away = chat.is_away
            self._say("gateway away, waiting…" if chat.is_away else "the gateway is back")
        self._once("choosing", chat.choosing)
        self._once("postponed", view.postponed)
        self._once("compacting", "making the context shorter" if view.compacting_since is not None else "")
        wait = view.wait
        if wait is not None and wait.wait != self._told_wait:
            self._told_wait = wait.wait
            self._say(waiting_line(wait, wait.until or 0))

    def _once(self, what: str, text: str) -> None:
        """When it has changed."""
        if self._told.get(what, "") != text:
            self._told[what] = text
            if text:
                self._say(one_line(text))

    def leave(self) -> None:
        """The chat is over."""
        self._left.set()

    def _hang_up(self) -> None:
        self.hung_up = True
        self.leave()

    def _read(self) -> None:
        try:
            data = os.read(sys.stdin.fileno(), BYTES)
        except OSError:
            data = b""
        if not data:
            self._drop(self._rest)
            self.leave()
            return
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            assert self._chat is not None
            self._chat.typed(line.decode("utf-8", "replace"))

    def _drop(self, rest: bytes) -> None:
        """What was typed without an Enter is not sent, but not lost in silence either."""
        if rest.strip():
            self._print(["", f"not sent: {clean(rest.decode('utf-8', 'replace'))}"])

    def _say(self, text: str) -> None:
        self._print([shorten(f"[{text}]", self._painter.columns)])

    def _print(self, lines: list[str]) -> None:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
