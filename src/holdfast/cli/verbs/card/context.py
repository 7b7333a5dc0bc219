"""`holdfast card context`: what its next worker would be told."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import clean, dim
from holdfast.cli.values import CARD
from holdfast.client.http import quote
from holdfast.schemas.cards import CardContext


@click.command("context")
@click.argument("card", type=CARD)
@shared_options
@pass_cli
def command(cli: Cli, card: str) -> None:
    """Show what the next worker of CARD would be told, and whose session it would go on with."""
    if cli.json:
        cli.print_json(cli.client.get(f"/v1/cards/{quote(card)}/context"))
        return
    found = cli.client.cards.context(card)
    click.echo(_whose(found))
    click.echo(f"\n{dim('note from the board')}\n{clean(found.note)}")
    click.echo(f"\n{dim('its next turn')}\n{clean(found.text)}")


def _whose(found: CardContext) -> str:
    if found.refused:
        return f"It would be blocked: its policy is `resume`, and that cannot be: {found.refused}."
    if found.resumes:
        return f"The next run goes on in the session of run {found.resumes}: {found.session}."
    because = f": {found.fresh_because}" if found.fresh_because else ""
    return f"The next run begins with a fresh session{because}."
