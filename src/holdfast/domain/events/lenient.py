"""Records of a gateway that is newer than the client: fields that the client does not know are left out."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from holdfast.domain.events import Record


def lenient_record(found: object) -> Record | None:
    """A record from its JSON object; None for a kind of event that is not known here."""
    try:
        return msgspec.convert(found, Record)
    except msgspec.ValidationError:
        found = known_part(found, _record_type())
    try:
        return msgspec.convert(found, Record)
    except msgspec.ValidationError:
        return None


@cache
def _record_type() -> inspect.Type:
    return inspect.type_info(Record)


def known_part(value: Any, type_: inspect.Type) -> Any:
    """The value without the fields that its type does not have, at any depth."""
    if isinstance(type_, inspect.UnionType):
        type_ = next((one for one in type_.types if _fits(value, one)), type_)
    if isinstance(type_, inspect.StructType) and isinstance(value, dict):
        known = {field.encode_name: field.type for field in type_.fields}
        tag = {type_.tag_field: value[type_.tag_field]} if type_.tag_field in value else {}
        return tag | {name: known_part(inner, known[name]) for name, inner in value.items() if name in known}
    if isinstance(type_, inspect.ListType) and isinstance(value, list):
        return [known_part(inner, type_.item_type) for inner in value]
    if isinstance(type_, inspect.DictType) and isinstance(value, dict):
        return {name: known_part(inner, type_.value_type) for name, inner in value.items()}
    return value


def _fits(value: Any, type_: inspect.Type) -> bool:
    """Whether this member of a union is the one for a value that is an object or a list."""
    if isinstance(type_, inspect.StructType):
        return isinstance(value, dict) and (type_.tag_field is None or value.get(type_.tag_field) == type_.tag)
    if isinstance(type_, inspect.DictType):
        return isinstance(value, dict)
    return isinstance(type_, inspect.ListType) and isinstance(value, list)
