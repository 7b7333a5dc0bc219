"""Child, in a venv of the peer's own: it claims as many cards as it can in a while, and says how many.

Knows nothing of Holdfast: the standard library and the peer, no more.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path


def hermes(home: Path) -> tuple[Callable[[int], None], Callable[[], bool]]:
    """hermes-agent's kanban_db: a card is made ready, then claimed."""
    from hermes_cli import kanban_db  # type: ignore[import-not-found]

    connection = kanban_db.connect(home / "kanban.db")
    ready: list[str] = []

    def fill(count: int) -> None:
        for number in range(count):
            made = kanban_db.create_task(connection, title=f"card {number}", body="x" * 300, assignee="bench")
            ready.append(made if isinstance(made, str) else made.id)

    def claim() -> bool:
        return kanban_db.claim_task(connection, ready.pop()) is not None

    return fill, claim


def huey(home: Path) -> tuple[Callable[[int], None], Callable[[], bool]]:
    """huey's SQLite storage: a task is queued, then taken out of the queue."""
    from huey import SqliteHuey  # type: ignore[import-not-found]

    queue = SqliteHuey("bench", filename=str(home / "huey.db"), fsync=True)

    @queue.task()  # type: ignore[untyped-decorator]
    def work(text: str) -> str:
        return text

    def fill(count: int) -> None:
        for _ in range(count):
            work("x" * 300)

    return fill, lambda: queue.dequeue() is not None


def main(name: str, home: Path) -> None:
    """Answer until the input ends."""
    fill, claim = {"hermes": hermes, "huey": huey}[name](home)
    print("{}", flush=True)
    while line := sys.stdin.readline():
        message = json.loads(line)
        count, started = 0, time.perf_counter()
        if "fill" in message:
            fill(message["fill"])
        else:
            while time.perf_counter() - started < message["claim"]:
                assert claim(), "there was nothing left to claim"
                count += 1
        print(json.dumps({"count": count, "seconds": time.perf_counter() - started}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
