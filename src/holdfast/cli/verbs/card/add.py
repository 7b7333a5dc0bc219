"""`holdfast card add`: write work down."""

from __future__ import annotations

import re

import click

from holdfast.cli.cards import find
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.conversation import say
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.hints import program
from holdfast.cli.screen import clean
from holdfast.cli.values import BOARD, CARD, SESSION, TEXT, UNTIL
from holdfast.cli.verbs.card.options import card_options, given
from holdfast.client.http import Json
from holdfast.schemas.cards import CardDetail
from holdfast.settings import span_ms

KEY = re.compile(r"[A-Za-z0-9_-]{8,64}\Z")


class _Start(click.ParamType[Json]):
    """When it may begin, as the gateway is told: a span stays one, so that a second call says the same."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Json:
        """Parse it."""
        span = span_ms(str(value))
        return {"after_ms": span} if span is not None else {"at": UNTIL.convert(value, param, ctx)}


@click.command("add")
@click.argument("title", type=TEXT)
@card_options
@click.option("--board", type=BOARD, metavar="NAME", help="By default the board `default`, which the first card makes.")
@click.option(
    "--parent", "parents", type=CARD, multiple=True, metavar="ID", help="Wait until it is done; may be repeated."
)
@click.option("--triage", is_flag=True, help="Not to be started until somebody promotes it.")
@click.option(
    "--at", "start", type=_Start(), metavar="TIME", help='Not before: 2h, 7d, or a date like "2026-11-30 18:00".'
)
@click.option(
    "--follow", "session", type=SESSION, metavar="SESSION", help="Tell this session of its blocks and its end."
)
@click.option("--idempotency-key", "key", metavar="KEY", help="A second call with the same key adds nothing.")
@shared_options
@pass_cli
def command(
    cli: Cli, /, key: str | None, triage: bool, parents: tuple[str, ...], start: Json | None, **wanted: object
) -> None:
    """Write work down as a card with TITLE; prints its id. It is started as soon as nothing blocks it.

    Starts a gateway in the background when none runs. What the worker is told is the body, without one the title.
    """
    if key is not None and not KEY.match(key):
        raise CliError(
            f"{key!r} is no key.", hint="8 to 64 letters, digits, `-` and `_`, the same at every try.", code=USAGE
        )
    if triage and start is not None:
        raise CliError("--triage and --at exclude each other.", hint="Promote it, then schedule it.", code=USAGE)
    body = given(wanted) | {"triage": triage, "parents": list(parents)} | (start or {})
    accepted = say(cli, "/v1/cards", body, id=key, shown_by=f"{program()} card list")
    if cli.json:
        cli.print_json({key: accepted[key] for key in ("card", "version", "seq", "duplicate")})
        return
    click.echo(accepted["card"])
    click.echo(_where(accepted, find(cli.client, accepted["card"])), err=True)


def _where(accepted: Json, found: CardDetail) -> str:
    """Where it stands, why it is not started if it is not, and how to look."""
    known = "it was there already; " if accepted["duplicate"] else ""
    stands = clean(found.why) or "It is started now."
    return f"{known}{stands}\nlook: {program()} card log {found.card.id} --follow"
