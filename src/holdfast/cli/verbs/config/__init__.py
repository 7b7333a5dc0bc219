"""`holdfast config`: the settings; without a verb it shows them."""

from __future__ import annotations

import click

from holdfast.cli.lazy import LazyGroup

SECTIONS = {
    "Verbs": {
        "show": "Show the settings in force.",
        "path": "Print where they are.",
        "check": "Check them without starting anything.",
    },
}


@click.group("config", cls=LazyGroup, package="holdfast.cli.verbs.config", sections=SECTIONS, default="show")
def command() -> None:
    """Show or check the settings. Without a verb: show."""
