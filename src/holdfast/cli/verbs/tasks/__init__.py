"""`holdfast tasks`: what runs in the background, and the archive of all that ever did; without a verb what runs."""

from __future__ import annotations

import click

from holdfast.cli.lazy import LazyGroup

SECTIONS = {
    "Look": {
        "list": "List what runs now, across all sessions.",
        "history": "List what ever ran, newest first.",
        "show": "Show all that is known of a task.",
        "log": "Read its whole output; --follow stays with it.",
        "search": "Find a text in the output of all tasks.",
        "stale": "List what is running and nobody seems to need; --stop ends it.",
    },
    "Change": {
        "wait": "Wait until it has ended.",
        "stop": "Ask it to end, after 5 s by force.",
        "kill": "End it at once, with everything that it started.",
        "write": "Type something into its input.",
        "pin": "Keep it whatever is pruned.",
        "unpin": "Unpin it.",
        "prune": "Show what would be deleted; --yes deletes it.",
    },
}


@click.group("tasks", cls=LazyGroup, package="holdfast.cli.verbs.tasks", sections=SECTIONS, default="list")
def command() -> None:
    """List, read, wait for, stop and prune what runs or ran in the background. Without a verb: what runs now."""
