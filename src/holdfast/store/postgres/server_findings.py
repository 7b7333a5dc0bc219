"""What the doctor says about a PostgreSQL server, given what it answered: pure functions."""

from __future__ import annotations

import msgspec

from holdfast.domain.text import size
from holdfast.store.contract import Finding
from holdfast.store.postgres.connections import Database

ROOM = 10
"""How many connections should be free for a gateway, with some for the administrators of the server."""
MUCH_WAL = 1 << 30
MANY_DEAD_ROWS = 100_000
OLD_TRANSACTION_SECONDS = 3_600
LAST_TRANSACTION_AGE = 1_500_000_000
"""Of 2,100,000,000, at which PostgreSQL takes no writes any more."""


class ServerState(msgspec.Struct, frozen=True):
    """The answer to `server_state`."""

    used_connections: int
    connections: int
    standbys: int
    synchronous_standbys: int
    sees_standbys: bool
    kept_wal_bytes: int
    database_bytes: int
    transaction_age: int
    oldest_transaction_seconds: int


class DeadRows(msgspec.Struct, frozen=True):
    """The answer to `dead_rows`."""

    name: str
    live: int
    dead: int


def server_finding(database: Database, settings: dict[str, str]) -> Finding:
    """Whether it keeps what it confirms."""
    unsafe = [name for name in ("fsync", "full_page_writes") if settings.get(name) == "off"]
    if unsafe:
        detail = f"{' and '.join(unsafe)} of {database} is off: a crash can lose or damage what was acknowledged"
        return Finding("postgres", False, detail, "Turn it on in postgresql.conf.")
    return Finding("postgres", True, f"{settings['server_version']}, {database}")


def connections_finding(state: ServerState) -> Finding:
    """Whether gateways find a free connection."""
    free = state.connections - state.used_connections
    hint = "" if free >= ROOM else "Raise max_connections; a gateway keeps about 8 open."
    return Finding("connections", free >= ROOM, f"{state.used_connections} of {state.connections} are used", hint)


def replication_finding(state: ServerState, settings: dict[str, str]) -> Finding:
    """Whether standbys get what is committed, and none that is away fills the disk."""
    if state.kept_wal_bytes > MUCH_WAL:
        detail = f"a replication slot that nobody uses keeps {size(state.kept_wal_bytes)} of WAL, and fills the disk"
        return Finding("replication", False, detail, "Start its standby, or drop it: see pg_replication_slots.")
    names = settings.get("synchronous_standby_names")
    if not names:
        there = f", {state.standbys} connected: a failover can lose the last commits" if state.standbys else ""
        return Finding("replication", True, f"a commit waits for no standby{there}")
    if not state.sees_standbys:
        return Finding("replication", True, f"a commit waits for {names}; this user may not see whether it is there")
    if not state.synchronous_standbys:
        detail = f"a commit waits for {names}, which is not connected, so nothing can be written"
        return Finding("replication", False, detail, "Start it, or change synchronous_standby_names.")
    return Finding("replication", True, f"a commit waits for {names}, which is connected")


def vacuum_finding(state: ServerState, settings: dict[str, str], dead: DeadRows | None) -> Finding:
    """Whether the server can clean up behind us."""
    if settings.get("autovacuum") == "off":
        return Finding("vacuum", False, "autovacuum is off, so the database grows and gets slower", "Turn it on.")
    if state.transaction_age > LAST_TRANSACTION_AGE:
        detail = f"no VACUUM for {state.transaction_age:,} transactions; at 2,100,000,000 the server takes no writes"
        return Finding("vacuum", False, detail, "Run `VACUUM (FREEZE)` in this database, and find out what held it up.")
    if state.oldest_transaction_seconds > OLD_TRANSACTION_SECONDS:
        detail = f"a transaction is open for {state.oldest_transaction_seconds // 60} minutes, so nothing is cleaned up"
        return Finding("vacuum", False, detail, "End it: see xact_start in pg_stat_activity.")
    if dead is not None and dead.dead > max(MANY_DEAD_ROWS, dead.live):
        detail = f"{dead.name} has {dead.dead:,} dead rows and {dead.live:,} others, so it is slow"
        return Finding("vacuum", False, detail, f"Run `VACUUM ANALYZE {dead.name}`; does autovacuum keep up?")
    return Finding("vacuum", True, "autovacuum is on and keeps up")


def size_finding(state: ServerState) -> Finding:
    """How much it is; a server does not say how much space is left."""
    detail = f"{size(state.database_bytes)}; how much space is left is to be watched on the server"
    return Finding("database size", True, detail)
