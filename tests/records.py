"""Records as a gateway sends them, for tests that care about a few fields of an event."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from holdfast.domain.events import AnyEvent

KINDS = {kind.__name__: kind for kind in get_args(AnyEvent)}
Json = dict[str, Any]


def event_json(kind: str, **fields: Any) -> Json:
    """An event with these fields; all others are as their type has them by default, or empty. A `by` may be the name
    of a client.
    """
    if isinstance(fields.get("by"), str):
        fields["by"] = {"type": "person", "client": fields["by"]}
    info = msgspec.inspect.type_info(KINDS[kind])
    assert isinstance(info, msgspec.inspect.StructType)
    empty = {field.encode_name: _empty(field.type) for field in info.fields if field.required}
    found = msgspec.to_builtins(msgspec.convert({"kind": kind} | empty | fields, KINDS[kind]))
    assert isinstance(found, dict)
    return found


def record_json(kind: str, *, version: int = 1, at: int = 0, stream: str = "session/s", **fields: Any) -> Json:
    """A record with such an event."""
    return {"seq": version, "stream": stream, "version": version, "at": at, "event": event_json(kind, **fields)}


def _empty(type_: msgspec.inspect.Type) -> Any:
    match type_:
        case msgspec.inspect.StrType():
            return ""
        case msgspec.inspect.IntType():
            return 0
        case msgspec.inspect.BoolType():
            return False
        case msgspec.inspect.ListType():
            return []
        case msgspec.inspect.LiteralType(values=values):
            return values[0]
        case msgspec.inspect.UnionType(types=types) if any(isinstance(one, msgspec.inspect.NoneType) for one in types):
            return None
        case msgspec.inspect.UnionType():
            return {"type": "person", "client": "cli"}
        case msgspec.inspect.StructType(fields=inner):
            return {field.encode_name: _empty(field.type) for field in inner if field.required}
        case _:
            raise AssertionError(type_)
