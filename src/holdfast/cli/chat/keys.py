"""The keys of the chat. Everything else is as in any Emacs-like line editor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

if TYPE_CHECKING:
    from holdfast.cli.chat.terminal import Terminal


def bindings(buffer: Buffer, terminal: Terminal) -> KeyBindings:
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
        terminal.chat.open_last_call()

    @keys.add("c-t")
    def _open_thinking(event: KeyPressEvent) -> None:
        del event
        terminal.chat.open_thinking()

    @keys.add("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    return keys
