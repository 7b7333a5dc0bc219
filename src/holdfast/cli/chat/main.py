"""Run the chat: choose the session; at the end, say what keeps running and what was not sent."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from holdfast.cli.chat.attach import AttachedSession, attach, last_here, new_session
from holdfast.cli.chat.controller import ChatController, Screen
from holdfast.cli.chat.local_state import InputHistory, ReadCursors, state_folder
from holdfast.cli.chat.terminal import TerminalScreen
from holdfast.cli.context import Cli
from holdfast.cli.hints import program
from holdfast.cli.screen import SHORT_ID, clean, dim, plural


def run_chat(cli: Cli, *, session: str | None, new: bool, profile: str | None, cwd: str) -> int:
    """Attach to a session or begin one, and run the chat until the user leaves."""
    cli.start_gateway()
    folder = state_folder(cli.home)
    cursors = ReadCursors(folder)
    if session is None and not new:
        session = last_here(cli.client, cwd)
    attached = new_session(cli.client, cwd, profile) if session is None else attach(cli.client, session, cursors)
    screen = TerminalScreen(cli.client, InputHistory(folder), colors=not cli.plain)
    asyncio.run(_run(cli, cursors, screen, attached))
    return 0


async def _run(cli: Cli, cursors: ReadCursors, screen: Screen, attached: AttachedSession) -> None:
    chat = ChatController(cli.client, cursors, screen, attached)
    try:
        await screen.run(chat)
    finally:
        chat.close()
    if not screen.hung_up:
        with suppress(OSError):
            _print_end(cli, chat)


def _what_goes_on(chat: ChatController) -> str:
    view = chat.view
    if view.wait is not None and view.wait.wants_answer:
        return f"it waits for your answer ({program()} inbox)"
    if view.at_work:
        return f"the agent continues ({view.state})"
    return "the agent continues" if chat.has_unconfirmed else "nothing is running"


def _print_end(cli: Cli, chat: ChatController) -> None:
    """Print whether work continues, how to come back, and what was not sent."""
    if chat.session and not chat.ended:
        cli.echo(dim(f"\ndetached; {_what_goes_on(chat)}\ncome back: {program()} chat {chat.session[:SHORT_ID]}"))
        if chat.detached:
            cli.echo(dim(f"the turn is a task now: {program()} tasks show {chat.detached[:SHORT_ID]}"))
    for message in chat.unsent:
        in_doubt = chat.is_in_doubt(message)
        cli.echo(f"{'perhaps sent' if in_doubt else 'not sent'}: {clean(message.text)}")
        if in_doubt:
            cli.echo(dim(f"There was no answer. `{program()} sessions` shows whether the message arrived."))
    if chat.unsent:
        cli.echo(dim(f"{plural(len(chat.unsent), 'message')} could not be sent."))
