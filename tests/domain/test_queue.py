"""The queue: whatever people do to it, it is what a plain list would be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.command import InputMode
from holdfast.domain.commands import ReviseInput, WithdrawInput
from holdfast.domain.errors import Conflict, Rejected
from holdfast.domain.events import Record
from holdfast.domain.events.actor import TaskActor
from holdfast.domain.events.session import InputReceived, TurnFinished
from holdfast.domain.history import Note, UserMessage
from holdfast.domain.next_step import Begin
from holdfast.domain.queue import QUEUE_LIMIT, edited
from holdfast.domain.session import Session
from holdfast.domain.session_fold import fold
from holdfast.domain.session_fork import fork
from tests.actors import person
from tests.domain.book import ID, Book

FORK = "fedcba9876543210"
modes: st.SearchStrategy[InputMode] = st.sampled_from(["queue", "steer", "interrupt"])
edits = st.tuples(
    st.integers(0, 8), st.none() | st.text(min_size=1, max_size=3), st.none() | modes, st.none() | st.integers(1, 12)
)
steps = st.lists(
    st.tuples(st.just("say"), modes)
    | st.tuples(st.just("withdraw"), st.integers(0, 8))
    | st.tuples(st.just("revise"), edits)
    | st.tuples(st.just("take"), st.none()),
    max_size=30,
)
Line = list[tuple[str, str, str]]
"""The model: input, text, mode, in order."""


def shown(session: Session) -> Line:
    return [(queued.event.input, queued.event.text, queued.event.mode) for queued in session.queue]


def pick(line: Line, number: int) -> str:
    return line[number % len(line)][0] if line else "nobody"


@given(steps=steps)
def test_after_any_edits_it_equals_a_plain_list(steps: list[tuple[str, object]]) -> None:
    book, line = Book(), Line()
    for verb, how in steps:
        match verb, how:
            case "say", str(mode):
                text = f"text {len(book.records)}"
                line.append((book.say(text, mode), text, mode))  # type: ignore[arg-type]
            case "withdraw", int(number):
                input = pick(line, number)
                tell(book, WithdrawInput(input=input), possible=bool(line))
                line = [entry for entry in line if entry[0] != input]
            case "revise", (int(number), text, mode, place):
                input = pick(line, number)
                changes = [part for part in (text, mode, place) if part is not None]
                possible = bool(line and changes) and all(str(part).strip() for part in changes)
                command = ReviseInput(input=input, text=text, mode=mode, place=place)  # type: ignore[arg-type]
                tell(book, command, possible=possible)
                if possible:
                    line = model(line, input, text, mode, place)
            case _:
                step = book.next()
                if isinstance(step, Begin):
                    book.begin().write(TurnFinished(turn=step.turn, outcome="done", reason="enough"))
                    line = [entry for entry in line if entry[0] not in step.inputs]
        assert shown(book.session) == line
    assert shown(fold(Session(ID), book.records)) == line


def tell(book: Book, command: ReviseInput | WithdrawInput, *, possible: bool) -> None:
    if possible:
        book.tell(command)
        return
    with pytest.raises((Conflict, Rejected)):
        book.tell(command)


def model(line: Line, input: str, text: object, mode: object, place: object) -> Line:
    at = [entry[0] for entry in line].index(input)
    _, old_text, old_mode = line.pop(at)
    entry = (input, old_text if text is None else str(text), old_mode if mode is None else str(mode))
    line.insert(at if place is None else min(int(str(place)) - 1, len(line)), entry)
    return line


def test_what_a_turn_has_taken_cannot_be_changed_any_more() -> None:
    book = Book()
    taken = book.say("one")
    book.begin()
    for command in (ReviseInput(input=taken, text="two"), WithdrawInput(input=taken)):
        with pytest.raises(Conflict, match="a turn has taken it"):
            book.tell(command)


def test_the_model_gets_the_revised_text_and_never_the_withdrawn_one() -> None:
    book = Book()
    first, second = book.say("one"), book.say("two")
    book.tell(ReviseInput(input=first, text="uno"))
    book.tell(WithdrawInput(input=second))
    book.begin().answer("done")
    assert [m.text for m in book.session.messages if isinstance(m, UserMessage)] == ["uno"]
    assert not book.session.queue


def test_steer_now_lets_a_queued_message_join() -> None:
    book = Book("work")
    book.begin()
    later = book.say("and this")
    book.tell(ReviseInput(input=later, mode="steer"))
    assert book.join() == [later]


def test_a_message_in_front_is_taken_first() -> None:
    book = Book("work")
    book.begin().answer("done")
    one, two = book.say("one"), book.say("two")
    book.tell(ReviseInput(input=two, place=1))
    assert shown(book.session) == [(two, "two", "queue"), (one, "one", "queue")]


def test_the_message_of_a_task_may_be_moved_and_withdrawn_but_not_edited() -> None:
    book = Book("work")
    book.begin()
    book.write(InputReceived(input="task-1", text="it ended", mode="queue", by=TaskActor(task="1"), source="task"))
    with pytest.raises(Conflict, match="not edited"):
        book.tell(ReviseInput(input="task-1", text="it did not"))
    book.tell(ReviseInput(input="task-1", mode="steer", place=1))
    assert book.join() == ["task-1"]
    assert Note(1, "it ended") in book.session.messages


def test_a_fork_reads_as_its_parent_read() -> None:
    book = Book("work")
    book.begin()
    one, two, gone = book.say("one"), book.say("two"), book.say("gone")
    book.tell(ReviseInput(input=one, text="uno", mode="steer"))
    book.tell(ReviseInput(input=two, mode="steer", place=1))
    book.tell(WithdrawInput(input=gone))
    waiting = book.say("waiting")
    book.tell(ReviseInput(input=waiting, text="still waiting"))
    assert book.join() == [two, one]
    pairs = fork(book.records, session=FORK, title="fork", by=person("ann"), now=book.now)
    records = [
        Record(seq=n, stream=f"session/{FORK}", version=n, at=at, event=event) for n, (at, event) in enumerate(pairs, 1)
    ]
    copy = fold(Session(FORK), records)
    heard = [message.text for message in copy.messages if isinstance(message, UserMessage)]
    assert heard == ["work", "two", "uno"] and not copy.queue
    assert edited(records)[0] == set()


def test_a_queue_is_bounded_and_says_what_to_do() -> None:
    book = Book("work").begin()
    for number in range(QUEUE_LIMIT):
        book.say(str(number))
    with pytest.raises(Conflict, match="1,000 messages are waiting") as refused:
        book.say("one too many")
    assert "withdraw some" in refused.value.hint
    assert len(book.session.queue) == QUEUE_LIMIT
