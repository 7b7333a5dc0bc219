"""`holdfast card`: everything about one card; without a verb the list."""

from __future__ import annotations

import click

from holdfast.cli.lazy import LazyGroup

SECTIONS = {
    "Look": {
        "list": "List the cards, most urgent first.",
        "show": "Show all that is known of a card.",
        "why": "Say why it is where it is, and what would move it.",
        "runs": "List the attempts at it: how each ended, its session, what it cost.",
        "log": "Read what its workers said and did; --follow stays with it.",
        "context": "Show what its next worker would be told.",
        "diff": "Show what is different in its workspace.",
    },
    "Write": {
        "add": "Write work down.",
        "edit": "Change what it says.",
        "comment": "Say something about it; its worker hears it.",
        "assign": "Choose the profile that works on it.",
        "link": "Let it wait for another card.",
        "unlink": "Do not let it wait any more.",
        "follow": "Tell a session of its blocks, failures and end.",
    },
    "Move": {
        "promote": "Let it be started: out of triage, todo or scheduled.",
        "schedule": "Not before a time.",
        "block": "It cannot go on without somebody.",
        "unblock": "Let it go on, in the session of its last run.",
        "retry": "Once more, whatever became of it.",
        "stop": "End its run; it is blocked then.",
        "complete": "It is done.",
        "archive": "Take it off the board.",
        "release": "Remove the workspace that an archived card kept.",
    },
}


@click.group("card", cls=LazyGroup, package="holdfast.cli.verbs.card", sections=SECTIONS, default="list")
def command() -> None:
    """Write cards, look at them and move them. Without a verb: list. `holdfast board` is the picture of them."""
