"""Responses of a gateway that may be newer: fields that this version does not know are dropped.

They are decoded strictly first, since that is quick; only what does not fit is looked at field by field.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from holdfast.client.errors import UnexpectedResponse

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


def _convert(value: Any, kind: type[T]) -> T:
    from holdfast.domain.events.lenient import known_part

    try:
        return msgspec.convert(known_part(value, msgspec.inspect.type_info(kind)), kind)
    except msgspec.ValidationError as error:
        raise UnexpectedResponse(f"does not fit ({error})") from error
