"""Which files a turn changed, as its task tells it: what its own tools report is never left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.domain.events.parts import EventRef
from holdfast.domain.history import History, ToolResult
from holdfast.domain.session import Session, Turn
from holdfast.store.sqlite.store import SqliteStore
from holdfast.tasks.git_snapshots import GitSnapshots
from holdfast.tasks.log import TaskLog


@pytest.mark.parametrize(
    ("tools", "reported", "files"),
    [
        (["write"], ["a.txt"], ["a.txt"]),
        (["write", "terminal"], ["a.txt"], ["a.txt"]),
        (["terminal"], [], None),
        (["recall", "kanban_show", "inbox"], [], []),
        (["github__search"], [], None),
    ],
)
async def test_what_tools_report_is_listed(
    tmp_path: Path, tools: list[str], reported: list[str], files: list[str] | None
) -> None:
    store = SqliteStore(tmp_path / "holdfast.db")
    messages = History(ToolResult(1, f"c{n}", tool, "done", "") for n, tool in enumerate(tools))
    session = Session("ab12", cwd=str(tmp_path), messages=messages)
    turn = Turn(1, EventRef(1, 0), EventRef(1, 0), "TurnStarted", task="t1", files=tuple(reported))
    task_log = TaskLog(store, SystemClock(), GitSnapshots(tmp_path))
    assert await task_log._files(session, turn) == files
    await store.close()
