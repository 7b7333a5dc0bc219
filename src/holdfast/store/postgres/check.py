"""What the doctor asks of a PostgreSQL server: whether it can be used, and has and keeps what we stored."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg

from holdfast.domain.errors import Corrupt, HoldfastError
from holdfast.domain.events import decode_readable
from holdfast.store.contract import PAGE_BYTES, Finding
from holdfast.store.postgres.connections import Database, connect, explain
from holdfast.store.postgres.log_reads import checked
from holdfast.store.postgres.queries import migrations, statement
from holdfast.store.postgres.rebuild import rebuild_projections
from holdfast.store.postgres.wire import ConnectionEnded, ResultRows, SqlStatement, Wire

PAGE = 2_000
TRIP_SECONDS = 300.0
ROOM = 10
"""So many connections a gateway should find free, with some for the people who look after the server."""
SETTINGS = ("server_version", "fsync", "full_page_writes", "autovacuum", "max_connections", "synchronous_standby_names")
T = TypeVar("T")


def check_server(address: str) -> list[Finding]:
    """Check the database at an address, which may be in use. Nothing is changed."""
    try:
        return _apart(_check(Database(address)))
    except (HoldfastError, psycopg.Error, ConnectionEnded) as error:
        problem = explain(error, Database(address)) if isinstance(error, psycopg.Error) else error
        return [Finding("database", False, str(problem), getattr(problem, "hint", ""))]


def rebuild_at(address: str) -> tuple[int, set[str]]:
    """Rebuild the projections of the database at an address."""
    return _apart(rebuild_projections(Database(address)))


def _apart(work: Coroutine[Any, Any, T]) -> T:
    """Run it in a thread of its own, since a loop may run in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _check(database: Database) -> list[Finding]:
    wire = await connect(database, {"default_transaction_read_only": "on"})
    try:
        settings = dict((await _ask(wire, _settings())).rows)
        found = [_server(database, settings), await _connections(wire, settings)]
        table = SqlStatement("SELECT to_regclass($1) IS NOT NULL", [f"{database.schema}.schema_version"])
        if (await _ask(wire, table)).rows == [(False,)]:
            return [*found, Finding("database", True, "empty; the next start of a gateway creates the tables")]
        ((version,),) = (await _ask(wire, SqlStatement("SELECT version FROM schema_version"))).rows
        known = migrations()[-1][0]
        if version > known:
            detail = f"schema {version} is newer than this Holdfast knows ({known})"
            return [*found, Finding("database", False, detail, "Upgrade Holdfast.")]
        return [*found, await _checksums(wire), await _projections(wire)]
    finally:
        wire.close()


async def _ask(wire: Wire, asked: SqlStatement) -> ResultRows:
    (answer,) = await wire.run([asked], within=TRIP_SECONDS)
    return answer


def _settings() -> SqlStatement:
    return SqlStatement("SELECT name, setting FROM pg_settings WHERE name = ANY($1)", [list(SETTINGS)])


def _server(database: Database, settings: dict[str, str]) -> Finding:
    """Whether it keeps what it confirms."""
    unsafe = [name for name in ("fsync", "full_page_writes") if settings.get(name) == "off"]
    if unsafe:
        detail = f"{' and '.join(unsafe)} of {database} is off: a crash can lose or damage what was acknowledged"
        return Finding("postgres", False, detail, "Turn it on in postgresql.conf.")
    if settings.get("autovacuum") == "off":
        return Finding("postgres", False, f"autovacuum of {database} is off, so it gets slower", "Turn it on.")
    standby = settings.get("synchronous_standby_names")
    replicated = f"waits for the standby {standby}" if standby else "waits for no standby"
    return Finding("postgres", True, f"{settings['server_version']}, {database}; a commit {replicated}")


async def _connections(wire: Wire, settings: dict[str, str]) -> Finding:
    ((used,),) = (await _ask(wire, SqlStatement("SELECT count(*) FROM pg_stat_activity"))).rows
    most = int(settings["max_connections"])
    hint = "" if most - used >= ROOM else "Raise max_connections; a gateway keeps about 8 open."
    return Finding("connections", most - used >= ROOM, f"{used} of {most} are used", hint)


async def _checksums(wire: Wire) -> Finding:
    count = after = 0
    unreadable: list[Corrupt] = []
    try:
        while True:
            asked = statement("lines_to_index", {"after": after, "limit": PAGE, "size": PAGE_BYTES})
            answer = await _ask(wire, asked)
            if not answer.rows:
                break
            lines = checked(answer, PAGE, PAGE_BYTES).lines
            count, after = count + len(lines), int(answer.rows[-1][2])
            unreadable += decode_readable(lines)[1]
    except Corrupt as error:
        return Finding("events", False, error.message, "The stream stops there; restore a backup.")
    if unreadable:
        detail = f"{len(unreadable)} of {count} cannot be read, and their streams stop there. {unreadable[0].message}"
        return Finding("events", False, detail, unreadable[0].hint)
    return Finding("events", True, f"{count} events, all checksums are correct")


async def _projections(wire: Wire) -> Finding:
    """The counts that people see against the events that they come from."""
    found = [id for (id,) in (await _ask(wire, statement("miscounted_sessions"))).rows]
    if found:
        detail = f"{len(found)} sessions differ from their events, the first is {found[0]}"
        return Finding("projections", False, detail, "Stop the gateway, then: holdfast doctor --rebuild")
    return Finding("projections", True, "agree with the events")
