"""`holdfast profiles`: the agents that a session can have; without a verb it lists them."""

from __future__ import annotations

import click

from holdfast.cli.lazy import LazyGroup

SECTIONS = {
    "Look": {
        "list": "List the profiles.",
        "show": "Show all of one profile.",
    },
    "Change": {
        "add": "Add a profile to config.toml.",
        "default": "Choose the profile of new sessions.",
    },
}


@click.group("profiles", cls=LazyGroup, package="holdfast.cli.verbs.profiles", sections=SECTIONS, default="list")
def command() -> None:
    """List, show and add profiles, and choose the default one. Without a verb: list."""
