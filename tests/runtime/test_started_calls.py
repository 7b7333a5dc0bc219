"""Calls that had started an agent or a command when the gateway was killed, and may not be made any more afterwards."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.domain.commands import AnswerWait, CreateSession
from holdfast.domain.events import session_stream
from holdfast.domain.events.parts import Call, Usage
from holdfast.domain.events.session import (
    ModelRequested,
    ModelResponded,
    ToolCallFinished,
    ToolCallStarted,
    TurnFinished,
    TurnStarted,
)
from holdfast.domain.task import task_of_call
from holdfast.store.contract import Append, Write
from tests.actors import person
from tests.board.rig import BoardRig
from tests.memory import MEMORY

SESSION = "0123456789abcdef"
CONFIG = """
[profiles.boss]
model = "demo"
[profiles.boss.tools]
"*" = "allow"
"""
HELPER = """
[profiles.helper]
model = "demo"
[profiles.helper.tools]
"*" = "allow"
"""
CAREFUL = """
[profiles.careful]
model = "demo"
[profiles.careful.tools]
terminal = "ask"
"""


@pytest.fixture
async def rig() -> AsyncIterator[BoardRig]:
    """A gateway whose runner is not started, as if it had been killed."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        rig = BoardRig(Path(directory) / "home", config=CONFIG + HELPER + CAREFUL)
        await rig.tasks.start()
        yield rig
        await rig.close()


async def cut_in_call(rig: BoardRig, tool: str, **arguments: object) -> str:
    """Carry a call out whose outcome is never written; the id of the task that it started."""
    call = Call(call="1.1.0", tool=tool, arguments=json.dumps(arguments))
    command = CreateSession(text="work")
    created = await rig.sessions.create(
        command, session=SESSION, profile="boss", cwd=str(rig.home.parent), caller=rig.caller("create")
    )
    answer = ModelResponded(
        turn=1, step=1, text="", thinking="", calls=[call], finish_reason="tool_calls", usage=Usage(), duration_ms=1
    )
    events = (
        TurnStarted(turn=1, inputs=["create"], profile="boss"),
        ModelRequested(turn=1, step=1, attempt=1, model="demo", context_version=created.version),
        answer,
        ToolCallStarted(turn=1, call=call.call, tool=tool, effect="keyed"),
    )
    await rig.store.append(Append((Write(session_stream(SESSION), events),), rig.clock.now()))
    session = await rig.sessions.get(SESSION)
    agent = await rig.agents.of(session)
    found = await (await agent.tools())[tool].call(agent.tool_context(session, call.call), call.arguments)
    assert found.outcome == "done", found
    return task_of_call(SESSION, call.call)


async def outcome_after_restart(rig: BoardRig) -> ToolCallFinished:
    await rig.runner.start()
    with rig.store.subscribe(session_stream(SESSION)) as changes:
        while True:
            events = [record.event for record in await rig.store.load(session_stream(SESSION), after=0)]
            if any(isinstance(event, TurnFinished) for event in events):
                return next(event for event in events if isinstance(event, ToolCallFinished))
            await changes.wait()
            changes.drain()


async def test_promise_7_an_agent_whose_profile_is_removed_after_its_start_is_found_again(rig: BoardRig) -> None:
    task = await cut_in_call(rig, "delegate", prompt="slow 60 a b c", profile="helper")
    (rig.home / "config.toml").write_text(CONFIG)
    found = await outcome_after_restart(rig)
    assert (found.outcome, found.task) == ("done", task)


@pytest.mark.parametrize("tool", ["delegate", "terminal"])
async def test_promise_7_a_started_call_that_is_denied_now_is_unknown_and_not_failed(rig: BoardRig, tool: str) -> None:
    arguments = {"delegate": {"prompt": "say hi"}, "terminal": {"command": "true"}}
    await cut_in_call(rig, tool, **arguments[tool])
    (rig.home / "config.toml").write_text(CONFIG.replace("allow", "deny") + HELPER)
    found = await outcome_after_restart(rig)
    assert found.outcome == "unknown"
    assert "may or may not have taken effect" in found.output and "does not allow" in found.output


async def test_an_approved_call_is_refused_because_its_profile_was_removed(rig: BoardRig) -> None:
    command = CreateSession(text="sh touch touched")
    cwd = str(rig.home.parent)
    await rig.sessions.create(command, session=SESSION, profile="careful", cwd=cwd, caller=rig.caller("create"))
    await rig.runner.start()
    asked = await rig.until_session(SESSION, lambda session: session.turn is not None and session.turn.wait is not None)
    assert asked.turn is not None and asked.turn.wait is not None
    (rig.home / "config.toml").write_text(CONFIG)
    await rig.say(SESSION, AnswerWait(wait=asked.turn.wait.wait, answer="allow"))
    found = await outcome_after_restart(rig)
    assert (found.outcome, found.output) == (
        "failed",
        "There is no profile 'careful' any longer; there is: boss, demo. "
        "So terminal touch touched was not carried out.",
    )
    assert not (rig.home.parent / "touched").exists()


async def test_an_agent_that_has_not_begun_can_be_stopped(rig: BoardRig) -> None:
    task = await cut_in_call(rig, "delegate", prompt="slow 60 a b c")
    row = await rig.store.task(task)
    stopping = asyncio.create_task(rig.task_queries.stop(row, by=person("ann"), reason="", force=False))
    await rig.runner.start()
    await stopping
    assert (await rig.task_queries.wait_ended(task)).state == "stopped"
