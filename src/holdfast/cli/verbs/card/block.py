"""`holdfast card block`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.cards import KINDS
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import CARD, TEXT

if TYPE_CHECKING:
    from holdfast.domain.events.card import BlockKind


@click.command("block")
@click.argument("card", type=CARD)
@click.argument("reason", type=TEXT)
@click.option("--kind", type=click.Choice(KINDS), default="needs_input", show_default=True, help="What is missing.")
@shared_options
@pass_cli
def command(cli: Cli, card: str, reason: str, kind: BlockKind) -> None:
    """Say that CARD cannot go on without somebody, and why. One that runs is stopped."""
    cli.accepted(cli.client.cards.block(card, reason, kind=kind), f"blocked ({kind}); unblock lets it go on")
