"""An approval without an answer: it stays open, or is denied after the time of its profile, and can be asked again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.domain.events.actor import THE_CLOCK
from holdfast.domain.events.session import ToolCallFinished, TurnFinished, WaitAnswered, WaitOpened
from holdfast.domain.session import Session
from holdfast.runtime.agents import Agent
from tests.runtime.rig import Rig, ScriptedAgents, call


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    """Everything is asked for; a session that begins with `soon` does not wait long."""
    usual = ScriptedAgents.of

    async def asking(self: ScriptedAgents, session: Session) -> Agent:
        timeout = 50 if "soon" in session.title else 0
        return replace(await usual(self, session), rules={"*": "ask"}, approval_timeout_ms=timeout)

    monkeypatch.setattr(ScriptedAgents, "of", asking)
    rig = await Rig(tmp_path).start()
    yield rig
    await rig.close()


async def test_silence_ends_an_approval_as_its_profile_says_and_it_can_be_asked_again(rig: Rig, tmp_path: Path) -> None:
    letter = "call " + call("post", letter="soon")
    await rig.create(f"{letter}\n{letter}")
    records = await rig.until(lambda records: any(isinstance(record.event, TurnFinished) for record in records))
    events = [record.event for record in records]
    waits = [event for event in events if isinstance(event, WaitOpened)]
    answers = [event for event in events if isinstance(event, WaitAnswered)]
    finished = [event for event in events if isinstance(event, ToolCallFinished)]
    assert [(wait.default, wait.until is not None) for wait in waits] == [("deny", True)] * 2
    assert [(answer.answer, answer.by) for answer in answers] == [("deny", THE_CLOCK)] * 2
    assert [(one.outcome, one.output.startswith("Nobody answered the approval within")) for one in finished] == [
        ("failed", True)
    ] * 2
    assert "Call it again to ask again" in finished[0].output
    assert not (tmp_path / "posted").exists()


async def test_without_a_timeout_an_approval_stays_open(rig: Rig) -> None:
    await rig.create("call " + call("post", letter="whenever"))
    session = await rig.until_state(lambda session: session.turn is not None and session.turn.wait is not None)
    assert session.turn is not None
    assert session.turn.wait is not None
    assert (session.turn.wait.until, session.turn.wait.default) == (None, None)
