"""Reading what a newer gateway sends: fields that this version does not know are dropped.

Responses are decoded strictly first, since that is quick; only what does not fit is looked at field by field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from holdfast.client.errors import UnexpectedResponse

if TYPE_CHECKING:
    from holdfast.domain.events import Record

T = TypeVar("T")


def decode(body: bytes, kind: type[T]) -> T:
    """A response of the gateway. UnexpectedResponse when something is missing in it."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        return _convert(msgspec.json.decode(body), kind)
    except msgspec.DecodeError as error:
        raise UnexpectedResponse(f"is not JSON ({error})") from error


def decode_record(record: Any) -> Record | None:
    """A record of the log; None when its kind, or a value in it, is not known to this version."""
    from holdfast.domain.events import Record

    try:
        return msgspec.convert(record, Record)
    except msgspec.ValidationError:
        try:
            return _convert(record, Record)
        except UnexpectedResponse:
            return None


def convert(value: Any, kind: type[T]) -> T:
    """A struct from JSON that was read already, such as what `--json` prints."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return _convert(value, kind)


def _convert(value: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(_known(value, msgspec.inspect.type_info(kind)), kind)
    except msgspec.ValidationError as error:
        raise UnexpectedResponse(f"does not fit ({error})") from error


def _known(value: Any, info: msgspec.inspect.Type) -> Any:
    """The value without the fields that its type does not have, at any depth."""
    match value, info:
        case dict(), msgspec.inspect.StructType(fields=fields, tag_field=tag_field):
            types = {field.encode_name: field.type for field in fields}
            return {
                name: _known(part, types[name]) if name in types else part
                for name, part in value.items()
                if name in types or name == tag_field
            }
        case dict(), msgspec.inspect.DictType(value_type=of):
            return {name: _known(part, of) for name, part in value.items()}
        case list(), msgspec.inspect.ListType(item_type=of):
            return [_known(part, of) for part in value]
        case _, msgspec.inspect.UnionType(types=types):
            fitting = [of for of in types if _may_be(value, of)]
            return _known(value, fitting[0]) if len(fitting) == 1 else value
        case _:
            return value


def _may_be(value: Any, info: msgspec.inspect.Type) -> bool:
    match value, info:
        case dict(), msgspec.inspect.StructType(tag_field=str(tag_field), tag=tag):
            return bool(value.get(tag_field) == tag)
        case dict(), msgspec.inspect.StructType() | msgspec.inspect.DictType():
            return True
        case list(), msgspec.inspect.ListType():
            return True
        case _:
            return False
