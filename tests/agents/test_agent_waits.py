"""Waits of external agents: for a log-in, for quota; and reports about updates and memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.board.inbox import _of_wait
from holdfast.domain.commands import StopTurn
from holdfast.domain.errors import Rejected
from holdfast.domain.events.actor import ServiceActor
from holdfast.domain.events.external_agent import AgentAttached
from holdfast.domain.events.session import TurnFinished, TurnResumed, WaitAnswered, WaitOpened
from holdfast.domain.session import Session
from holdfast.domain.transcript_text import notice_text
from holdfast.domain.why import why
from holdfast.schemas.inbox import InboxEntry
from tests.agents.conftest import Make
from tests.agents.life import AgentLife, said
from tests.runtime.rig import ID


async def waiting(life: AgentLife) -> WaitOpened:
    state = await life.rig.until_session(ID, lambda state: state.turn is not None and state.turn.wait is not None)
    assert state.turn is not None and state.turn.wait is not None
    return state.turn.wait


async def entries(life: AgentLife) -> list[InboxEntry]:
    return [_of_wait(row) for row in await life.store.waits()]


def why_of(state: Session) -> str:
    return why(state, now=state.updated_at)[0].text


async def test_a_turn_waits_for_a_log_in_and_continues(make: Make, tmp_path: Path) -> None:
    login = tmp_path / "login"
    login.write_text("no")
    life = make(f"login={login}")
    await life.start("!say hello")
    wait = await waiting(life)
    assert (wait.purpose, wait.choices, wait.until) == ("login", ["try again"], None)
    assert wait.reason.startswith("scripted is not logged in: Authentication required. Log in")
    assert "has been waiting for a log-in" in why_of(await life.rig.sessions.get(ID))
    (entry,) = await entries(life)
    assert entry.kind == "login" and entry.commands == [f"holdfast answer {wait.wait} 'try again'"]
    with pytest.raises(Rejected, match="try again"):
        await life.answer("whatever")
    await life.answer("try again")  # it does not work yet
    again = await life.rig.until_session(
        ID, lambda state: state.turn is not None and state.turn.wait is not None and state.turn.wait.wait != wait.wait
    )
    assert again.turn is not None and again.turn.wait is not None and again.turn.wait.purpose == "login"
    login.write_text("yes")
    await life.answer("1")
    await life.rest()
    events = await life.events()
    assert said(events) == ["hello"]
    assert [event.outcome for event in events if isinstance(event, TurnFinished)] == ["done"]


async def test_a_log_in_that_expired_in_the_middle_continues_with_another_process(make: Make, tmp_path: Path) -> None:
    life = make()
    await life.start("!say one", f"!once {tmp_path / 'mark'} fail -32000 token expired")
    assert (await waiting(life)).purpose == "login"
    await life.answer("try again")
    await life.rest()
    events = await life.events()
    attached = [event for event in events if isinstance(event, AgentAttached)]
    assert [event.how for event in attached] == ["new", "resume"], "an old process may have kept the old log-in"
    memory = (tmp_path / "memory" / f"{attached[0].remote}.jsonl").read_text()
    assert "You were interrupted while you worked on this message" in memory


async def test_without_a_setting_a_used_up_quota_waits_for_a_person(make: Make, tmp_path: Path) -> None:
    life = make()
    await life.start(f"!once {tmp_path / 'mark'} fail 429 quota exceeded, try again in 2 hours")
    wait = await waiting(life)
    assert (wait.purpose, wait.choices, wait.until, wait.default) == ("quota", ["try again"], None, None)
    assert "quota exceeded, try again in 2 hours. There will be more at 2" in wait.reason
    assert "has been waiting for a quota" in why_of(await life.rig.sessions.get(ID))
    (entry,) = await entries(life)
    assert entry.kind == "quota"
    await life.answer("try again")
    state = await life.rest()
    assert state.last_turn is not None and state.last_turn.outcome == "done"
    attached = [event for event in await life.events() if isinstance(event, AgentAttached)]
    assert len(attached) == 1, "the same process goes on"


async def test_a_turn_continues_by_itself_once_when_the_quota_resets(make: Make) -> None:
    life = make(more="resume_after_quota = true")
    await life.start("!fail 429 quota exceeded, try again in 1 s")
    wait = await waiting(life)
    assert wait.until is not None and wait.choices == ["try again", "wait for me"] and wait.default == "try again"
    assert "continues by itself in" in why_of(await life.rig.sessions.get(ID))
    await life.rest()
    answers = [event for event in await life.events() if isinstance(event, WaitAnswered)]
    assert [(answer.answer, answer.by) for answer in answers] == [("try again", ServiceActor(name="clock"))]


async def test_the_second_time_in_a_turn_it_waits_for_a_person(make: Make) -> None:
    life = make("quoted", more="resume_after_quota = true")
    await life.start("!fail 429 quota exceeded, try again in 1 s")
    await life.until(WaitOpened, 2)
    first, second = [event for event in await life.events() if isinstance(event, WaitOpened)]
    assert first.until is not None and second.until is None


async def test_a_countdown_can_be_cancelled(make: Make, tmp_path: Path) -> None:
    life = make(more="resume_after_quota = true")
    await life.start(f"!once {tmp_path / 'mark'} fail 429 usage limit, try again in 2 hours")
    first = await waiting(life)
    await life.answer("wait for me")
    state = await life.rig.until_session(
        ID, lambda state: state.turn is not None and state.turn.wait is not None and state.turn.wait.wait != first.wait
    )
    assert state.turn is not None and state.turn.wait is not None
    assert (state.turn.wait.until, state.turn.wait.choices) == (None, ["try again"])
    assert state.turn.wait.reason == first.reason
    await life.answer("try again")
    await life.rest()
    assert not [event for event in await life.events() if isinstance(event, TurnResumed)]


async def test_a_stop_ends_a_turn_that_waits_for_its_quota(make: Make) -> None:
    life = make(more="resume_after_quota = true")
    await life.start("!fail 429 usage limit, try again in 2 hours")
    await waiting(life)
    await life.rig.sessions.execute(ID, StopTurn(), life.rig.caller())
    state = await life.rest()
    assert state.last_turn is not None and state.last_turn.outcome == "stopped"


async def test_the_countdown_continues_after_a_restart(make: Make) -> None:
    life = make(more="resume_after_quota = true")
    await life.start("!fail 429 usage limit, try again in 3 s")
    wait = await waiting(life)
    await life.close()
    life = make(more="resume_after_quota = true")
    await life.start()
    await life.until(WaitAnswered)
    answers = [event for event in await life.events() if isinstance(event, WaitAnswered)]
    assert [answer.wait for answer in answers] == [wait.wait]
    await life.rest()


async def test_an_agent_that_was_updated_is_said(make: Make, tmp_path: Path) -> None:
    version = tmp_path / "version"
    version.write_text("1.0")
    life = make(f"version={version}")
    await life.start("!say one")
    await life.rest()
    version.write_text("2.0")
    await life.end_agents()
    await life.say("!say two")
    await life.rest(2)
    first, second = [event for event in await life.events() if isinstance(event, AgentAttached)]
    assert (first.version_before, second.version, second.version_before) == ("", "2.0", "1.0")
    assert "It was updated: before that it was 1.0." in notice_text(second, clock=str)
