"""The schema in PostgreSQL agrees with its schema.sql, has the columns of SQLite's, and takes every query."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import psycopg
import pytest

from holdfast.domain.errors import Rejected
from holdfast.store.postgres.connections import Database, connect_plain
from holdfast.store.postgres.migrate import BREAKS, _fold_text, migrate, prepare
from holdfast.store.postgres.queries import migrations, queries
from holdfast.store.postgres.store import open_store
from holdfast.store.reads import SessionCursor
from holdfast.store.rows import StoreCounts
from tests.postgres_server import new_schema, shared_server
from tests.store.conformance import STREAM, A, said, session, started, versions, write

COLUMNS = """
SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default
FROM information_schema.columns WHERE table_schema = %(schema)s ORDER BY 1, 2
"""
CONSTRAINTS = """
SELECT conrelid::regclass::text, contype::text, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = %(schema)s::regnamespace ORDER BY 1, 2, 3
"""
INDEXES = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = %(schema)s ORDER BY 1, 2"
FUNCTIONS = """
SELECT proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = %(schema)s::regnamespace ORDER BY 1
"""
KINDS = """
SELECT relname, relkind::text, relpersistence::text FROM pg_class
WHERE relnamespace = %(schema)s::regnamespace ORDER BY 1
"""
ONLY_HERE = {
    "node_requests",
    "output_copies",
    "shared_settings",
    "shared_keys",
    "looks",
    "schema_version",
    "texts",
    "inputs",
}
OTHERWISE = {"partials"}
"""What the search needs is in a file of its own in SQLite; a text so far is one row there."""


@pytest.fixture
def database() -> Iterator[Database]:
    database = Database(shared_server().url(), new_schema())
    yield database
    drop(database)


def drop(database: Database) -> None:
    shared_server().sql(f"DROP SCHEMA IF EXISTS {database.schema} CASCADE")


def shape(database: Database) -> list[object]:
    """Everything that is in a schema, whatever its name is."""
    with psycopg.connect(database.url, options=f"-c search_path={database.schema}") as db:
        asked = [
            db.execute(query.encode(), {"schema": database.schema}).fetchall()
            for query in (COLUMNS, CONSTRAINTS, INDEXES, FUNCTIONS, KINDS)
        ]
        rows = db.execute("SELECT name, value FROM counters ORDER BY name").fetchall()
    return [repr(found).replace(database.schema, "SCHEMA") for found in asked] + [rows]


async def test_the_migrations_reach_exactly_the_schema(database: Database) -> None:
    await prepare(database)
    truth = Database(database.url, new_schema())
    connection = await connect_plain(truth)
    try:
        await connection.execute(f"CREATE SCHEMA {truth.schema}".encode())
        await connection.execute(_fold_text(connection.pgconn.server_version, has_icu=False).encode())
        await connection.execute((files("holdfast.store.postgres") / "schema.sql").read_bytes())
    finally:
        await connection.close()
    try:
        assert shape(database) == shape(truth)
    finally:
        drop(truth)


def test_the_migrations_are_numbered_without_a_gap() -> None:
    assert [number for number, _, _ in migrations()] == list(range(1, len(migrations()) + 1))


async def test_the_tables_have_the_columns_of_the_other_engine(database: Database) -> None:
    await prepare(database)
    with psycopg.connect(database.url) as db:
        found = db.execute(COLUMNS.encode(), {"schema": database.schema}).fetchall()
    here: dict[str, set[str]] = {}
    for table, column, *_ in found:
        here.setdefault(table, set()).add(column)
    there: dict[str, set[str]] = {}
    with closing(sqlite3.connect(":memory:")) as sqlite:
        sqlite.executescript((files("holdfast.store.sqlite") / "schema.sql").read_text("utf-8"))
        for (table,) in sqlite.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            there[table] = {column for _, column, *_ in sqlite.execute(f"PRAGMA table_info({table})")}
    assert here.keys() - ONLY_HERE == there.keys()
    assert {name for name in there if here[name] != there[name]} == OTHERWISE


async def test_the_server_takes_every_query(database: Database) -> None:
    await prepare(database)
    connection = await connect_plain(database)
    refused: dict[str, str] = {}
    try:
        for name, query in queries().items():
            prepared = connection.pgconn.prepare(name.encode(), query.sql.encode())
            if prepared.error_message and b"could not determine" not in prepared.error_message:
                refused[name] = prepared.error_message.decode()
    finally:
        await connection.close()
    ambiguous = {name for name, why in refused.items() if "is not unique" in why}  # without the types of its parameters
    assert {name: why for name, why in refused.items() if name not in ambiguous} == {}


async def test_preparing_again_and_by_several_at_once_changes_nothing(database: Database) -> None:
    await asyncio.gather(*(prepare(database) for _ in range(4)))
    before = shape(database)
    await prepare(database)
    assert shape(database) == before


async def test_what_an_older_version_wrote_is_counted(database: Database) -> None:
    """Before the migration, and beside a newer version: by triggers."""
    connection = await connect_plain(database)
    await migrate(connection, database, migrations()[:3])
    insert = "INSERT INTO sessions (id, title, profile, cwd, created_at, updated_at, version, message_count, archived)"
    await connection.execute(f"{insert} VALUES ('a', '', '', '', 1, 1, 1, 3, TRUE)".encode())
    await connection.execute("INSERT INTO events VALUES (2, 'session/a', 1, 1, 'k', '', 0, NULL, 2)")
    await prepare(database)
    store = await open_store(database, Path("/nowhere"))
    assert await store.counts() == StoreCounts(1, 1, 3, events=1, seq=2)
    await connection.execute(f"{insert} VALUES ('b', '', '', '', 1, 1, 1, 4, FALSE)".encode())
    await connection.execute("UPDATE sessions SET message_count = message_count + 10, archived = FALSE")
    assert await store.counts() == StoreCounts(2, 0, 27, events=1, seq=2)
    await connection.execute("DELETE FROM sessions WHERE id = 'a'")
    assert await store.counts() == StoreCounts(1, 0, 14, events=1, seq=2)
    await store.close()
    await connection.close()


async def test_a_database_of_a_newer_version_is_refused_and_left_alone(database: Database) -> None:
    await prepare(database)
    shared_server().sql(f"UPDATE {database.schema}.schema_version SET version = 999, usable_from = 998")
    before = shape(database)
    with pytest.raises(Rejected, match="newer Holdfast"):
        await prepare(database)
    assert shape(database) == before


async def test_a_newer_version_that_only_added_something_leaves_this_one_at_work(database: Database) -> None:
    """Nodes are upgraded one by one: the others go on, and can be restarted."""
    await prepare(database)
    store = await open_store(database, Path("/nowhere"))
    await session(store, A, "one")
    assert (await store.session(A)).message_count == 1
    number = len(migrations()) + 1
    adds = "ALTER TABLE {0} ADD COLUMN later BIGINT NOT NULL DEFAULT 7"
    added = "; ".join(adds.format(table) for table in ("sessions", "events", "commands", "turns", "waits", "nodes"))
    connection = await connect_plain(database)
    await migrate(connection, database, [*migrations(), (number, "later", added)])
    assert (await store.session(A)).message_count == 1
    await write(store, STREAM, started(1, "i"), said())
    assert [row.id for row in await store.sessions(archived=False, before=SessionCursor(), limit=9)] == [A]
    await store.close()
    store = await open_store(database, Path("/nowhere"))
    await write(store, STREAM, said())
    assert await versions(store, STREAM) == [1, 2, 3, 4, 5]
    await store.close()
    await migrate(connection, database, [*migrations(), (number + 1, "much later", BREAKS)])
    await connection.close()
    with pytest.raises(Rejected, match="newer Holdfast"):
        await open_store(database, Path("/nowhere"))
