"""The tables of the projections, and how a row is stored in them: the same for every engine.

A field of a row is a column; lists and structs are stored as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import compress
from operator import itemgetter, ne
from typing import NamedTuple, get_type_hints

import msgspec
from msgspec.inspect import BoolType, DictType, ListType, StructType, UnionType, type_info

from holdfast.domain.card import Board
from holdfast.store.rows import AnswerRow, CardRow, R, Row, RunRow, SessionRow, TaskRow, TurnRow, WaitRow


class Head(NamedTuple):
    """The last version of a stream, and the span of its last event."""

    version: int
    span: int


SPAN = 16
"""Versions of a stream in one span; the queries know it, too."""
KEPT_LIVES = 20
REPLACED = "another process opened the store"
"""Why the life of the process before has ended."""
Key = tuple[object, ...]
"""The type of a row and the values of its key."""
TABLES: dict[type[Row], tuple[str, tuple[str, ...]]] = {
    SessionRow: ("sessions", ("id",)),
    TurnRow: ("turns", ("session", "turn")),
    WaitRow: ("waits", ("id",)),
    AnswerRow: ("answers", ("session", "version")),
    TaskRow: ("tasks", ("id",)),
    Board: ("boards", ("id",)),
    CardRow: ("cards", ("id",)),
    RunRow: ("runs", ("card", "run")),
}
"""The table of each row, and its key."""
PROJECTIONS = (*(table for table, _ in TABLES.values()), "card_links", "deleted")
"""The tables that are made of events, and can be rebuilt from them."""
DELETE_SESSION = (
    "delete_events",
    "delete_spans",
    "delete_session",
    "delete_turns",
    "delete_waits",
    "delete_answers",
    "delete_cursors",
    "delete_last_session",
    "delete_partials",
    "delete_lease",
    "mark_stream_deleted",
)
DELETE_TASK = ("delete_events", "delete_spans", "delete_task", "mark_stream_deleted")
Conversion = Callable[[object], object]


def decode_rows(row_type: type[R], columns: Sequence[str], stored: Iterable[Sequence[object]]) -> list[R]:
    """Rows of a query as structs. Each field needs a column; columns without a field are left out."""
    pick, conversions = _plan(row_type, tuple(columns))
    found: list[R] = []
    for values in stored:
        picked = list(pick(values))
        for place, convert in conversions:
            picked[place] = convert(picked[place])
        found.append(row_type(*picked))
    return found


@cache
def _plan(
    row_type: type[msgspec.Struct], columns: tuple[str, ...]
) -> tuple[Callable[[Sequence[object]], tuple[object, ...]], list[tuple[int, Conversion]]]:
    fields = row_type.__struct_fields__
    hints = get_type_hints(row_type)
    places = [columns.index(field) for field in fields]
    found = [(place, _conversion(hints[field])) for place, field in enumerate(fields)]
    return itemgetter(*places), [(place, convert) for place, convert in found if convert is not None]


def _conversion(kind: type) -> Conversion | None:
    if isinstance(type_info(kind), BoolType):
        return bool
    if not _is_json(kind):
        return None
    decode: Callable[[str], object] = msgspec.json.Decoder(kind).decode
    return lambda value: None if value is None else decode(str(value))


def _is_json(kind: type) -> bool:
    info = type_info(kind)
    parts = info.types if isinstance(info, UnionType) else (info,)
    return any(isinstance(part, ListType | DictType | StructType) for part in parts)


def field_encoders(row_type: type[msgspec.Struct]) -> dict[int, Conversion]:
    """The fields that are stored in another form, by their number: lists and structs are JSON."""
    hints = get_type_hints(row_type)
    return {place: _to_json for place, field in enumerate(row_type.__struct_fields__) if _is_json(hints[field])}


def _to_json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def differences(before: tuple[object, ...], after: tuple[object, ...]) -> tuple[int, ...]:
    """The numbers of the fields in which two rows differ."""
    return tuple(compress(range(len(after)), map(ne, before, after)))
