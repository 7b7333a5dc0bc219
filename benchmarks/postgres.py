"""Durable appends to PostgreSQL beside raw commits on its server: one connection, one INSERT, one commit a message."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import islice
from pathlib import Path

import psycopg
from tests.postgres_server import make_server

from benchmarks.append import bursts, saying
from benchmarks.measure import LIMIT_SECONDS, MESSAGE_BYTES, Figure, Plan, alternate
from benchmarks.report import Goal, Report
from benchmarks.workload import Workload, fill
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.store import PostgresStore, open_store

AREA = "postgres"
DISK = Path("/var/tmp")
GOALS = {1: None, 16: Goal("≥", 1.2), 64: Goal("≥", 1.7)}
"""Of one node, by conversations at once. A commit takes two trips, so one conversation is slower than raw commits."""


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area. The server syncs to the disk, as it is installed."""
    work = Workload(plan.seed)
    server = make_server({}, DISK)
    try:
        async with _opened(Database(server.url()), plan.scratch) as store:
            streams = [await fill(store, work.id(8), islice(work.turns(tools=False), 100)) for _ in range(max(GOALS))]
            with _raw_commits(server.url()) as raw:
                for count, goal in GOALS.items():
                    ours = bursts(*(saying(store, work, stream) for stream in streams[:count]))
                    pairs = await alternate(ours, raw, plan.rounds(60))
                    what = "one conversation" if count == 1 else f"{count} conversations"
                    report.add(pairs.line(AREA, f"appends of {what}", "/s", goal))
    finally:
        server.remove()


@asynccontextmanager
async def _opened(database: Database, scratch: Path) -> AsyncIterator[PostgresStore]:
    store = await open_store(database, scratch)
    try:
        yield store
    finally:
        await store.close()


@contextmanager
def _raw_commits(url: str) -> Iterator[Figure]:
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
