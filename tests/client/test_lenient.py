"""A newer gateway: fields and kinds that this version does not know."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from msgspec import inspect

from holdfast.client.errors import UnexpectedResponse
from holdfast.client.events import EventReceived, RecordItem, RecordReceived, TextDelta, follow_events
from holdfast.client.http import Json
from holdfast.client.lenient import convert, decode, lenient_record
from holdfast.domain.events.session import ModelResponded, SessionRenamed
from holdfast.gateway.server import PARTS
from holdfast.schemas.inbox import Inbox
from holdfast.schemas.tasks import OutputGap, OutputPage


def record(version: int, **event: object) -> Json:
    return {"seq": version, "stream": "session/s", "version": version, "at": 0, "event": event}


RENAMED: Json = {"kind": "SessionRenamed", "title": "new", "by": {"type": "person", "client": "api"}}
RESPONDED: Json = {
    "kind": "ModelResponded",
    "turn": 1,
    "step": 1,
    "text": "hello",
    "thinking": "",
    "calls": [{"call": "c", "tool": "read", "arguments": "{}"}],
    "finish_reason": "stop",
    "usage": {"input_tokens": 1, "output_tokens": 2, "cached_tokens": 0, "cost": None},
    "duration_ms": 3,
}


ENTRY: Json = {
    **{"kind": "approval", "id": "w1", "title": "a", "what": "May I?", "since": 1, "commands": [], "link": "/s/a"},
    **{"stream": "session/a", "version": 2, "session": "a"},
}


def test_inbox_with_a_kind_that_only_a_newer_gateway_knows_is_read() -> None:
    newer = {"entries": [ENTRY, ENTRY | {"kind": "expired_key", "id": "w2"}], "total": 2, "waits": []}
    assert [entry.kind for entry in decode(msgspec.json.encode(newer), Inbox).entries] == ["approval", "expired_key"]


def closed_literals(type_: inspect.Type, path: str) -> Iterator[str]:
    """Where a type allows only certain words. Not in parts of events: an unknown event is left out as a whole."""
    match type_:
        case inspect.LiteralType():
            yield path
        case inspect.StructType(cls=cls, fields=fields) if not cls.__module__.startswith("holdfast.domain.events"):
            for field in fields:
                yield from closed_literals(field.type, f"{path}.{field.name}")
        case inspect.UnionType(types=types):
            for one in types:
                yield from closed_literals(one, path)
        case inspect.ListType(item_type=inner) | inspect.DictType(value_type=inner):
            yield from closed_literals(inner, f"{path}[]")
        case _:
            pass


def test_responses_allow_values_that_only_a_newer_gateway_knows() -> None:
    results = {one.result for part in PARTS for one in part.operations if one.result is not None}
    closed = [path for shape in results for path in closed_literals(inspect.type_info(shape), shape.__name__)]
    assert not closed


def test_fields_that_are_not_known_are_dropped_at_any_depth() -> None:
    newer = record(1, **RENAMED | {"colour": "red", "by": RENAMED["by"] | {"place": "Bern"}})
    read = lenient_record(newer | {"node": 7})
    assert read is not None
    assert isinstance(read.event, SessionRenamed)
    assert read.event.title == "new"


def test_fields_of_the_parts_of_a_list_are_dropped_too() -> None:
    call = RESPONDED["calls"][0] | {"urgent": True}
    read = lenient_record(record(1, **RESPONDED | {"calls": [call]}))
    assert read is not None
    assert isinstance(read.event, ModelResponded)
    assert read.event.calls[0].tool == "read"


def test_kinds_and_values_that_are_not_known_are_skipped_and_the_rest_continues() -> None:
    delta = TextDelta(1, 1, 0, "x")
    items: list[RecordItem] = [
        RecordReceived(record(1, kind="SessionPainted", colour="red")),
        delta,
        RecordReceived(record(2, **RESPONDED | {"finish_reason": "bored"})),
        RecordReceived(record(3, **RENAMED)),
    ]
    seen = list(follow_events(iter(items)))
    assert seen[0] is delta
    assert [item.version for item in seen if isinstance(item, EventReceived)] == [3]


def test_a_response_may_have_more_and_not_less() -> None:
    page: Json = {"offset": 0, "next": 1, "size": 1, "state": "done", "dropped": {"start": 0, "end": 1}, "text": "x"}
    assert decode(msgspec.json.encode(page | {"more": 1}), OutputPage).dropped == OutputGap(0, 1)
    del page["size"]
    with pytest.raises(UnexpectedResponse, match="size"):
        decode(msgspec.json.encode(page), OutputPage)
    with pytest.raises(UnexpectedResponse, match="not JSON"):
        decode(b"<html>", OutputPage)


def test_what_was_read_already_may_have_more_and_not_less() -> None:
    page: Json = {"offset": 0, "next": 1, "size": 1, "state": "done", "dropped": {"start": 0, "end": 1}, "text": "x"}
    assert convert(page, OutputPage) == convert(page | {"more": 1}, OutputPage)
    del page["size"]
    with pytest.raises(UnexpectedResponse, match="size"):
        convert(page, OutputPage)


@pytest.mark.parametrize("wrong", [{"counts": [1]}, {"counts": "many"}, {"counts": {"done": "many"}}, []])
def test_a_response_of_another_shape_is_refused_with_a_message(wrong: object) -> None:
    with pytest.raises(UnexpectedResponse, match="does not fit"):
        convert(wrong, Counted)


class Counted(msgspec.Struct, forbid_unknown_fields=True):
    counts: dict[str, int]
