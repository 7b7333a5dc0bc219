"""The messages that a session causes in its chat."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.domain.command import InputSource
from holdfast.domain.events import AnyEvent, Record
from holdfast.domain.events.actor import PersonActor
from holdfast.domain.events.parts import Usage
from holdfast.domain.events.session import InputReceived, ModelResponded, NoteReceived
from holdfast.notify.conversation import MOST_PARTS, chat_messages_of
from holdfast.notify.markdown_parts import split_markdown
from holdfast.store.outbox_store import DeliveryRow
from holdfast.store.rows import SessionRow

SESSION = SessionRow("a" * 16, "a title", "demo", "/", 1, 1, 1, chat="telegram:42")
PARAGRAPH = "word " * 700
ANSWER = ModelResponded(
    turn=1, step=1, text="", thinking="", calls=[], finish_reason="stop", usage=Usage(), duration_ms=1
)


def told(event: AnyEvent) -> list[DeliveryRow]:
    record = Record(seq=7, stream=f"session/{SESSION.id}", version=3, at=9, event=event)
    return chat_messages_of(record, SESSION, mask=lambda text: text.replace("secret", "[hidden]"))


def answered(text: str) -> list[str]:
    return [row.detail for row in told(replace(ANSWER, text=text))]


def written(text: str, by: PersonActor, source: InputSource = "message") -> list[str]:
    event = InputReceived(input="i", text=text, mode="queue", by=by, source=source)
    return [row.detail for row in told(event)]


def test_an_answer_is_told_in_parts_that_keep_their_order() -> None:
    text = "\n\n".join(f"{number} {PARAGRAPH}" for number in range(MOST_PARTS))
    rows = told(replace(ANSWER, text=text))
    assert [row.detail for row in rows] == split_markdown(text)
    assert [row.summary for row in rows[:2]] == ["answers", "answers (part 2)"]
    assert sorted(rows, key=lambda row: row.id) == rows
    assert {(row.destination, row.kind, row.link) for row in rows} == {("telegram:42", "answer", f"/s/{SESSION.id}")}


def test_of_an_answer_with_too_many_parts_the_first_ones_are_told_and_that_it_is_longer() -> None:
    text = "\n\n".join(f"{number} {PARAGRAPH}" for number in range(MOST_PARTS + 1))
    parts = answered(text)
    assert len(parts) == MOST_PARTS
    assert parts[:-1] == split_markdown(text)[: MOST_PARTS - 1]
    assert parts[-1].startswith(split_markdown(text)[MOST_PARTS - 1])
    assert parts[-1].endswith("The answer is longer. The dashboard and `holdfast sessions log` have all of it.")


def test_what_is_told_has_no_secrets_and_an_empty_answer_is_not_told() -> None:
    assert answered("the secret") == ["the [hidden]"]
    assert answered(" \n") == []
    assert [row.detail for row in told(NoteReceived(text="a task printed the secret", task="t"))] == [
        "a task printed the [hidden]"
    ]


def test_what_a_person_writes_is_told_unless_it_was_written_in_a_chat_of_that_service() -> None:
    assert written("a secret", PersonActor(client="cli")) == ["*cli:* a [hidden]"]
    assert written("hello", PersonActor(client="telegram", device="Ada (42)")) == []
    assert written("hello", PersonActor(client="cli"), source="comment") == []
