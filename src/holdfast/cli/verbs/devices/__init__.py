"""`holdfast devices`: browsers that are signed in; without a verb it lists them."""

from __future__ import annotations

import click

from holdfast.cli.lazy import LazyGroup

SECTIONS = {
    "Look": {"list": "List the browsers that are signed in."},
    "Change": {"revoke": "Sign one out, at once."},
}


@click.group("devices", cls=LazyGroup, package="holdfast.cli.verbs.devices", sections=SECTIONS, default="list")
def command() -> None:
    """List the browsers that are signed in, and sign them out. Without a verb: list."""
