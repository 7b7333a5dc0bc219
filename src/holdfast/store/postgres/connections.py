"""Connections to a PostgreSQL server, and why there is none, in words that say what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.domain.errors import HoldfastError, NotReady, Rejected, Unavailable
from holdfast.store.postgres.wire import Wire

SCHEMA = "holdfast"
OLDEST_SERVER = 15
CONNECT_SECONDS = 10
TURN, MIGRATING, PRESENCE, INDEXING = 46_900, 46_901, 46_902, 46_903
"""The first halves of the keys of advisory locks; the second is that of the schema, or of a node."""
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
POOLER = "A connection pooler (such as pgbouncer) is between Holdfast and PostgreSQL."
DIRECTLY = "Give the address of PostgreSQL itself: Holdfast keeps about 8 connections of its own open."
ADDRESS = "It looks like this: postgresql://user@host:5432/database"
SessionSettings = dict[str, str | int]
SESSION: SessionSettings = {
    "idle_in_transaction_session_timeout": 3_000,
    "idle_session_timeout": 0,
    "statement_timeout": 25_000,
    "default_transaction_isolation": r"read\ committed",
    "tcp_keepalives_idle": 10,
    "tcp_keepalives_interval": 5,
    "tcp_keepalives_count": 3,
    "jit": "off",
}
"""So that a client that is frozen or cut off holds the lock for seconds, and not for hours, whatever the server is set
to; and for less than the others wait for it (`StoreTimings.lock`), or each of them would refuse a write. A statement
ends before our patience with its answer (`StoreTimings.answer`), so that it is not asked again while it runs. In
another isolation, what is read under the lock would be as it was before the lock was there.
"""
WRITER: SessionSettings = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}
"""What is written is found by its key, also before the server has statistics of a table that grows quickly."""


@dataclass(frozen=True, slots=True)
class Database:
    """Where the tables are: a server with a database (`url` may hold a password), and a schema in it."""

    url: str = field(repr=False)
    schema: str = SCHEMA

    def __post_init__(self) -> None:
        if not _SCHEMA_NAME.fullmatch(self.schema):
            raise Rejected(f"{self.schema!r} cannot be the name of a schema.", hint="Use a-z, 0-9 and _.")
        self.parameters()

    def parameters(self) -> dict[str, Any]:
        """Return what the address says, as libpq reads it."""
        try:
            return conninfo_to_dict(self.url)
        except psycopg.ProgrammingError:  # its message may show the password
            raise Rejected("The address of the database cannot be read.", hint=ADDRESS) from None

    def __str__(self) -> str:
        said = self.parameters()
        where = str(said.get("host") or said.get("service") or "the local socket")
        port = f":{said['port']}" if said.get("port") else ""
        return f"{said.get('dbname') or 'the default database'} on {where}{port}"


async def connect(database: Database, settings: SessionSettings | None = None) -> Wire:
    """Connect for pipelines. Unavailable or Rejected, with what to do."""
    return Wire(await connect_plain(database, settings))


async def connect_plain(database: Database, settings: SessionSettings | None = None) -> psycopg.AsyncConnection[Any]:
    """Connect with psycopg, and check that it is a server that can be worked with."""
    given = database.parameters()
    chosen = SESSION | (settings or {}) | {"search_path": database.schema}
    options = " ".join(f"-c {name}={value}" for name, value in chosen.items())
    wanted: dict[str, Any] = {
        "options": f"{given.get('options') or ''} {options}".strip(),
        "connect_timeout": given.get("connect_timeout") or CONNECT_SECONDS,
        "application_name": given.get("application_name") or "holdfast",
        "client_encoding": "UTF8",
    }
    with explained(database):
        connection = await psycopg.AsyncConnection.connect(database.url, autocommit=True, **wanted)
        try:
            await _check_server(connection, database)
        except BaseException:
            await connection.close()
            raise
    return connection


async def _check_server(connection: psycopg.AsyncConnection[Any], database: Database) -> None:
    pg = connection.pgconn
    if pg.server_version < OLDEST_SERVER * 10_000:
        version = pg.server_version // 10_000
        raise Rejected(f"PostgreSQL {version} is too old.", hint=f"Use version {OLDEST_SERVER} or newer.")
    if (encoding := pg.parameter_status(b"server_encoding") or b"UTF8") != b"UTF8":
        what = f"The database is encoded in {encoding.decode()}."
        raise Rejected(what, hint="Create one with: createdb --encoding UTF8 --template template0 NAME")
    if pg.parameter_status(b"in_hot_standby") == b"on":
        what = f"{database} is a standby, which takes no writes."
        raise Unavailable(what, hint="Name all servers, and add target_session_attrs=read-write to the address.")
    found = await (await connection.execute("SELECT pg_backend_pid()")).fetchone()
    if found is None or found[0] != pg.backend_pid:
        raise Rejected(
            POOLER,
            hint=DIRECTLY,
        )


@contextmanager
def explained(database: Database) -> Iterator[None]:
    """Say in our own words why the database cannot be used."""
    try:
        yield
    except psycopg.Error as error:
        raise explain(error, database) from error
    except OSError as error:
        raise Unavailable(f"{database} cannot be reached: {error}.", hint="Is the server running?") from error


def explain(error: psycopg.Error, database: Database) -> HoldfastError:
    """Return what an error of the server means, and what to do."""
    said = " ".join(str(error).split())
    for pattern, kind, meaning, hint in _MEANINGS:
        if re.search(pattern, said, re.IGNORECASE):
            message = meaning.format(database=database, name=database.parameters().get("dbname") or "NAME")
            return kind(
                message, hint=hint.format(schema=database.schema, name=database.parameters().get("dbname") or "NAME")
            )
    detail = (error.diag.message_primary or said).rstrip(".")
    return Unavailable(f"{database} cannot be used: {detail}.", hint="Check the address and the log of the server.")


_MEANINGS: tuple[tuple[str, type[HoldfastError], str, str], ...] = (
    (
        r"canceling statement due to",
        NotReady,
        "{database} took too long for an answer.",
        "It is busy, its statistics are old (`VACUUM ANALYZE`), or somebody locked a table: see pg_stat_activity.",
    ),
    (
        r"unsupported startup parameter|unrecognized startup|pgbouncer",
        Rejected,
        POOLER,
        DIRECTLY,
    ),
    (
        r'database ".*" does not exist',
        Rejected,
        "There is no such database: {database}.",
        "Create it with: createdb --encoding UTF8 {name}",
    ),
    (
        r"password authentication failed|no password supplied|role .* does not exist|authentication failed",
        Rejected,
        "{database} does not let us in.",
        "Check the user and the password in the address, or the password file (~/.pgpass).",
    ),
    (
        r"server does not support SSL|sslmode value .* invalid when SSL support",
        Rejected,
        "{database} offers no TLS, but the address demands it (sslmode).",
        "Turn on `ssl` in postgresql.conf, or use sslmode=prefer if the way to the server is safe.",
    ),
    (
        r"pg_hba\.conf (entry|rejects).*(no encryption|SSL off)",
        Rejected,
        "{database} does not let us in without TLS.",
        "Add sslmode=verify-full to the address, or allow this host in pg_hba.conf.",
    ),
    (
        r"pg_hba\.conf",
        Rejected,
        "{database} does not let us in from this host.",
        "Allow it in pg_hba.conf of the server.",
    ),
    (
        r"certificate|root\.crt|SSL error",
        Rejected,
        "The certificate of {database} was not accepted.",
        "Set sslrootcert in the address to the certificate of its authority (sslrootcert=system for a public one).",
    ),
    (
        r"too many clients|remaining connection slots|too many connections",
        NotReady,
        "{database} has no free connection.",
        "Raise max_connections of the server (or the limit of the user); Holdfast needs about 8.",
    ),
    (
        r"permission denied|must be owner",
        Rejected,
        "The user of {database} may not create or change the tables of Holdfast.",
        "As an administrator of the database: CREATE SCHEMA {schema} AUTHORIZATION user",
    ),
    (
        r"starting up|shutting down|in recovery mode|not yet accepting connections",
        NotReady,
        "{database} is starting or stopping.",
        "Wait a moment.",
    ),
    (
        r"read-only transaction|session is read-only|is in hot standby",
        Unavailable,
        "{database} takes no writes: it is a standby or was made read-only.",
        "Name all servers, and add target_session_attrs=read-write to the address.",
    ),
    (
        r"server closed the connection|terminating connection|connection is (lost|closed)|connection has been closed",
        Unavailable,
        "The connection to {database} was lost.",
        "Try again when the server can be reached.",
    ),
    (
        r"could not translate host name|Name or service not known|Connection refused|No such file or directory"
        r"|timeout|No route to host|Network is unreachable",
        Unavailable,
        "{database} cannot be reached.",
        "Is the server running, and are the host and the port right?",
    ),
)
