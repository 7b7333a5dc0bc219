"""`holdfast sessions show`."""

from __future__ import annotations

import click

from holdfast.cli.chapters import outlook, outlook_facts
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.screen import Column, dim, duration, moment, pairs, plural, table, when
from holdfast.cli.values import SESSION
from holdfast.cli.verbs.sessions.list import state_word
from holdfast.client.http import quote
from holdfast.client.lenient import convert
from holdfast.schemas.sessions import SessionDetail, SessionView, TurnView

TURNS = (
    Column("TURN", right=True),
    Column("STATE", states=True),
    Column("STARTED"),
    Column("TOOK", right=True),
    Column("STEPS", right=True),
    Column("RESUMES", right=True),
    Column("TOKENS", right=True),
    Column("REASON", flexible=True),
)
QUEUE = (Column("MODE"), Column("AT"), Column("BY"), Column("TEXT", flexible=True))


@click.command("show")
@click.argument("session", type=SESSION)
@shared_options
@pass_cli
def command(cli: Cli, session: str) -> None:
    """Show a session, its turns and its queue."""
    found = cli.client.get(f"/v1/sessions/{quote(session)}")
    if cli.json:
        cli.print_json(found)
        return
    detail = convert(found, SessionDetail)
    row = detail.session
    reset = outlook(cli.client, row.id)
    plain = reset["rules"]["mode"] == "none" and row.chapter == 1
    click.echo(pairs([*_facts(row), *([] if plain else outlook_facts(reset))]))
    click.echo()
    if detail.turns:
        click.echo(table(TURNS, [_turn(turn) for turn in detail.turns]))
    else:
        click.echo(f'No turns yet. Try: {program()} send {row.id} "say hello"')
    if detail.queue:
        click.echo(f"\n{dim('waiting in the queue')}")
        cells = [[item.mode, when(item.at), item.by, item.text] for item in detail.queue]
        click.echo(table(QUEUE, cells))


def _facts(row: SessionView) -> list[tuple[str, str]]:
    archived = ", archived" if row.archived else ""
    task = [("task", f"{row.task} ({program()} tasks show {row.task[:8]})")] if row.task else []
    return [
        ("session", row.id),
        ("title", row.title),
        ("state", state_word(row) + archived),
        *task,
        ("profile", row.profile),
        ("directory", row.cwd),
        ("created", moment(row.created_at)),
        ("updated", moment(row.updated_at)),
        ("holds", f"{plural(row.message_count, 'message')}, {plural(row.version, 'event')}"),
    ]


def _turn(turn: TurnView) -> list[str]:
    ended = turn.finished_at
    return [
        str(turn.turn),
        turn.state,
        when(turn.started_at),
        duration(ended - turn.started_at) if ended is not None else "",
        str(turn.steps),
        str(turn.resumes),
        f"{turn.input_tokens + turn.output_tokens:,}",
        turn.reason,
    ]
