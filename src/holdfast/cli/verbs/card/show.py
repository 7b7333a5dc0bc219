"""`holdfast card show`."""

from __future__ import annotations

import click

from holdfast.cli.cards import all_facts, comment_lines, runs_table
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import clean, dim, facts
from holdfast.cli.values import CARD
from holdfast.client.http import quote


@click.command("show")
@click.argument("card", type=CARD)
@shared_options
@pass_cli
def command(cli: Cli, card: str) -> None:
    """Show all that is known of CARD: what it says, what was said about it, what it waits for, its runs, and why."""
    if cli.json:
        cli.print_json(cli.client.get(f"/v1/cards/{quote(card)}"))
        return
    found = cli.client.cards.get(card)
    click.echo(facts(all_facts(found)))
    if found.body.strip():
        click.echo(f"\n{dim('body')}\n{clean(found.body).rstrip()}")
    if found.comments:
        click.echo(f"\n{dim('comments')}\n{facts(comment_lines(found))}")
    if found.runs:
        click.echo(f"\n{runs_table(found)}")
    id = found.card.id
    click.echo(dim(f"\nholdfast card why {id} · log {id} · comment {id} TEXT"), err=True)
