"""Coming in and going out: which session, on which kind of terminal, and the last words."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import click

from holdfast.cli.chat import attach
from holdfast.cli.chat.attach import Opening
from holdfast.cli.chat.keep import Cursors, Typed, folder
from holdfast.cli.chat.talk import Chat, Screen
from holdfast.cli.context import Cli
from holdfast.cli.hints import program
from holdfast.cli.screen import SHORT_ID, clean, dim, plural
from holdfast.config import environment, no_color


def talk(cli: Cli, *, session: str | None, new: bool, profile: str | None, cwd: str) -> int:
    """Attach to a session or begin one, and stay until the person leaves."""
    cli.start_gateway()
    place = folder(cli.home)
    cursors = Cursors(place)
    opening = _opening(cli, cursors, session=session, new=new, profile=profile, cwd=cwd)
    return asyncio.run(_talk(cli, cursors, Typed(place), opening))


def _opening(cli: Cli, cursors: Cursors, *, session: str | None, new: bool, profile: str | None, cwd: str) -> Opening:
    if session is None and not new:
        session = attach.last_here(cli.client, cwd)
    if session is None:
        return attach.new(cli.client, cwd, profile)
    return attach.attach(cli.client, session, cursors)


async def _talk(cli: Cli, cursors: Cursors, typed: Typed, opening: Opening) -> int:
    screen = _screen(cli, typed)
    chat = Chat(cli.client, cursors, screen, opening)
    try:
        await screen.run(chat)
    finally:
        chat.close()
    if not screen.hung_up:
        with suppress(OSError):
            _goodbye(chat)
    return 0


def _screen(cli: Cli, typed: Typed) -> Screen:
    """Made when it is known which; the other one is not even imported."""
    if environment("TERM") in (None, "dumb"):
        from holdfast.cli.chat.lines import Lines

        return Lines()
    from holdfast.cli.chat.terminal import Terminal

    return Terminal(cli.client, typed, colors=not no_color())


def _what_goes_on(chat: Chat) -> str:
    view = chat.view
    if view.wait is not None and view.wait.wants_answer:
        return f"it waits for your answer ({program()} inbox)"
    if view.at_work:
        return f"the work goes on ({view.state})"
    return "the work goes on" if chat.sent_last else "nothing is at work"


def _goodbye(chat: Chat) -> None:
    """What becomes of the work, how to come back, and what was never sent."""
    if chat.session and not chat.ended:
        click.echo(dim(f"\ndetached; {_what_goes_on(chat)}\nback: {program()} chat {chat.session[:SHORT_ID]}"))
        if chat.detached:
            click.echo(dim(f"the turn is a task now: {program()} tasks show {chat.detached[:SHORT_ID]}"))
    for letter in chat.unsent:
        in_doubt = letter.id == chat.in_doubt
        click.echo(f"{'perhaps sent' if in_doubt else 'not sent'}: {clean(letter.text)}")
        if in_doubt:
            click.echo(dim(f"No answer came. `{program()} sessions` shows it if it arrived."))
    if chat.unsent:
        click.echo(dim(f"{plural(len(chat.unsent), 'message')} could not be sent: no gateway answered."))
