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
from holdfast.store.postgres.connections import Database, connect, explain, explained
from holdfast.store.postgres.log_reads import checked
from holdfast.store.postgres.queries import migrations, statement
from holdfast.store.postgres.rebuild import rebuild_projections
from holdfast.store.postgres.server_findings import (
    DeadRows,
    ServerState,
    connections_finding,
    replication_finding,
    server_finding,
    size_finding,
    vacuum_finding,
)
from holdfast.store.postgres.troubles import lost
from holdfast.store.postgres.wire import ConnectionEnded, ResultRows, SqlStatement, Wire
from holdfast.store.rows import R
from holdfast.store.settings_store import SettingsRow
from holdfast.store.tables import decode_rows

PAGE = 2_000
TRIP_SECONDS = 3_600.0
REBUILD = "Stop the gateway, then: holdfast doctor --rebuild"
T = TypeVar("T")


def check_server(address: str) -> list[Finding]:
    """Check the database at an address, which may be in use. Nothing is changed."""
    try:
        return _apart(_check(Database(address)))
    except (HoldfastError, psycopg.Error, ConnectionEnded) as error:
        problem = explain(error, Database(address)) if isinstance(error, psycopg.Error) else error
        return [Finding("database", False, str(problem), getattr(problem, "hint", ""))]


def settings_at(address: str) -> list[SettingsRow]:
    """Return the settings that all nodes on the database at an address share, newest first; none if it has none yet.

    None either if it cannot be asked: `check_server` says why.
    """
    try:
        return _apart(_settings(Database(address)))
    except (HoldfastError, psycopg.Error, ConnectionEnded):
        return []


async def _settings(database: Database) -> list[SettingsRow]:
    wire = await connect(database, {"default_transaction_read_only": "on"})
    try:
        table = SqlStatement("SELECT to_regclass($1) IS NOT NULL", [f"{database.schema}.shared_settings"])
        if (await _ask(wire, table)).rows == [(False,)]:
            return []
        return [SettingsRow(*row) for row in (await _ask(wire, statement("settings_versions"))).rows]
    finally:
        wire.close()


def rebuild_at(address: str) -> tuple[int, set[str]]:
    """Rebuild the projections of the database at an address."""
    database = Database(address)
    try:
        with explained(database):
            return _apart(rebuild_projections(database))
    except ConnectionEnded as error:
        raise lost(database, str(error)) from error


def _apart(work: Coroutine[Any, Any, T]) -> T:
    """Run it in a thread of its own, since a loop may run in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _check(database: Database) -> list[Finding]:
    wire = await connect(database, {"default_transaction_read_only": "on", "statement_timeout": 0})
    try:
        found = await _server(wire, database)
        table = SqlStatement("SELECT to_regclass($1) IS NOT NULL", [f"{database.schema}.schema_version"])
        if (await _ask(wire, table)).rows == [(False,)]:
            return [*found, Finding("database", True, "empty; the next start of a gateway creates the tables")]
        asked = SqlStatement("SELECT version, usable_from FROM schema_version")
        ((version, usable_from),) = (await _ask(wire, asked)).rows
        known = migrations()[-1][0]
        if usable_from > known:
            detail = f"schema {version} is newer than this Holdfast knows ({known})"
            return [*found, Finding("database", False, detail, "Upgrade Holdfast.")]
        if version < known:
            detail = f"schema {version}; the next start of a gateway of this version brings it to {known}"
            return [*found, Finding("database", True, detail)]
        return [*found, await _checksums(wire), await _projections(wire)]
    finally:
        wire.close()


async def _server(wire: Wire, database: Database) -> list[Finding]:
    settings = dict((await _ask(wire, statement("server_settings"))).rows)
    (state,) = _decoded(ServerState, await _ask(wire, statement("server_state")))
    dead = _decoded(DeadRows, await _ask(wire, statement("dead_rows", {"schema": database.schema})))
    return [
        server_finding(database, settings),
        connections_finding(state),
        replication_finding(state, settings),
        vacuum_finding(state, settings, dead[0] if dead else None),
        size_finding(state),
    ]


def _decoded(kind: type[R], answer: ResultRows) -> list[R]:
    return decode_rows(kind, answer.columns, answer.rows)


async def _ask(wire: Wire, asked: SqlStatement) -> ResultRows:
    (answer,) = await wire.run([asked], within=TRIP_SECONDS)
    return answer


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
        return Finding("projections", False, detail, REBUILD)
    if wrong := [name for (name,) in (await _ask(wire, statement("wrong_counts"))).rows]:
        return Finding("projections", False, f"counts are wrong: {', '.join(wrong)}", REBUILD)
    return Finding("projections", True, "agree with the events")
