"""What goes wrong with writing to a server, in words that say what to do."""

from __future__ import annotations

import psycopg

from holdfast.domain.errors import Corrupt, Fenced, HoldfastError, NotReady, Unavailable
from holdfast.store.postgres.connections import Database, explain

OPERATION_STATES = ("21", "22", "23", "42")
"""Classes of SQLSTATE: something is wrong with a statement or its values, so that trying again cannot help."""


def name_in_use(database: Database, node: str) -> Unavailable:
    """Return the message for a gateway whose name another one has."""
    return Unavailable(
        f"Another gateway on {database} is called {node}.",
        hint="Stop that one, or give this one another name: `holdfast serve --node NAME`, or `name` in [node] of"
        " config.toml.",
    )


def taken_over(database: Database, node: str) -> Fenced:
    """Return the message for a gateway whose name another one took while it was away."""
    return Fenced(
        f"Another gateway on {database} is called {node} now; this one has stopped writing.",
        hint="Stop one of them, or start it under another name: `holdfast serve --node NAME`.",
    )


def shorter_log(end: int, acknowledged: int) -> Corrupt:
    """Return why the store stops when the log has lost events."""
    return Corrupt(
        f"The log ends at event {end}, but event {acknowledged} was acknowledged: the server has lost what it had"
        " confirmed.",
        hint="This gateway has stopped. Restore the newest copy of the database (the old primary, if a standby took its"
        " place), then restart the gateway.",
    )


def lost(database: Database, why: str) -> Unavailable:
    """Return the message if a connection ended before anything was written."""
    return Unavailable(f"The connection to {database} was lost: {why}.", hint="It is tried again automatically.")


def in_doubt_after(database: Database, why: str) -> Unavailable:
    """Return the message if a connection ended while something was written."""
    return Unavailable(
        f"The connection to {database} was lost in the middle of a commit: {why}. It may have happened.",
        hint="Look before you try again, or try again under the same command id.",
    )


def is_trouble(error: psycopg.Error) -> bool:
    """Whether the server has a problem, and not just this operation."""
    gone = psycopg.errors.UndefinedTable | psycopg.errors.InsufficientPrivilege
    return isinstance(error, gone) or (error.sqlstate or "")[:2] not in OPERATION_STATES


def locked(database: Database) -> NotReady:
    """Return the message while somebody else holds the lock of the log."""
    return NotReady(
        f"Another program keeps the log of {database} locked, so nothing can be written.",
        hint="Another gateway that is frozen loses the lock after some seconds; `SELECT * FROM pg_locks` on the server"
        " shows who has it.",
    )


def refusal(error: psycopg.Error, database: Database) -> HoldfastError:
    """Return what a refusal of the server means."""
    if isinstance(error, psycopg.errors.DiskFull):
        return Unavailable(f"The disk of {database} is full.", hint="Free some space; it recovers automatically.")
    return explain(error, database)
