"""What a gateway sends that may be newer: fields that this version does not know are dropped.

It is decoded strictly first, since that is quick; only what does not fit is looked at field by field.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import inspect

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


def convert(value: Any, kind: type[T]) -> T:
    """A struct from JSON that was read already, such as what `--json` prints."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return _convert(value, kind)


def lenient_record(found: Any) -> Record | None:
    """A record from its JSON object; None for a kind of event that is not known here."""
    from holdfast.domain.events import Record  # takes long: only those who read events wait for it

    try:
        return convert(found, Record)
    except UnexpectedResponse:
        return None


def _convert(value: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(_known_part(value, _type_info(kind)), kind)  # type: ignore[arg-type]  # a type is hashable
    except msgspec.ValidationError as error:
        raise UnexpectedResponse(f"does not fit ({error})") from error


@cache
def _type_info(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def _known_part(value: Any, type_: inspect.Type) -> Any:
    """The value without the fields that its type does not have, at any depth."""
    if isinstance(type_, inspect.UnionType):
        type_ = next((one for one in type_.types if _fits(value, one)), type_)
    if isinstance(type_, inspect.StructType) and isinstance(value, dict):
        known = {field.encode_name: field.type for field in type_.fields}
        tag = {type_.tag_field: value[type_.tag_field]} if type_.tag_field in value else {}
        return tag | {name: _known_part(inner, known[name]) for name, inner in value.items() if name in known}
    if isinstance(type_, inspect.ListType) and isinstance(value, list):
        return [_known_part(inner, type_.item_type) for inner in value]
    if isinstance(type_, inspect.DictType) and isinstance(value, dict):
        return {name: _known_part(inner, type_.value_type) for name, inner in value.items()}
    return value


def _fits(value: Any, type_: inspect.Type) -> bool:
    """Whether this member of a union is the one for a value that is an object or a list."""
    if isinstance(type_, inspect.StructType):
        return isinstance(value, dict) and (type_.tag_field is None or value.get(type_.tag_field) == type_.tag)
    if isinstance(type_, inspect.DictType):
        return isinstance(value, dict)
    return isinstance(type_, inspect.ListType) and isinstance(value, list)
