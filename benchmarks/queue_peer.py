"""Child, in a venv of the peer's own: claims jobs of its queue on PostgreSQL with many workers as long as it is told.

Knows nothing of Holdfast: the standard library and the peer, no more.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

Fill = Callable[[int], Awaitable[None]]
Claim = Callable[[], Awaitable[int]]
"""Returns how many jobs it got; 0 when there is none left."""


async def procrastinate(url: str) -> tuple[Fill, Claim, bool]:
    """Its fetch: one job for one worker, marked as doing, in one statement."""
    from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found]
    from procrastinate.jobs import Job  # type: ignore[import-not-found]

    connector = PsycopgConnector(conninfo=url, min_size=16, max_size=16)
    app = App(connector=connector)
    await app.open_async()
    if not await app.check_connection_async():
        await app.schema_manager.apply_schema_async()
    worker = await app.job_manager.register_worker()

    async def fill(count: int) -> None:
        job = Job(
            id=None, queue="bench", lock=None, queueing_lock=None, task_name="bench", task_kwargs={"x": "x" * 300}
        )
        for start in range(0, count, 1000):
            await app.job_manager.batch_defer_jobs_async([job] * min(1000, count - start))

    async def claim() -> int:
        return int(await app.job_manager.fetch_job(None, worker) is not None)

    return fill, claim, True


async def dbos(url: str) -> tuple[Fill, Claim, bool]:
    """Its dequeue: one process claims for all of its workers at once."""
    from dbos import DBOS  # type: ignore[import-not-found]
    from dbos._queue import _INTERNAL_QUEUE_CONSTRUCTION, Queue  # type: ignore[import-not-found]

    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "executor_id": str(time.time_ns())})
    DBOS.launch()
    instance = __import__("dbos._dbos", fromlist=["_get_dbos_instance"])._get_dbos_instance()
    database = instance._sys_db
    queue = Queue("bench", worker_concurrency=16, token=_INTERNAL_QUEUE_CONSTRUCTION)

    async def fill(count: int) -> None:
        from dbos import DBOSClient

        client = DBOSClient(system_database_url=url)
        options = {"queue_name": "bench", "workflow_name": "bench", "app_version": "1"}
        with client._sys_db.engine.begin() as connection:
            for _ in range(count):
                client.enqueue_in_transaction(connection, options, "x" * 300)

    async def claim() -> int:
        found, _ = database.start_queued_workflows(queue, "bench", "1", None)
        return len(found)

    return fill, claim, False


async def answer(fill: Fill, claim: Claim, message: dict[str, Any], *, each: bool) -> dict[str, object]:
    """Do what was asked; how much it was and how long it took."""
    started = time.perf_counter()
    if "fill" in message:
        await fill(message["fill"])
        return {"count": message["fill"], "seconds": time.perf_counter() - started}

    async def one() -> int:
        done = 0
        while time.perf_counter() < started + message["seconds"] and (got := await claim()):
            done += got
        return done

    counts = await asyncio.gather(*(one() for _ in range(message["writers"] if each else 1)))
    return {"count": sum(counts), "seconds": time.perf_counter() - started}


async def main(name: str, url: str) -> None:
    """Answer until the input ends."""
    fill, claim, each = await {"procrastinate": procrastinate, "dbos": dbos}[name](url)
    print("{}", flush=True)
    while line := sys.stdin.readline():
        print(json.dumps(await answer(fill, claim, json.loads(line), each=each)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
