"""Messages for an external agent that is at work: they join its turn where it can take them, else they wait, and the
person is told why.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.domain.commands import ReviseInput, StopTurn, WithdrawInput
from holdfast.domain.errors import Conflict
from holdfast.domain.events import AnyEvent
from holdfast.domain.events.external_agent import AgentAttached, DriverOutputRead
from holdfast.domain.events.session import InputRevised, InputsJoined, TurnFinished, TurnStarted, WaitOpened
from tests.agents.conftest import Make
from tests.agents.life import QUICK, AgentLife, said
from tests.runtime.rig import ID


def of(kind: type[AnyEvent], events: list[AnyEvent]) -> list[AnyEvent]:
    return [event for event in events if isinstance(event, kind)]


def turns_of(events: list[AnyEvent]) -> list[list[str]]:
    return [event.inputs for event in events if isinstance(event, TurnStarted)]


async def test_a_message_joins_the_work_of_an_agent_that_can_take_it(make: Make) -> None:
    life = make("steers")
    await life.start("!say one", "!steered 2", "!say two")
    await life.until(AgentAttached)
    await life.say("look", id="s1", mode="steer")
    await life.say("and there", id="s2", mode="steer")
    await life.rest()
    events = await life.events()
    assert " ".join(said(events)) == "one [steered: look, and there] two"
    assert [input for event in events if isinstance(event, InputsJoined) for input in event.inputs] == ["s1", "s2"]
    assert len(turns_of(events)) == 1 and not of(InputRevised, events)
    assert of(DriverOutputRead, events)[-1].steering == []  # type: ignore[union-attr]


@pytest.mark.parametrize("command", ["", "claude"])
async def test_a_message_waits_where_the_agent_cannot_be_steered_and_the_log_says_so(
    make: Make, command: str, tmp_path: Path
) -> None:
    life = make(command=command)
    await life.start("!say one", f"!wait {tmp_path / 'go'}")
    await life.until(AgentAttached)
    await life.say("!say two", id="s1", mode="steer")
    await life.until(InputRevised)
    (tmp_path / "go").touch()
    await life.rest(2)
    events = await life.events()
    (told,) = of(InputRevised, events)
    assert isinstance(told, InputRevised)
    assert told.mode == "queue" and "takes no messages while it works" in told.reason
    assert said(events) == ["one", "two"] and turns_of(events)[1] == ["s1"]


async def test_a_message_that_the_agent_refuses_begins_the_next_turn(make: Make, tmp_path: Path) -> None:
    life = make("steers-not")
    await life.start("!say one", f"!wait {tmp_path / 'go'}")
    await life.until(AgentAttached)
    await life.say("!say two", id="s1", mode="steer")
    await life.until(InputRevised)
    (tmp_path / "go").touch()
    await life.rest(2)
    (told,) = of(InputRevised, events := await life.events())
    assert isinstance(told, InputRevised) and "not now" in told.reason
    assert said(events) == ["one", "two"] and not of(InputsJoined, events)


async def test_the_agent_may_confirm_a_message_after_its_last_text(make: Make) -> None:
    life = make("steers-late")
    await life.start("!steered 1", "!say two")
    await life.until(AgentAttached)
    await life.say("look", id="s1", mode="steer")
    await life.rest()
    events = await life.events()
    assert said(events) == ["[steered: look] two"]
    assert of(InputsJoined, events) and len(turns_of(events)) == 1
    await life.say("!say three")
    await life.rest(2)
    assert said(await life.events()) == ["[steered: look] two", "three"]


async def test_a_message_of_which_the_agent_says_nothing_is_not_lost(make: Make) -> None:
    life = make("steers-never", timings=replace(QUICK, runtime=replace(QUICK.runtime, agent_stop=0.1)))
    await life.start("!steered 1", "!say two")
    await life.until(AgentAttached)
    await life.say("!say again", id="s1", mode="steer")
    await life.rest(2)
    (told,) = of(InputRevised, await life.events())
    assert isinstance(told, InputRevised) and "did not say whether it has read it" in told.reason


async def test_a_message_during_a_permission_joins_after_its_answer(make: Make) -> None:
    life = make("steers")
    await life.start("!ask a rm x", "!steered 1", "!say two")
    await life.until(WaitOpened)
    await life.say("look", id="s1", mode="steer")
    await life.answer("allow")
    await life.rest()
    assert said(await life.events())[-1] == "[steered: look] two"


async def test_messages_that_joined_are_sent_again_to_an_agent_that_died(make: Make, tmp_path: Path) -> None:
    life = make("steers")
    await life.start("!say one", f"!once {tmp_path / 'died'} steered 1", f"!once {tmp_path / 'gone'} die 1")
    await life.until(AgentAttached)
    await life.say("!say look", id="s1", mode="steer")
    await life.rest()
    await life.say("!remember")
    await life.rest(2)
    events = await life.events()
    assert [event.inputs for event in events if isinstance(event, InputsJoined)] == [["s1"]]
    assert "> !say look" in said(events)[-1]


async def test_a_stop_ends_what_has_joined_too(make: Make) -> None:
    life = make("steers")
    await life.start("!steered 1", "!hang")
    await life.until(AgentAttached)
    await life.say("look", id="s1", mode="steer")
    await life.until(InputsJoined)
    await life.rig.sessions.execute(ID, StopTurn(), life.rig.caller())
    await life.rest()
    (end,) = of(TurnFinished, await life.events())
    assert isinstance(end, TurnFinished) and end.outcome == "stopped"


async def test_what_was_sent_cannot_be_changed(make: Make, tmp_path: Path) -> None:
    life = make("steers-never")
    await life.start("!steered 2", f"!wait {tmp_path / 'go'}")
    await life.until(AgentAttached)
    await life.say("look", id="s1", mode="steer")
    await sent(life)
    for command in (ReviseInput(input="s1", text="other"), WithdrawInput(input="s1")):
        with pytest.raises(Conflict, match="was sent to the agent"):
            await life.rig.sessions.execute(ID, command, life.rig.caller())


async def sent(life: AgentLife) -> None:
    await life.rig.until_session(ID, lambda state: state.output_read is not None and bool(state.output_read.steering))
