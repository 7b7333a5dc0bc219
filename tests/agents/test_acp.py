"""External agents by the Agent Client Protocol: a scripted one, as a real process under real keepers."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from holdfast.domain.commands import (
    CompactSession,
    ForkSession,
    RepeatTurn,
    ResetSession,
    SendMessage,
    SessionCommand,
    StopTurn,
    UndoTurn,
)
from holdfast.domain.errors import Conflict
from holdfast.domain.events.external_agent import AgentAttached, AgentPlanned, DriverOutputRead
from holdfast.domain.events.session import (
    ModelRequested,
    ModelResponded,
    ToolCallStarted,
    TurnFinished,
    TurnResumed,
    WaitAnswered,
    WaitOpened,
)
from tests.agents.conftest import Make
from tests.agents.life import said
from tests.runtime.rig import ID


async def test_a_turn(make: Make) -> None:
    life = make()
    await life.start("!think about it", "!say let me look", "!call a read notes.txt", "!say all is well")
    state = await life.rest()
    events = await life.events()
    assert said(events) == ["let me look", "call 1-a", "done 1-a result of a", "all is well"]
    (attached,) = [event for event in events if isinstance(event, AgentAttached)]
    assert (attached.agent, attached.version, attached.how, attached.context) == ("scripted", "1.0", "new", "none")
    (first, *_) = [event for event in events if isinstance(event, ModelResponded)]
    assert first.thinking == "about it" and [call.tool for call in first.calls] == ["read"]
    (last,) = [event for event in events if isinstance(event, TurnFinished)]
    assert (last.outcome, last.reason) == ("done", "the agent had nothing more to do")
    assert state.last_turn is not None and state.activity == "idle"
    usage = [event.usage for event in events if isinstance(event, ModelResponded)][-1]
    assert (usage.input_tokens, usage.output_tokens) == (11, 7)


async def test_the_process_stays_for_the_next_turn(make: Make) -> None:
    life = make()
    await life.start("!say one")
    await life.rest()
    await life.say("!remember")
    await life.rest(2)
    events = await life.events()
    assert said(events) == ["one", "!say one"]
    assert len([event for event in events if isinstance(event, AgentAttached)]) == 1


@pytest.mark.parametrize(("choice", "option"), [("allow", "yes"), ("session", "always"), ("deny", "no")])
async def test_a_permission_is_a_wait_with_the_options_of_the_agent(make: Make, choice: str, option: str) -> None:
    life = make()
    await life.start("!ask a rm -r build", "!say then")
    await life.answer(choice)
    await life.rest()
    events = await life.events()
    (wait,) = [event for event in events if isinstance(event, WaitOpened)]
    assert wait.choices == ["yes", "always", "no"] and "rm -r build" in wait.reason
    assert [(one.name, one.value) for one in wait.shown] == [("command", "rm -r build")]
    outcome = "failed" if choice == "deny" else "done"
    assert said(events) == ["call 1-a", f"{outcome} 1-a {option}", "then"]
    begun = [event.call for event in events if isinstance(event, ToolCallStarted)]
    assert begun == ([] if choice == "deny" else ["1-a"]), "it begins when it is allowed"


@pytest.mark.parametrize(("policy", "option"), [("allow", "yes"), ("deny", "no")])
async def test_a_rule_of_the_profile_answers(make: Make, policy: str, option: str) -> None:
    life = make(more=f'tools = {{ terminal = "{policy}" }}')
    await life.start("!ask a ls", "!ask b ls")
    await life.rest()
    events = await life.events()
    assert not [event for event in events if isinstance(event, WaitOpened)]
    assert [line for line in said(events) if option in line] == [
        f"{'done' if policy == 'allow' else 'failed'} 1-{call} {option}" for call in "ab"
    ]


async def test_a_plan_is_in_the_log(make: Make) -> None:
    life = make()
    await life.start("!plan read;write", "!say done")
    await life.rest()
    (plan,) = [event for event in await life.events() if isinstance(event, AgentPlanned)]
    assert [entry.text for entry in plan.entries] == ["read", "write"]


async def test_parallel_calls_end_in_any_order(make: Make) -> None:
    life = make()
    await life.start("!open a read x", "!open b read y", "!say meanwhile", "!end b completed B", "!end a completed A")
    await life.rest()
    assert said(await life.events()) == ["call 1-a", "call 1-b", "meanwhile", "done 1-b B", "done 1-a A"]


async def test_promise_3_the_agent_continues_while_no_gateway_is_there(make: Make, tmp_path: Path) -> None:
    life = make()
    go = tmp_path / "go"
    await life.start("!say one two", "!call a read x", f"!wait {go}", "!say three", "!call b read y", "!say four")
    await life.until(DriverOutputRead, 2)
    await life.close()
    go.touch()
    life = make()
    await life.start()
    await life.rest()
    events = await life.events()
    first = ["one two", "call 1-a", "done 1-a result of a"]
    assert said(events) == [*first, "three", "call 1-b", "done 1-b result of b", "four"]
    names = {type(event).__name__ for event in events}
    assert not {"TurnSuspended", "TurnResumed", "ModelInterrupted"} & names


async def test_promise_3_a_permission_stays_open_over_a_restart(make: Make) -> None:
    life = make()
    await life.start("!say before", "!ask a rm x", "!say after")
    await life.until(WaitOpened)
    await life.close()
    life = make()
    await life.start()
    await life.answer("allow")
    await life.rest()
    events = await life.events()
    assert said(events) == ["before", "call 1-a", "done 1-a yes", "after"]
    assert len([event for event in events if isinstance(event, WaitAnswered)]) == 1
    assert len([event for event in events if isinstance(event, AgentAttached)]) == 1


async def test_an_agent_that_was_killed_resumes_its_own_session(make: Make, tmp_path: Path) -> None:
    life = make()
    go = tmp_path / "go"
    await life.start("!log all is well", "!say one", "!open a execute make", f"!wait {go}", "!say never")
    await life.until(ToolCallStarted)
    (row,) = await life.store.running_tasks()
    assert row.pid is not None
    os.kill(row.pid, signal.SIGKILL)
    await life.rest()
    events = await life.events()
    assert said(events)[:3] == ["one", "call 1-a", "cut "]
    assert said(events)[3].startswith("unknown 1-a Its outcome is not known")
    first, second = [event for event in events if isinstance(event, AgentAttached)]
    assert (second.remote, second.how, second.context) == (first.remote, "resume", "proven")
    (resumed,) = [event for event in events if isinstance(event, TurnResumed)]
    assert resumed.reason.endswith("killed by SIGKILL"), "what it wrote last does not explain it"
    await life.say("!remember")
    await life.rest(2)
    told = said(await life.events())[-1]
    assert "!say one" in told and "Check what is done already" in told, "it knows both prompts"


async def test_a_resume_that_opened_another_session_is_unproven_and_reported(make: Make, tmp_path: Path) -> None:
    life = make("amnesia")
    await life.start("say BANANA", "!say one", f"!once {tmp_path / 'died'} die 3")
    await life.until(AgentAttached, 2)
    await life.rest()
    events = await life.events()
    second = [event for event in events if isinstance(event, AgentAttached)][1]
    assert (second.how, second.context) == ("resume", "unproven") and "does not list" in second.reason


async def test_without_a_resume_the_agent_gets_an_account_of_the_conversation(make: Make) -> None:
    life = make("no-resume")
    await life.start("the word is BANANA", "!say one")
    await life.rest()
    (row,) = await life.store.running_tasks()
    os.kill(row.pid or 0, signal.SIGKILL)
    await life.rig.tasks.wait_ended(row.id)
    await life.say("!remember", "!say two")
    await life.rest(2)
    events = await life.events()
    second = [event for event in events if isinstance(event, AgentAttached)][1]
    assert (second.how, second.context) == ("new", "none") and "cannot resume" in second.reason
    memory = (life.cwd.parent / "memory" / f"{second.remote}.jsonl").read_text()
    assert "the word is BANANA" in memory and "You answered: one" in memory


async def test_a_stop_cancels_the_work_and_keeps_the_process(make: Make) -> None:
    life = make()
    await life.start("!say one", "!open a execute make", "!hang")
    await life.until(ToolCallStarted)
    await life.rig.say(ID, StopTurn())
    records = await life.until(TurnFinished)
    end = records[-1].event
    assert isinstance(end, TurnFinished) and end.outcome == "stopped"
    await life.say("!say two")
    await life.rest(2)
    events = await life.events()
    assert said(events)[-1] == "two" and len([e for e in events if isinstance(e, AgentAttached)]) == 1


async def test_a_stop_while_a_permission_is_open(make: Make) -> None:
    life = make()
    await life.start("!ask a rm x", "!say never")
    await life.until(WaitOpened)
    await life.rig.say(ID, StopTurn())
    await life.until(TurnFinished)
    await life.say("!say two")
    await life.rest(2)
    assert said(await life.events())[-1] == "two"


async def test_junk_long_lines_and_foreign_requests_change_nothing(make: Make) -> None:
    life = make()
    await life.start(
        "!junk {", "!junk hello", "!long 50000000", "!method fs/read_text_file", "!junk []", "!twice", "!say end"
    )
    await life.rest()
    assert said(await life.events())[0].startswith("refused")


async def test_an_agent_that_dies_again_and_again_waits_for_a_person(make: Make) -> None:
    life = make("amnesia")
    await life.start("!die 3")  # it is told all of it again, since nobody knows what it remembers
    records = await life.until(WaitOpened)
    attempts = [record.event.attempt for record in records if isinstance(record.event, TurnResumed)]
    assert attempts == [1, 2, 3]
    wait = records[-1].event if isinstance(records[-1].event, WaitOpened) else records[-2].event
    assert isinstance(wait, WaitOpened) and wait.purpose == "resume" and "exit code 3" in wait.reason


async def test_an_agent_that_cannot_work_says_why(make: Make) -> None:
    life = make("crash-at-start")
    await life.start("!say one")
    state = await life.rest()
    assert state.last_turn is not None and state.last_turn.problem is not None
    assert (state.last_turn.outcome, state.last_turn.problem.code) == ("failed", "agent_failed")
    assert "it cannot start" in state.last_turn.problem.message
    assert not await life.store.running_tasks()


@pytest.mark.parametrize(("mode", "outcome"), [("ask", "done"), ("yolo", "failed")])
async def test_a_mode_that_somebody_chose_is_set_or_refused(make: Make, mode: str, outcome: str) -> None:
    life = make(more=f'mode = "{mode}"')
    await life.start("!mode")
    state = await life.rest()
    assert state.last_turn is not None and state.last_turn.outcome == outcome
    if outcome == "done":
        assert said(await life.events()) == ["ask"]
    else:
        assert "no mode 'yolo'; its modes are: ask" in state.last_turn.reason


async def test_an_error_of_the_agent_ends_the_turn(make: Make) -> None:
    life = make()
    await life.start("!say one", "!fail -32603 the model is away")
    state = await life.rest()
    assert state.last_turn is not None and "the model is away" in state.last_turn.reason


async def test_messages_wait_for_the_next_turn(make: Make, tmp_path: Path) -> None:
    life = make()
    await life.start("!say one", f"!wait {tmp_path / 'go'}")
    await life.until(ModelRequested)
    await life.say("!say two")
    (tmp_path / "go").touch()
    await life.rest(2)
    assert said(await life.events()) == ["one", "two"]


@pytest.mark.parametrize(
    "command", [UndoTurn(), RepeatTurn(), CompactSession(instructions="")], ids=lambda c: type(c).__name__
)
async def test_what_would_change_its_context_is_refused_with_the_reason(make: Make, command: SessionCommand) -> None:
    life = make()
    await life.start("!say one")
    await life.rest()
    with pytest.raises(Conflict, match="a context of its own"):
        await life.rig.say(ID, command)


async def test_a_reset_begins_a_new_session_of_the_agent_with_a_note(make: Make) -> None:
    life = make()
    await life.start("the word is BANANA", "!say one")
    await life.rest()
    await life.rig.gateway.reset_service.by_person(ID, ResetSession(note=True), life.rig.caller())
    await life.say("!say two", "!remember")
    await life.rest(2)
    first, second = [event for event in await life.events() if isinstance(event, AgentAttached)]
    assert (second.how, second.chapter) == ("new", 2) and second.remote != first.remote
    memory = (life.cwd.parent / "memory" / f"{second.remote}.jsonl").read_text()
    assert "The user said: the word is BANANA" in memory, "the new chapter begins with the note"
    (row,) = await life.store.running_tasks()
    assert row.id == second.task, "one process for a session"


async def test_an_idle_agent_is_closed_and_resumed_by_the_next_message(make: Make, tmp_path: Path) -> None:
    life = make(more='agent_idle = "1s"')
    idle = life.rig.gateway.idle_agents
    await life.start("!say one")
    await life.rest()
    (row,) = await life.store.running_tasks()
    await asyncio.sleep(1.1)
    await idle.run_once()
    ended = await life.rig.tasks.wait_ended(row.id)
    assert ended.state == "stopped" and "it had nothing to do for 1 s" in ended.stop_reason
    await life.say("!say two", f"!wait {tmp_path / 'go'}")
    await life.until(AgentAttached, 2)
    await idle.run_once()
    (tmp_path / "go").touch()
    await life.rest(2)
    events = await life.events()
    assert said(events) == ["one", "two"], "one that works is not closed"
    assert [event.how for event in events if isinstance(event, AgentAttached)] == ["new", "resume"]


@pytest.mark.parametrize("flags", [(), ("late-replay",)], ids=["before the answer", "after it"])
async def test_what_an_agent_repeats_when_it_loads_its_session_is_not_said_again(
    make: Make, flags: tuple[str, ...]
) -> None:
    life = make("no-resume", "load", *flags)
    await life.start("!say one")
    await life.rest()
    (row,) = await life.store.running_tasks()
    await life.end_agents()
    await life.rig.tasks.wait_ended(row.id)
    await life.say("!say two")
    await life.rest(2)
    events = await life.events()
    assert said(events) == ["one", "two"]
    *_, last = [event for event in events if isinstance(event, AgentAttached)]
    assert (last.how, last.context) == ("load", "proven")


async def test_a_fork_gets_an_account_of_the_conversation(make: Make) -> None:
    life = make()
    await life.start("the word is BANANA", "!say one")
    await life.rest()
    await life.rig.sessions.fork(ID, ForkSession(), session="f" * 16, caller=life.rig.caller())
    await life.rig.sessions.execute("f" * 16, SendMessage(text="!say two"), life.rig.caller())
    state = await life.rig.until_session("f" * 16, lambda state: state.turns == 2 and state.activity == "idle")
    assert state.attached is not None and state.attached.how == "new"
    memory = (life.cwd.parent / "memory" / f"{state.attached.remote}.jsonl").read_text()
    assert "The user said: the word is BANANA" in memory
