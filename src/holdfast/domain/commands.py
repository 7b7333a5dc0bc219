"""Everything that Holdfast can be told, as one closed tagged union.

A command is a request in the imperative. It carries no id of its own: the id is minted by the
client and travels beside it (`Idempotency-Key`), so that a retry is stored once.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.domain.events import Mode

TEXT_LIMIT = 1_000_000
TITLE_LIMIT = 200

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=TEXT_LIMIT)]
Title = Annotated[str, msgspec.Meta(min_length=1, max_length=TITLE_LIMIT)]
Path = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="command", tag=True):
    """Base of all commands; `command` on the wire is the class name and may be left out."""


class CreateSession(Command, frozen=True):
    """Begin a conversation, at once with its first message if there is a text."""

    text: Text | None = None
    profile: Name | None = None
    cwd: Path | None = None
    title: Title | None = None


class SendMessage(Command, frozen=True):
    """Say something. While a turn runs it waits (`queue`), joins (`steer`) or stops it (`interrupt`)."""

    text: Text
    mode: Mode = "queue"


class StopTurn(Command, frozen=True):
    """End the running turn; queued messages stay."""


class AnswerWait(Command, frozen=True):
    """Answer what a turn waits for, once.

    A question takes any text, an approval `allow`, `session`, `always` or `deny`, anything else `go on`.
    """

    wait: Name
    answer: Text
    note: Annotated[str, msgspec.Meta(max_length=TEXT_LIMIT)] = ""


class ChooseAgent(Command, frozen=True):
    """Go on with another profile, or with another model of it (an empty one is the profile's own)."""

    profile: Name | None = None
    model: Annotated[str, msgspec.Meta(max_length=200)] | None = None


class UndoTurn(Command, frozen=True):
    """Take the last turn out of what the model sees. It stays in the log; effects are not taken back."""


class ForkSession(Command, frozen=True):
    """Begin a new session with everything up to a version of this one, by default all of it."""

    version: Annotated[int, msgspec.Meta(ge=1)] | None = None
    title: Title | None = None


class RenameSession(Command, frozen=True):
    """Give it another title."""

    title: Title


class ArchiveSession(Command, frozen=True):
    """Take it out of the default list; nothing is deleted."""


class RestoreSession(Command, frozen=True):
    """Bring an archived session back."""


class DeleteSession(Command, frozen=True):
    """Delete the session with all its events, for good."""


SessionCommand = (
    SendMessage | StopTurn | AnswerWait | ChooseAgent | UndoTurn | RenameSession | ArchiveSession | RestoreSession
)
AnyCommand = CreateSession | SessionCommand | ForkSession | DeleteSession
