"""Which files a turn changed, as its task tells it: what its own tools report is never left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.board.inbox import InboxReader
from holdfast.board.worker_tools import WorkerTools
from holdfast.clock import SystemClock
from holdfast.domain.events.parts import EventRef
from holdfast.domain.history import History, ToolResult
from holdfast.domain.next_step import TurnLimits
from holdfast.domain.session import Session, Turn
from holdfast.models.registry import UnavailableModel
from holdfast.runtime.agents import Agent
from holdfast.runtime.tools import file_tools
from holdfast.runtime.tools.recall import Recall
from holdfast.runtime.tools.terminal import command_tools
from holdfast.runtime.tools.tool import AnyTool
from holdfast.tasks.log import changed_files


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
def test_what_tools_report_is_listed(
    tmp_path: Path, tools: list[str], reported: list[str], files: list[str] | None
) -> None:
    messages = History(ToolResult(1, f"c{n}", tool, "done", "") for n, tool in enumerate(tools))
    session = Session("ab12", cwd=str(tmp_path), messages=messages)
    turn = Turn(1, EventRef(1, 0), EventRef(1, 0), "TurnStarted", task="t1", files=tuple(reported))
    none: Any = None  # they are only looked at
    own: list[AnyTool] = [*file_tools(), *command_tools(none, none, SystemClock()), Recall(none).tool]
    own += [
        *WorkerTools(none, none, none, none).tools,
        InboxReader(none, cards=none, startable=none, sessions=none, profiles=none, nodes=none, clock=none).tool,
    ]
    watched = Agent(UnavailableModel("", "unknown_model", ""), TurnLimits(), own_tools=own).watched_tools
    assert changed_files(session, turn, None, watched) == files, "there is no git"
