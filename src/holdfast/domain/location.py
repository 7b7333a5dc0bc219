"""The location of a stored line in the log, readable even if its event is not."""

from __future__ import annotations

import msgspec

from holdfast.domain.errors import Corrupt


class Location(msgspec.Struct, frozen=True, gc=False):
    """The place of a stored line."""

    seq: int
    stream: str
    version: int


_decode = msgspec.json.Decoder(Location).decode


def location(line: bytes) -> Location | None:
    """Return the location of a stored line; None if not even that can be read."""
    try:
        return _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def unreadable_line(line: bytes, error: Exception) -> Corrupt:
    """Return the error for a line whose event this version cannot read."""
    where = location(line)
    name = f"A stored event ({line[:80]!r}…)" if where is None else f"Event {where.version} of {where.stream}"
    return Corrupt(
        f"{name} cannot be read by this version of Holdfast: {error}.",
        hint="A newer version may have written it: upgrade. `holdfast doctor` says more.",
    )
