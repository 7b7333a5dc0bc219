"""`holdfast board`: the cards that agents work on, by column; without a verb the picture of it."""

from __future__ import annotations

import click

from holdfast.cli.lazy import LazyGroup

SECTIONS = {
    "Look": {
        "show": "The columns with their cards.",
        "watch": "The same, drawn anew whenever something changes.",
        "list": "List the boards.",
    },
    "Change": {
        "create": "Make a board.",
        "pause": "Start nothing on it; what runs goes on.",
        "resume": "Start cards again; also brings an archived one back.",
        "archive": "Take it out of the list; its cards stay.",
    },
}


@click.group("board", cls=LazyGroup, package="holdfast.cli.verbs.board", sections=SECTIONS, default="show")
def command() -> None:
    """Look at a board, watch, pause and resume it. Without a verb: show. Cards are written by `holdfast card add`."""
