"""A PostgreSQL database as the source or the target of a copy of the whole store, in one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
from msgspec.structs import astuple

from holdfast.domain.errors import Conflict, Corrupt, NotFound, Unavailable
from holdfast.store.copying import COPIED, COPIED_COUNTERS, PARTIAL_COLUMNS, RowValues, without_nul
from holdfast.store.postgres.connections import PRESENCE, TURN, Database, connect_plain
from holdfast.store.postgres.migrate import has_tables, prepare
from holdfast.store.postgres.troubles import locked, refusal
from holdfast.store.settings_store import SettingsRow

Connection = psycopg.AsyncConnection[Any]
PATIENT = {"statement_timeout": 0, "idle_in_transaction_session_timeout": 0, "lock_timeout": 10_000}
PAGE = 2_000
USERS = """
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid::BIGINT = %s AND pid <> pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
PARTIALS = """
SELECT stream, MAX(turn), MAX(step), string_agg(text, '' ORDER BY number), string_agg(thinking, '' ORDER BY number),
    MAX(at)
FROM partials GROUP BY stream HAVING COUNT(*) = MAX(number) + 1 ORDER BY stream
"""
SET_COUNTER = """
INSERT INTO counters (name, value) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
NOT_EMPTY = ("events", "commands", "devices", "deliveries", "shared_settings", "shared_keys")
NEWEST = "SELECT text FROM shared_settings ORDER BY version DESC LIMIT 1"
KEY = "SELECT key FROM shared_keys WHERE name = %s"
ADD_SETTINGS = "INSERT INTO shared_settings (version, text, changed_by, changed_at) VALUES (%s, %s, %s, %s)"
ADD_KEY = "INSERT INTO shared_keys (name, key) VALUES (%s, %s)"


class PostgresTables:
    """The tables in an open transaction."""

    def __init__(self, connection: Connection, database: Database) -> None:
        self._connection = connection
        self._database = database

    async def columns(self, table: str) -> tuple[str, ...]:
        if table == "partials":
            return tuple(sorted(PARTIAL_COLUMNS))
        return tuple(sorted(await self._types(table)))

    async def _types(self, table: str) -> dict[str, str]:
        asked = (
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
        )
        return dict(await _fetch(self._connection, asked, self._database.schema, table))

    async def count(self, table: str) -> int:
        ((count,),) = await _fetch(self._connection, f"SELECT count(*) FROM {table}")  # noqa: S608  # names of ours
        return int(count)

    async def rows(self, table: str, columns: tuple[str, ...]) -> AsyncIterator[RowValues]:
        places = [PARTIAL_COLUMNS.index(name) for name in columns] if table == "partials" else range(len(columns))
        async with self._connection.cursor(f"copy_{table}", binary=True) as cursor:
            cursor.itersize = PAGE
            await cursor.execute(_select(table, columns).encode())
            async for row in cursor:
                yield tuple([int(value) if isinstance(value := row[place], bool) else value for place in places])

    async def write(self, table: str, columns: tuple[str, ...], rows: AsyncIterator[RowValues]) -> None:
        if table == "counters":
            async for row in rows:
                await self._connection.execute(SET_COUNTER, row)
            return
        types = await self._types(table)
        truths = {place for place, name in enumerate(columns) if types[name] == "boolean"}
        pieces = table == "partials"
        names = (*columns, "number") if pieces else columns
        statement = f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)"
        async with self._connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
            copy.set_types([types[name] for name in names])
            async for row in rows:
                values = [bool(value) if place in truths else value for place, value in enumerate(without_nul(row))]
                await copy.write_row([*values, 0] if pieces else values)

    async def settings(self) -> str:
        """The settings that all nodes share; empty if there are none."""
        return next((str(text) for (text,) in await _fetch(self._connection, NEWEST)), "")

    async def key(self, name: str) -> bytes:
        """A key that all nodes share; empty if there is none."""
        return next((bytes(key) for (key,) in await _fetch(self._connection, KEY, name)), b"")

    async def write_settings(self, row: SettingsRow) -> None:
        """Have settings that all nodes share."""
        await self._connection.execute(ADD_SETTINGS, astuple(row))
        self._check_same("the settings", row.text, await self.settings())

    async def write_key(self, name: str, key: bytes) -> None:
        """Have a key that all nodes share."""
        await self._connection.execute(ADD_KEY, [name, key])
        self._check_same(f"the key {name}", key, await self.key(name))

    @staticmethod
    def _check_same(what: str, ours: object, theirs: object) -> None:
        if ours != theirs:
            raise Corrupt(f"The copy differs from its source in {what}, so it was given up. Nothing was changed.")

    async def check_alone(self) -> None:
        ((count,),) = await _fetch(self._connection, USERS, PRESENCE)
        if count:
            raise Conflict(f"A gateway uses {self._database}.", hint="Stop every gateway that uses it first.")

    async def commit(self) -> None:
        await self._connection.execute("SELECT recount()")
        try:
            await self._connection.execute("COMMIT")
        except psycopg.OperationalError as error:
            what = f"The connection to {self._database} was lost in the middle of the commit: the copy may be complete."
            hint = "Run it again: if it is complete, that says that the target is not empty."
            raise Unavailable(what, hint=hint) from error
        for table in COPIED:  # without statistics the first queries would be slow
            await self._connection.execute(f"ANALYZE {table}".encode())


def _select(table: str, columns: tuple[str, ...]) -> str:
    if table == "partials":
        return PARTIALS
    only = f" WHERE name IN {COPIED_COUNTERS}" if table == "counters" else ""
    return f"SELECT {', '.join(columns)} FROM {table}{only} ORDER BY {', '.join(COPIED[table])}"  # noqa: S608  # ours


@asynccontextmanager
async def open_source(database: Database) -> AsyncIterator[PostgresTables]:
    """Read a database as it is now; nobody can write to its log meanwhile. An older version is migrated first."""
    async with _connected(database) as connection:
        if not await has_tables(connection, database):
            raise NotFound(f"There is no log of Holdfast in {database}.", hint="Check the address.")
        await prepare(database)
        tables = PostgresTables(connection, database)
        await tables.check_alone()
        await connection.execute("SELECT pg_advisory_lock(%s::int, hashtext(%s))", [TURN, database.schema])
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield tables


@asynccontextmanager
async def open_target(database: Database) -> AsyncIterator[PostgresTables]:
    """Write to a database that is empty, with or without tables."""
    await prepare(database)
    async with _connected(database) as connection:
        tables = PostgresTables(connection, database)
        await tables.check_alone()
        await connection.execute("BEGIN")
        await connection.execute("SELECT pg_advisory_xact_lock(%s::int, hashtext(%s))", [TURN, database.schema])
        for table in NOT_EMPTY:
            if await _fetch(connection, f"SELECT 1 FROM {table} LIMIT 1"):  # noqa: S608
                hint = f"Use another database. To throw away what is in this one: DROP SCHEMA {database.schema} CASCADE"
                raise Conflict(f"{database} is not empty: it has rows in {table}.", hint=hint)
        yield tables


@asynccontextmanager
async def _connected(database: Database) -> AsyncIterator[Connection]:
    connection = await connect_plain(database, {**PATIENT})
    try:
        with _explained(database):
            yield connection
    finally:
        await connection.close()


@contextmanager
def _explained(database: Database) -> Iterator[None]:
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        raise locked(database) from error
    except psycopg.Error as error:
        problem = refusal(error, database)
        problem.message += " Nothing was changed."
        problem.args = (problem.message,)
        raise problem from error


async def _fetch(connection: Connection, asked: str, *values: object) -> list[tuple[Any, ...]]:
    return await (await connection.execute(asked.encode(), values)).fetchall()
