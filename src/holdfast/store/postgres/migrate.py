"""Prepares a database: creates the tables, or brings those of an older version to the schema of this one.

Under a lock and in one transaction, so that several gateways can start together. A migration that only adds something
leaves older versions beside this one at work, and they can be restarted; one that takes something away from them says
so in a line of its own (`BREAKS`).
"""

from __future__ import annotations

from typing import Any

import psycopg

from holdfast.domain.errors import Rejected
from holdfast.store.postgres.connections import MIGRATING, Database, connect_plain, explained
from holdfast.store.postgres.queries import migrations

MIGRATION_SECONDS = 3_600
BREAKS = "-- Older versions cannot work with this.\n"


async def prepare(database: Database) -> None:
    """Create or migrate the tables; refuse those of a newer version."""
    connection = await connect_plain(database, {"statement_timeout": MIGRATION_SECONDS * 1_000})
    try:
        with explained(database):
            if await _version(connection, database) >= migrations()[-1][0]:
                return  # nothing is written: the user may have no right to
            async with connection.transaction():
                await connection.execute(
                    "SELECT pg_advisory_xact_lock(%s::int, hashtext(%s))", [MIGRATING, database.schema]
                )
                await migrate(connection, database)
    finally:
        await connection.close()


async def migrate(
    connection: psycopg.AsyncConnection[Any], database: Database, known: list[tuple[int, str, str]] | None = None
) -> None:
    """Run the migrations that are missing, in the open transaction; by default those of this version."""
    version = await _version(connection, database)
    if not version:
        found = await connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [database.schema])
        if await found.fetchone() is None:
            await connection.execute(f'CREATE SCHEMA "{database.schema}"'.encode())
        await connection.execute(_fold_text(connection.pgconn.server_version, await _has_icu(connection)).encode())
    for number, _, statements in known or migrations():
        if number > version:
            await connection.execute(statements.encode())
            await connection.execute("UPDATE schema_version SET version = %s", [number])
            if BREAKS in statements:
                await connection.execute("UPDATE schema_version SET usable_from = %s", [number])


async def has_tables(connection: psycopg.AsyncConnection[Any], database: Database) -> bool:
    """Whether a gateway has ever used the database."""
    found = await connection.execute("SELECT to_regclass(%s)", [f'"{database.schema}".schema_version'])
    return await found.fetchone() != (None,)


async def _version(connection: psycopg.AsyncConnection[Any], database: Database) -> int:
    """The last migration that was run; 0 where there are no tables. Rejected for one that we cannot work with."""
    if not await has_tables(connection, database):
        return 0
    row = await (await connection.execute("SELECT version, usable_from FROM schema_version")).fetchone()
    assert row is not None
    (version, usable_from), known = row, migrations()[-1][0]
    if usable_from > known:
        raise Rejected(
            f"This database was written by a newer Holdfast (schema {version}, this one knows {known}).",
            hint="Upgrade Holdfast; nothing was changed.",
        )
    return int(version)


async def _has_icu(connection: psycopg.AsyncConnection[Any]) -> bool:
    found = await connection.execute("SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'")
    return await found.fetchone() is not None


def _fold_text(server_version: int, has_icu: bool) -> str:
    """The function by which letters match in either case. Before PostgreSQL 18 "STRASSE" does not find "Straße", and
    without ICU such a server knows only the letters of its own locale.
    """
    if server_version >= 180_000:
        folded = 'casefold(t COLLATE "pg_unicode_fast")'
    else:
        folded = 'lower(t COLLATE "und-x-icu")' if has_icu else "lower(t)"
    return f"CREATE FUNCTION fold_text(t TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE RETURN {folded}"
