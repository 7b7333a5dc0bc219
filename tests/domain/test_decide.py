"""What a command means for a session as it is now."""

from __future__ import annotations

import pytest

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
from holdfast.domain.events.session import (
    InputReceived,
    SessionArchived,
    SessionCreated,
    SessionRenamed,
    SessionRestored,
)
from holdfast.domain.session import Session
from holdfast.domain.session_rules import TITLE_FROM_TEXT, create, decide, title_from
from tests.actors import person
from tests.domain.book import ID, Book


def test_a_session_begins_with_its_first_message() -> None:
    events = create(
        CreateSession(text="say hi\nsay bye"), session=ID, profile="demo", cwd="/w", id="c1", by=person("ann")
    )
    assert events == [
        SessionCreated(session=ID, profile="demo", cwd="/w", title="say hi", by=person("ann")),
        InputReceived(input="c1", text="say hi\nsay bye", mode="queue", by=person("ann")),
    ]


def test_a_session_may_begin_in_silence_and_under_a_title() -> None:
    [created] = create(CreateSession(title="work"), session=ID, profile="demo", cwd="/w", id="c1", by=person("ann"))
    assert isinstance(created, SessionCreated)
    assert created.title == "work"


def test_a_title_is_the_first_line_shortened() -> None:
    assert title_from("\n\n  first \nsecond") == "first"
    assert title_from(" \n\t") == ""
    long = title_from("word " * 100)
    assert len(long) <= TITLE_FROM_TEXT
    assert long.endswith("…")


def test_renaming_archiving_and_restoring() -> None:
    book = Book()
    assert book.tell(RenameSession(title="new")) == (SessionRenamed(title="new", by=person("ann")),)
    assert book.tell(ArchiveSession()) == (SessionArchived(by=person("ann")),)
    assert (book.session.title, book.session.archived) == ("new", True)
    assert book.tell(RestoreSession()) == (SessionRestored(by=person("ann")),)
    assert not book.session.archived


def test_a_message_brings_an_archived_session_back() -> None:
    book = Book()
    book.tell(ArchiveSession())
    book.say("hello again")
    assert not book.session.archived


@pytest.mark.parametrize("command", [StopTurn(), RestoreSession()])
def test_a_command_that_has_no_object_is_a_conflict(command: SessionCommand) -> None:
    with pytest.raises(Conflict):
        Book().tell(command)


def test_a_stop_that_comes_too_late_does_not_hit_the_next_turn() -> None:
    book = Book("one").begin()
    with pytest.raises(Conflict, match="Turn 7 has ended; turn 1 is running now"):
        book.tell(StopTurn(turn=7))
    book.tell(StopTurn(turn=1))
    assert book.session.turn is not None and book.session.turn.stop is not None


def test_a_turn_is_stopped_once() -> None:
    book = Book("one").begin()
    book.tell(StopTurn())
    with pytest.raises(Conflict, match="already"):
        book.tell(StopTurn())


def test_what_is_at_work_is_not_archived() -> None:
    book = Book("one")
    with pytest.raises(Conflict, match="at work"):
        book.tell(ArchiveSession())
    with pytest.raises(Conflict, match="at work"):
        book.begin().tell(ArchiveSession())


def test_what_is_archived_is_not_archived_again() -> None:
    book = Book()
    book.tell(ArchiveSession())
    with pytest.raises(Conflict, match="already"):
        book.tell(ArchiveSession())


@pytest.mark.parametrize("command", [SendMessage(text=" \n"), RenameSession(title="  ")])
def test_blank_texts_are_rejected(command: SessionCommand) -> None:
    with pytest.raises(Rejected):
        Book().tell(command)
    with pytest.raises(Rejected):
        create(CreateSession(text=" "), session=ID, profile="demo", cwd="/", id="c1", by=person("ann"))


def test_a_session_that_was_never_created_is_not_found() -> None:
    with pytest.raises(NotFound, match="There is no session nope"):
        decide(Session("nope"), StopTurn(), id="c1", by=person("ann"))
