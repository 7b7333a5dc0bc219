"""The policy of a set of rules for a command line, asked the way a turn asks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from holdfast.clock import SystemClock
from holdfast.domain.events.parts import Call
from holdfast.runtime.permissions import rule_policy
from holdfast.runtime.tools.context import ToolContext
from holdfast.runtime.tools.terminal import command_tools
from holdfast.runtime.tools.tool import AnyTool
from holdfast.settings import Policy
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.queries import TaskQueries

TERMINAL: AnyTool = command_tools(cast(CommandTasks, None), cast(TaskQueries, None), SystemClock())[0]
"""Only looked at, never run."""


def policy(line: str, rules: dict[str, Policy], *, cwd: Path | None = None, granted: tuple[str, ...] = ()) -> Policy:
    """The answer for a line of the terminal."""
    call = Call(call="1.1.0", tool="terminal", arguments=json.dumps({"command": line}))
    context = ToolContext(cwd if cwd is not None else Path("/nonexistent"))
    return rule_policy(TERMINAL, call, line, rules, context=context, granted=granted)
