"""The life of a gateway whose agent is a process: it says which write it has made, to be killed (`forked_lives.py`)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path

from holdfast.store.contract import Append, Appended
from holdfast.store.sqlite.store import SqliteStore
from tests.forked_lives import tell
from tests.runtime.script_driver import DriverLife


class TellingStore(SqliteStore):
    """Says the number of each append that is on disk."""

    writes = 0

    async def append(self, append: Append) -> Appended:
        appended = await super().append(append)
        self.writes += 1
        tell(f"write-{self.writes}")
        return appended


async def drive(directory: str) -> None:
    """From the message to the end of the turn."""
    home = Path(directory, "home")
    home.mkdir(parents=True, exist_ok=True)
    life = DriverLife(Path(directory), TellingStore(home / "holdfast.db"))
    await life.start()
    await life.to_the_end()
    await life.rig.close()


LIVES: dict[str, Callable[..., Coroutine[None, None, None]]] = {"drive": drive}
