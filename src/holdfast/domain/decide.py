"""`decide`: what a command means for a session as it is now. Events out, or a clear refusal."""

from __future__ import annotations

from typing import assert_never

from holdfast.domain.commands import (
    ArchiveSession,
    CreateSession,
    RenameSession,
    RestoreSession,
    SendMessage,
    SessionCommand,
    StopTurn,
)
from holdfast.domain.errors import Conflict, NotFound, Rejected
from holdfast.domain.events import (
    AnyEvent,
    InputReceived,
    SessionArchived,
    SessionCreated,
    SessionRenamed,
    SessionRestored,
    StopRequested,
    WaitAnswered,
)
from holdfast.domain.session import Session

TITLE_FROM_TEXT = 60


def create(command: CreateSession, *, session: str, profile: str, cwd: str, id: str, by: str) -> list[AnyEvent]:
    """The first events of a session. Defaults for profile and cwd are the caller's to choose."""
    if command.title is not None:
        _title_not_blank(command.title)
    title = command.title or title_from(command.text or "")
    events: list[AnyEvent] = [SessionCreated(session=session, profile=profile, cwd=cwd, title=title, by=by)]
    if command.text is not None:
        _not_blank(command.text)
        events.append(InputReceived(input=id, text=command.text, mode="queue", by=by))
    return events


def decide(session: Session, command: SessionCommand, *, id: str, by: str) -> list[AnyEvent]:
    """The events that the command causes. `id` is the command's id."""
    if not session.exists:
        raise NotFound(f"There is no session {session.id}.", hint="`holdfast sessions` lists them.")
    match command:
        case SendMessage(text=text, mode=mode):
            return _send(session, text, InputReceived(input=id, text=text, mode=mode, by=by))
        case StopTurn():
            if session.turn is None:
                raise Conflict("No turn is running, so there is nothing to stop.")
            if session.turn.stop is not None:
                raise Conflict("This turn is being stopped already.")
            return [StopRequested(turn=session.turn.number, by=by)]
        case RenameSession(title=title):
            _title_not_blank(title)
            return [SessionRenamed(title=title, by=by)]
        case ArchiveSession():
            if session.archived:
                raise Conflict("It is archived already.")
            if session.turn is not None or session.queue:
                raise Conflict("It is still at work.", hint=f"`holdfast stop {session.id}` first.")
            return [SessionArchived(by=by)]
        case RestoreSession():
            if not session.archived:
                raise Conflict("It is not archived.")
            return [SessionRestored(by=by)]
        case _ as never:
            assert_never(never)


def _send(session: Session, text: str, received: InputReceived) -> list[AnyEvent]:
    _not_blank(text)
    events: list[AnyEvent] = []
    if session.archived:
        events.append(SessionRestored(by=received.by))
    events.append(received)
    turn = session.turn
    if turn is not None and turn.wait is not None and turn.wait.purpose == "resume":
        events.append(WaitAnswered(turn=turn.number, wait=turn.wait.wait, answer="resume", by=received.by))
    return events


def _not_blank(text: str) -> None:
    if not text.strip():
        raise Rejected("The message is empty.", hint="Say something, for example: say hello")


def _title_not_blank(title: str) -> None:
    if not title.strip():
        raise Rejected("The title is blank.")


def title_from(text: str) -> str:
    """A title from the first line of the first message."""
    line = text.lstrip()[: 4 * TITLE_FROM_TEXT].partition("\n")[0].strip()
    return line if len(line) <= TITLE_FROM_TEXT else line[: TITLE_FROM_TEXT - 1].rstrip() + "…"
