"""The typed rows are the tables of `schema.sql`, and the decoder makes them of what SQL returns."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from importlib.resources import files
from typing import Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest

from holdfast.domain.card import Board
from holdfast.domain.events.chapter import ResetPolicy
from holdfast.domain.events.parts import ShownArgument
from holdfast.domain.session import TurnState
from holdfast.store.rows import CardRow, RunRow, SessionRow, TaskRow, TurnRow, WaitRow
from holdfast.store.tables import decode_rows

SCHEMA = (files("holdfast.store.sqlite") / "schema.sql").read_text("utf-8")
TABLES: dict[str, type[msgspec.Struct]] = {
    "sessions": SessionRow,
    "turns": TurnRow,
    "waits": WaitRow,
    "tasks": TaskRow,
    "cards": CardRow,
    "runs": RunRow,
    "boards": Board,
}


def words(kind: object) -> set[str]:
    """All values of a Literal, also inside of a union."""
    if get_origin(kind) is Literal:
        return set(get_args(kind))
    return {word for part in get_args(kind) for word in words(part)}


@pytest.mark.parametrize("table", TABLES)
def test_a_row_has_the_columns_of_its_table(table: str) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        columns = {str(column[1]) for column in db.execute(f"PRAGMA table_info({table})")}
    assert set(TABLES[table].__struct_fields__) == columns


@pytest.mark.parametrize("table", TABLES)
def test_the_literals_of_a_row_are_what_the_database_allows(table: str) -> None:
    statement = SCHEMA.partition(f"CREATE TABLE {table} (")[2].partition(";\n")[0]
    checks = dict(re.findall(r"CHECK \(\s*(\w+) IN\s+\(('[^)]+)\)\s*\)", statement))
    hints = get_type_hints(TABLES[table])
    for column, allowed in checks.items():
        assert words(hints[column]) == set(re.findall(r"'(\w+)'", allowed)), column
    assert len(checks) == {"turns": 1, "waits": 2, "tasks": 4, "cards": 2, "runs": 1, "sessions": 2}.get(table, 0)


def _example(kind: object) -> object:
    allowed = words(kind)
    if allowed:
        return "running" if "running" in allowed else min(allowed)
    return {str: "x", int: 1, bool: False, list[str]: []}.get(kind)  # type: ignore[call-overload]


@pytest.mark.parametrize("table", TABLES)
def test_a_new_row_has_the_defaults_of_its_table(table: str) -> None:
    row_type = TABLES[table]
    given = {field.name: _example(field.type) for field in msgspec.structs.fields(row_type) if field.required}
    stored = {name: "[]" if value == [] else value for name, value in given.items()}
    insert = f"INSERT INTO {table} ({', '.join(stored)}) VALUES (:{', :'.join(stored)}) RETURNING *"
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        cursor = db.execute(insert, stored)
        assert decode_rows(row_type, [column[0] for column in cursor.description], cursor) == [row_type(**given)]


def test_flags_and_json_are_decoded() -> None:
    stored = dict.fromkeys(SessionRow.__struct_fields__, 0)
    values = stored | {
        "pinned": 1,
        "first_input_at": 7,
        "compaction_running": 1,
        "reset_policy": '{"mode":"daily"}',
        "ancestors": '["a"]',
    }
    (row,) = decode_rows(SessionRow, tuple(values), [tuple(values.values())])
    assert row.pinned is True and row.archived is False and row.first_input_at == 7
    assert row.compaction_running is True and row.compaction_requested is False
    assert row.reset_policy == ResetPolicy(mode="daily") and row.ancestors == ["a"]


def test_a_query_without_a_column_of_its_row_is_refused() -> None:
    with pytest.raises((KeyError, ValueError)):
        decode_rows(TurnRow, ("session", "turn"), [])


def test_null_stays_null_and_lists_of_structs_are_decoded() -> None:
    class Sample(msgspec.Struct, frozen=True):
        files: list[str] | None
        shown: list[ShownArgument]

    stored = [(None, '[{"name":"a","value":"b"}]')]
    assert decode_rows(Sample, ("files", "shown"), stored) == [Sample(None, [ShownArgument(name="a", value="b")])]


@pytest.mark.parametrize(
    ("turn", "queued", "compacting", "state"),
    [
        (None, 0, False, "idle"),
        ("done", 0, True, "compacting"),
        ("failed", 2, True, "queued"),
        ("running", 2, True, "running"),
        ("waiting", 0, False, "waiting"),
        ("suspended", 0, False, "suspended"),
    ],
)
def test_the_state_of_a_session(turn: TurnState | None, queued: int, compacting: bool, state: str) -> None:
    row = SessionRow("a", "", "demo", "/", 1, 1, 1, turn_state=turn, queued=queued, compaction_requested=compacting)
    assert row.state == state
