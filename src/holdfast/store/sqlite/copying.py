"""A SQLite database as the source or the target of a copy of the whole store.

A target is made beside its place and moved there when it is complete, so a copy that was cut is never taken for a log.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from holdfast.domain.errors import Conflict, NotFound, Unavailable
from holdfast.store.copying import COPIED, COPIED_COUNTERS, RowValues, without_nul
from holdfast.store.sqlite.connections import connect_reader, connect_writer, explained
from holdfast.store.sqlite.migrate import migrate, prepare

PAGE = 2_000
UNFINISHED = ".copying"
"""The end of the name of a database that is not complete."""


class SqliteTables:
    """The tables on one connection. Nobody else uses the database: the caller holds the lock of its home."""

    def __init__(self, connection: sqlite3.Connection, final: Path | None = None) -> None:
        self._connection = connection
        self._final = final

    async def columns(self, table: str) -> tuple[str, ...]:
        found = self._connection.execute("SELECT name FROM pragma_table_info(?) ORDER BY name", [table])
        return tuple(name for (name,) in found)

    async def count(self, table: str) -> int:
        return int(self._connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])  # noqa: S608  # ours

    async def rows(self, table: str, columns: tuple[str, ...]) -> AsyncIterator[RowValues]:
        cursor = self._connection.execute(_select(table, columns))
        while page := cursor.fetchmany(PAGE):
            for row in page:
                yield without_nul(row)

    async def write(self, table: str, columns: tuple[str, ...], rows: AsyncIterator[RowValues]) -> None:
        places = ", ".join("?" * len(columns))
        insert = f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608
        page: list[RowValues] = []
        async for row in rows:
            page.append(row)
            if len(page) == PAGE:
                self._connection.executemany(insert, page)
                page.clear()
        self._connection.executemany(insert, page)

    async def check_alone(self) -> None:
        return None

    async def commit(self) -> None:
        """Have everything on the disk, then give it its name."""
        assert self._final is not None
        connection = self._connection
        connection.execute("COMMIT")
        unfinished = Path(connection.execute("PRAGMA database_list").fetchone()[2])
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA user_version={connection.execute('PRAGMA user_version').fetchone()[0]}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # it syncs the whole file
        connection.close()
        _give_name(unfinished, self._final)


def _give_name(unfinished: Path, final: Path) -> None:
    for derived in ("search.db", "search.db-wal", "search.db-shm"):  # of another log
        final.with_name(derived).unlink(missing_ok=True)
    unfinished.rename(final)
    directory = os.open(final.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _select(table: str, columns: tuple[str, ...]) -> str:
    names = ", ".join(f"CAST({name} AS BLOB)" if (table, name) == ("events", "data") else name for name in columns)
    only = f" WHERE name IN {COPIED_COUNTERS}" if table == "counters" else ""
    return f"SELECT {names} FROM {table}{only} ORDER BY {', '.join(COPIED[table])}"  # noqa: S608  # only names of ours


@contextmanager
def open_source(path: Path) -> Iterator[SqliteTables]:
    """Read a database as it is now; one of an older version is migrated first, as a start of a gateway would."""
    if not path.exists():
        raise NotFound(f"There is no {path}.", hint="Name a home whose log is in SQLite, or its holdfast.db.")
    prepare(path)
    with explained(path), closing(connect_reader(path)) as connection:
        connection.execute("BEGIN")
        yield SqliteTables(connection)


@contextmanager
def open_target(path: Path) -> Iterator[SqliteTables]:
    """Make a new database, which has its place when it is committed."""
    if path.exists():
        raise Conflict(f"{path} exists already.", hint=f"Move it aside first: mv {path} {path}.old")
    unfinished = path.with_name(path.name + UNFINISHED)
    _remove(unfinished)
    try:
        with _space(path), closing(connect_writer(unfinished)) as connection:
            connection.execute("PRAGMA journal_mode=OFF")  # until it is complete it is thrown away anyway
            connection.execute("PRAGMA synchronous=OFF")
            migrate(connection)
            connection.execute("BEGIN IMMEDIATE")
            yield SqliteTables(connection, path)
    finally:
        _remove(unfinished)


@contextmanager
def _space(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            what = f"The disk of {path.parent} does not take the copy: {error}. Nothing was changed."
            raise Unavailable(what, hint="Free some space, then run it again.") from error
        raise Unavailable(f"{path} cannot be written: {error}. Nothing was changed.") from error


def _remove(path: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm", f"{path.name}-journal"):
        with suppress(FileNotFoundError):
            path.with_name(name).unlink()
