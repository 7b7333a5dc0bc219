"""Reading stored lines when some of them may be from a newer version, or damaged."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.errors import Corrupt
from holdfast.domain.events import Record, decode, decode_many


def decode_readable(lines: Sequence[bytes]) -> tuple[list[Record], list[Corrupt]]:
    """Read all lines that can be read, and say which cannot."""
    try:
        return decode_many(lines), []
    except Corrupt:
        records: list[Record] = []
        unreadable: list[Corrupt] = []
        for line in lines:
            try:
                records.append(decode(line))
            except Corrupt as error:
                unreadable.append(error)
        return records, unreadable
