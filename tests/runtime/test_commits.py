"""How often a turn waits for the disk: once for the acknowledgement, once before each effect, once at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.store.contract import Append, Appended, Lease
from holdfast.store.sqlite import SqliteStore
from tests.runtime.rig import Rig, call


class CountingStore(SqliteStore):
    """Remembers what was committed together: the kinds of each append."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.commits: list[list[str]] = []

    async def append(self, append: Append) -> Appended:
        self.commits.append([type(event).__name__ for write in append.writes for event in write.events])
        return await super().append(append)

    async def claim(self, stream: str, *, holder: str) -> Lease:
        self.commits.append(["claim"])
        return await super().claim(stream, holder=holder)

    async def release(self, lease: Lease) -> None:
        self.commits.append(["release"])
        await super().release(lease)


async def test_a_turn_with_a_tool_call_takes_five_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.runtime.turn.PLAN_SECONDS", 60.0)  # on a busy machine a plan may take long
    (tmp_path / "a.txt").write_text("hello")
    store = CountingStore(tmp_path / "holdfast.db")
    rig = await Rig(tmp_path, store=store).start()
    await rig.create()
    store.commits.clear()
    await rig.say(f"call {call('read', path='a.txt')}\nsay it says hello", "one")
    await rig.rest()
    assert store.commits == [
        ["InputReceived"],
        ["TurnStarted", "ModelRequested"],
        ["ModelResponded", "ToolCallStarted"],
        ["ToolCallFinished", "ModelRequested"],
        ["ModelResponded", "TurnFinished"],
    ]
    await rig.close()
