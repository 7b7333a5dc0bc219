"""`holdfast sessions`: everything about sessions; without a verb it lists them."""

from __future__ import annotations

import click

from holdfast.cli.lazy import LazyGroup

SECTIONS = {
    "Look": {
        "list": "List the sessions, newest first.",
        "show": "Show a session, its turns and its queue.",
        "log": "Read the conversation; --follow stays with it.",
        "search": "Find a text in any session.",
        "context": "Show what the model sees, and how large it is.",
        "policy": "Show or choose when it is reset by itself.",
    },
    "Change": {
        "fork": "Begin a new session that knows everything in it.",
        "undo": "Take its last turn out of what the model sees.",
        "reset": "Open a new chapter: what the model sees begins anew.",
        "undo-reset": "Let the model see the chapter before again.",
        "compact": "Make what the model sees shorter, by a summary.",
        "rename": "Give it another title.",
        "archive": "Take it out of the list; nothing is deleted.",
        "restore": "Bring an archived session back.",
        "delete": "Delete it with all its events, for good.",
        "export": "Write the conversation to a file.",
    },
}


@click.group("sessions", cls=LazyGroup, package="holdfast.cli.verbs.sessions", sections=SECTIONS, default="list")
def command() -> None:
    """List, read, search, reset, rename, archive, delete and export sessions. Without a verb: list."""
