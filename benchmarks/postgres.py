"""Durable appends to PostgreSQL beside raw commits on its server: one connection, one INSERT, one commit a message.

And the same store with many sessions beside one with few: appends, and pages of the list.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import islice
from pathlib import Path

import psycopg
from tests.postgres_server import PostgresServer, make_server

from benchmarks.append import bursts, saying
from benchmarks.measure import LIMIT_SECONDS, MESSAGE_BYTES, Figure, Plan, alternate, timed
from benchmarks.report import Goal, Report
from benchmarks.workload import Workload, fill
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.migrate import prepare
from holdfast.store.postgres.store import PostgresStore, open_store
from holdfast.store.reads import SessionCursor

AREA = "postgres"
DISK = Path("/var/tmp")
GOALS = {1: None, 16: Goal("≥", 1.2), 64: Goal("≥", 1.7)}
"""Of one node, by conversations at once. A commit takes two trips, so one conversation is slower than raw commits."""
FEW, MANY, MANY_QUICK = 10_000, 1_000_000, 100_000
EVENTS_EACH = 10
PAGE = 50
GROWN = Goal("≤", 1.5)
FILL = """
INSERT INTO sessions (id, title, profile, cwd, created_at, updated_at, version)
    SELECT lpad(to_hex(n), 16, '0'), 'session ' || n, 'demo', '/', n, n, {each} FROM generate_series(1, {count}) n;
INSERT INTO spans (stream, number, span)
    SELECT 'session/' || lpad(to_hex(n), 16, '0'), 0, (n - 1) * {each} + 1 FROM generate_series(1, {count}) n;
INSERT INTO events (seq, stream, version, at, kind, data, crc, span)
    SELECT (n - 1) * {each} + v, 'session/' || lpad(to_hex(n), 16, '0'), v, n, 'InputReceived',
        convert_to(repeat('x', 480), 'UTF8'), 0, (n - 1) * {each} + 1
    FROM generate_series(1, {count}) n, generate_series(1, {each}) v;
VACUUM ANALYZE;
CHECKPOINT;
"""
"""Rows as appends would have written them; the events themselves are not read."""


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area. The server syncs to the disk, as it is installed."""
    work = Workload(plan.seed)
    server = make_server({}, DISK)
    try:
        async with _opened(Database(server.url()), plan.scratch) as store:
            streams = [await fill(store, work.id(8), islice(work.turns(tools=False), 100)) for _ in range(max(GOALS))]
            with raw_commits(server.url()) as raw:
                for count, goal in GOALS.items():
                    ours = bursts(*(saying(store, work, stream) for stream in streams[:count]))
                    pairs = await alternate(ours, raw, plan.rounds(60))
                    what = "one conversation" if count == 1 else f"{count} conversations"
                    report.add(pairs.line(AREA, f"appends of {what}", "/s", goal))
        await _growth(plan, report, work, server)
    finally:
        server.remove()


async def _growth(plan: Plan, report: Report, work: Workload, server: PostgresServer) -> None:
    many = MANY_QUICK if plan.quick else MANY
    for name, count in (("few", FEW), ("many", many)):
        server.sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        await prepare(Database(server.url(name)))
        with psycopg.connect(server.url(name), autocommit=True, options="-c search_path=holdfast") as connection:
            for statement in FILL.format(count=count, each=EVENTS_EACH).split(";"):
                connection.execute(statement.encode())
    databases = Database(server.url("many")), Database(server.url("few"))
    async with _opened(databases[0], plan.scratch) as grown, _opened(databases[1], plan.scratch) as small:
        both = (grown, many), (small, FEW)
        for what, figure in (
            ("an append", _appends),
            ("64 appends", _appends_at_once),
            ("the first page of the list", _first_page),
            ("a page in the middle of the list", _middle_page),
        ):
            ours, limit = (figure(store, work, count) for store, count in both)
            pairs = await alternate(ours, limit, plan.rounds(60))
            report.add(pairs.line(AREA, f"{what}: {many:,} sessions, beside {FEW:,}", "s", GROWN))


def _appends(store: PostgresStore, work: Workload, count: int) -> Figure:
    burst = bursts(saying(store, work, _stream(count // 2)))

    async def seconds() -> float:
        return 1 / await burst()

    return seconds


def _appends_at_once(store: PostgresStore, work: Workload, count: int) -> Figure:
    burst = bursts(*(saying(store, work, _stream(count // 3 + number)) for number in range(64)))

    async def seconds() -> float:
        return 64 / await burst()

    return seconds


def _first_page(store: PostgresStore, work: Workload, count: int) -> Figure:
    return lambda: timed(lambda: store.sessions(archived=False, before=SessionCursor(), limit=PAGE))


def _middle_page(store: PostgresStore, work: Workload, count: int) -> Figure:
    middle = SessionCursor(pinned=False, at=count // 2, id="")
    return lambda: timed(lambda: store.sessions(archived=False, before=middle, limit=PAGE))


def _stream(number: int) -> str:
    return f"session/{number:016x}"


@asynccontextmanager
async def _opened(database: Database, scratch: Path) -> AsyncIterator[PostgresStore]:
    store = await open_store(database, scratch)
    try:
        yield store
    finally:
        await store.close()


@contextmanager
def raw_commits(url: str) -> Iterator[Figure]:
    """Commits a second of one INSERT each, on one connection."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE raw (seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data BYTEA NOT NULL)"
        )
        connection.pgconn.prepare(b"raw", b"INSERT INTO raw (data) VALUES ($1)")
        message = b"x" * MESSAGE_BYTES

        async def burst() -> float:
            done, started = 0, time.perf_counter()
            while time.perf_counter() < started + LIMIT_SECONDS:
                connection.pgconn.exec_prepared(b"raw", [message], [1])
                done += 1
            return done / (time.perf_counter() - started)

        yield burst
