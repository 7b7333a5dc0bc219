"""The chat on a terminal: finished blocks go to the scrollback, the rest is drawn above the prompt.

prompt_toolkit draws the lower part (what is alive, the prompt, the toolbar) and changes only what differs.
Blocks are written above it in one write, without leaving raw mode, so that no key is echoed meanwhile.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition, has_completions, is_done
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import ConditionalContainer, Dimension, HSplit, Layout, ScrollOffsets, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.margins import ScrollbarMargin
from prompt_toolkit.layout.menus import CompletionsMenuControl
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from holdfast.cli.chat.attach import AttachedSession, first_screen, header
from holdfast.cli.chat.blocks import Block, NoticeBlock
from holdfast.cli.chat.complete import Catalog, ChatCompleter, completes_while_typing
from holdfast.cli.chat.controller import ChatController
from holdfast.cli.chat.live import live_lines, toolbar
from holdfast.cli.chat.local_state import InputHistory
from holdfast.cli.chat.paint import MARK, Painter
from holdfast.cli.chat.slash import Slash
from holdfast.client.client import Client

TICK_SECONDS = 0.5
REDRAW_SECONDS = 0.04
INPUT_LINES = 10
MENU_LINES = 8
RESERVED_ROWS = 6
"""Lines for the prompt, the toolbar and a little of the conversation."""
HEAD_ROWS = 4
BEGIN_FRAME, END_FRAME = "\x1b[?2026h", "\x1b[?2026l"
"""Show everything in between in one frame; terminals that do not know these sequences ignore them."""
STYLE = Style.from_dict(
    {
        "prompt": "bold ansicyan",
        "prompt.answer": "bold ansiyellow",
        "toolbar": "dim",
        "warning": "nodim ansiyellow",
        "state.running": "nodim ansigreen",
        "state.waiting": "nodim ansiyellow",
        "state.suspended": "nodim ansiyellow",
        "state.queued": "nodim ansicyan",
        "state.compacting": "nodim ansicyan",
        "completion-menu": "bg:default fg:default",
        "completion-menu.completion.current": "reverse",
        "completion-menu.meta.completion": "bg:default fg:default dim",
        "completion-menu.meta.completion.current": "bg:default fg:default",
        "scrollbar.background": "bg:default",
        "scrollbar.button": "reverse",
    }
)


def _size() -> Size:
    """The size of the terminal itself, not of the environment variables; a default if it is unknown."""
    with suppress(OSError):
        columns, rows = os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ is not None else 1)
        if columns and rows:
            return Size(rows=rows, columns=columns)
    return Size(rows=24, columns=80)


def _soon(loop: asyncio.AbstractEventLoop, take: Callable[[str], None], line: str) -> None:
    with suppress(RuntimeError):  # the loop is over, and so is the chat
        loop.call_soon_threadsafe(take, line)


class TerminalScreen:
    """A screen for the chat, and its keyboard."""

    def __init__(self, client: Client, history: InputHistory, *, colors: bool) -> None:
        self._colors = colors
        depth = ColorDepth.DEPTH_8_BIT if colors else ColorDepth.DEPTH_1_BIT
        self._output = Vt100_Output(sys.stdout, _size, default_color_depth=depth, enable_cpr=False)
        self._history = history
        self._catalog = Catalog(client)
        self._columns = self._output.get_size().columns
        self._painter = Painter(self._columns, colors=colors)
        self._last: Block | None = None
        self._chat: ChatController | None = None
        self._app: Application[None] | None = None
        self.hung_up = False

    @property
    def chat(self) -> ChatController:
        """The controller of this screen."""
        assert self._chat is not None
        return self._chat

    async def run(self, chat: ChatController) -> None:
        """Run until the user leaves."""
        self._chat = chat
        self._app = app = self._application()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        loop.add_signal_handler(signal.SIGTERM, self.leave)
        ticking = asyncio.create_task(self._tick(app))
        try:
            with _captured_output(lambda line: _soon(loop, self._show_stray_line, line)):
                chat.start()
                await app.run_async(handle_sigint=False)
        except (EOFError, OSError):  # the terminal is gone, perhaps before its signal came
            self.hung_up = True
        finally:
            ticking.cancel()
            if (draft := app.current_buffer.text).strip():
                self._history.add(draft)  # Up brings it back in the next chat

    # --- what the chat asks of its screen -------------------------------------------------------

    def enter(self, attached: AttachedSession) -> None:
        """Print a line about the session, and the last screenful of its conversation."""
        size = self._output.get_size()
        painter = self._painter_now()
        lines, last = first_screen(attached, painter, max(5, size.rows - RESERVED_ROWS - HEAD_ROWS))
        top = painter.text(header(attached.view, painter.columns), "bold")
        hint = [painter.text(line, "dim") for line in attached.hint.splitlines()]
        above = [""] if self._last is not None else []
        self._print([*above, top, *hint, *([""] if lines else []), *lines])
        self._last = last or NoticeBlock("")

    def show(self, blocks: list[Block]) -> None:
        """Print blocks above the live part."""
        lines = self._painter_now().blocks(blocks, after=self._last)
        self._last = blocks[-1]
        self._print(lines)

    def refresh(self) -> None:
        """Draw again soon, and not too often."""
        if self._app is not None:
            self._app.invalidate()

    def leave(self) -> None:
        """End the application; the live part is erased, the scrollback stays."""
        if self._app is not None and self._app.is_running and not self._app.is_done:
            self._app.exit()

    # --- drawing --------------------------------------------------------------------------------

    def _painter_now(self) -> Painter:
        columns = self._output.get_size().columns
        if columns != self._columns:
            self._columns, self._painter = columns, Painter(columns, colors=self._colors)
        return self._painter

    def _print(self, lines: list[str]) -> None:
        text = "".join(f"{line}\r\n" for line in lines)
        app = self._app
        if app is None or not app.is_running:
            self._output.write_raw(text)
            self._output.flush()
            return
        self._output.write_raw(BEGIN_FRAME)
        app.renderer.erase(leave_alternate_screen=False)
        self._output.write_raw(text)
        app._redraw()  # at once: the public `invalidate` would leave a frame without a prompt
        self._output.write_raw(END_FRAME)
        self._output.flush()

    def _live(self) -> ANSI:
        rows = self._output.get_size().rows - RESERVED_ROWS - self._typing_rows()
        return ANSI("\n".join(live_lines(self.chat.live_state(self._last), self._painter_now(), max(1, rows))))

    def _typing_rows(self) -> int:
        """Return how many lines a long text and its completions need beyond the prompt's one."""
        if self._app is None:
            return 0
        buffer = self._app.current_buffer
        menu = len(buffer.complete_state.completions) if buffer.complete_state is not None else 0
        return min(INPUT_LINES, buffer.document.line_count) - 1 + min(MENU_LINES, menu)

    def _toolbar(self) -> StyleAndTextTuples:
        return [*toolbar(self.chat.live_state(self._last), self._output.get_size().columns)]

    def _prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        if line > 0 or wrapped > 0:
            return [("", "  ")]
        wait = self.chat.view.wait
        if self.chat.choosing or (wait is not None and wait.wants_answer):
            return [("class:prompt.answer", "? ")]
        return [("class:prompt", f"{MARK} ")]

    # --- the application ------------------------------------------------------------------------

    def _application(self) -> Application[None]:
        buffer = self._buffer()
        alive = Window(FormattedTextControl(self._live), dont_extend_height=True, wrap_lines=False)
        is_alive = Condition(lambda: bool(self._live().value))
        typing = Window(
            BufferControl(buffer),
            get_line_prefix=self._prefix,
            height=Dimension(min=1, max=INPUT_LINES),
            dont_extend_height=True,
            wrap_lines=True,
        )
        menu = Window(
            CompletionsMenuControl(),
            height=Dimension(min=1, max=MENU_LINES),
            scroll_offsets=ScrollOffsets(top=1, bottom=1),
            right_margins=[ScrollbarMargin()],
            dont_extend_height=True,
            dont_extend_width=True,
            style="class:completion-menu",
        )
        bar = Window(FormattedTextControl(self._toolbar), height=1, dont_extend_height=True, wrap_lines=False)
        rows = [
            ConditionalContainer(alive, filter=is_alive),
            Window(height=1, dont_extend_height=True),
            typing,
            ConditionalContainer(menu, filter=has_completions & ~is_done),
            bar,
            Window(),  # takes up the rows that are not needed any more
        ]
        return Application(
            layout=Layout(HSplit(rows), focused_element=typing),
            key_bindings=bindings(buffer, self),
            style=STYLE,
            erase_when_done=True,
            min_redraw_interval=REDRAW_SECONDS,
            mouse_support=False,
            input=create_input(sys.stdin),
            output=self._output,
        )

    def _buffer(self) -> Buffer:
        return Buffer(
            completer=ThreadedCompleter(ChatCompleter(self._catalog, lambda: self.chat.view)),
            complete_while_typing=Condition(lambda: completes_while_typing(self._before_cursor())),
            history=InMemoryHistory(self._history.load()),
            multiline=True,
        )

    def _before_cursor(self) -> str:
        return self._app.current_buffer.document.text_before_cursor if self._app is not None else ""

    def submit(self, text: str) -> None:
        """A text was entered."""
        if text.strip():
            self._history.add(text)
            self.chat.submit(text)

    def _show_stray_line(self, line: str) -> None:
        if line.strip():
            self.show([NoticeBlock(line)])

    def _hang_up(self) -> None:
        self.hung_up = True
        self.leave()

    async def _tick(self, app: Application[None]) -> None:
        """Draw again each second, for the durations that are shown."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if self.chat.view.at_work or self.chat.is_away or self.chat.unsent:
                app.invalidate()


class _LineStream(io.TextIOBase):
    """A stream that passes on whole lines."""

    def __init__(self, post: Callable[[str], None]) -> None:
        self._post = post
        self._rest = ""

    def writable(self) -> bool:
        """Always true."""
        return True

    def write(self, text: str) -> int:
        """Add text, and pass on the lines that it completes."""
        *whole, self._rest = (self._rest + text).split("\n")
        for line in whole:
            self._post(line)
        return len(text)


@contextmanager
def _captured_output(post: Callable[[str], None]) -> Iterator[None]:
    """Show what other code prints while the chat is on the screen, from any thread, line by line.

    prompt_toolkit's `patch_stdout` does the same, but it leaves raw mode for each line, and what is typed in
    that moment is echoed into the picture.
    """
    with redirect_stdout(_LineStream(post)), redirect_stderr(_LineStream(post)):
        yield


def bindings(buffer: Buffer, terminal: TerminalScreen) -> KeyBindings:
    """What the keys do on this terminal."""
    keys = KeyBindings()
    is_empty = Condition(lambda: not buffer.text)

    @keys.add("enter")
    def _send(event: KeyPressEvent) -> None:
        """Send; a completion that was chosen is taken first."""
        del event
        chosen = buffer.complete_state
        if chosen is not None and chosen.current_completion is not None:
            buffer.complete_state = None
            return
        text = buffer.text
        buffer.reset(append_to_history=bool(text.strip()))
        terminal.submit(text)

    @keys.add("escape", "enter")
    def _new_line(event: KeyPressEvent) -> None:
        del event
        buffer.insert_text("\n")

    @keys.add("c-c")
    def _stop(event: KeyPressEvent) -> None:
        """Stop the turn; with none and a text, clear the text."""
        del event
        if terminal.chat.view.turn is None and buffer.text:
            buffer.reset(append_to_history=True)
        else:
            terminal.chat.stop()

    @keys.add("c-d", filter=is_empty)
    def _leave(event: KeyPressEvent) -> None:
        del event
        terminal.leave()

    @keys.add("c-o")
    def _open_call(event: KeyPressEvent) -> None:
        del event
        terminal.chat.command(Slash("open"))

    @keys.add("c-t")
    def _open_thinking(event: KeyPressEvent) -> None:
        del event
        terminal.chat.open_thinking()

    @keys.add("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    return keys
