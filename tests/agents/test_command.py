"""Command-line agents: a scripted one, as a real process a turn under real keepers."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
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
    ToolCallFinished,
    ToolCallStarted,
    TurnFinished,
    TurnResumed,
    WaitOpened,
)
from tests.agents.life import CLI, QUICK, AgentLife, command_profile, said
from tests.eventually import eventually
from tests.runtime.rig import ID

Make = Callable[..., AgentLife]
JSON = ["claude", "codex"]
FORMATS = [*JSON, "text"]


@pytest.fixture
async def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setenv("SCRIPTED_HOME", str(memory))
    lives: list[AgentLife] = []

    def made(format: str, *flags: str, **more: object) -> AgentLife:
        lives.append(AgentLife(tmp_path, *flags, command=format, **more))  # type: ignore[arg-type]
        return lives[-1]

    yield made
    await lives[-1].end()


async def kill_agent(life: AgentLife) -> None:
    (row,) = await life.store.running_tasks()
    assert row.pid is not None
    os.killpg(row.pid, signal.SIGKILL)


@pytest.mark.parametrize("format", JSON)
async def test_a_turn(make: Make, format: str) -> None:
    life = make(format)
    await life.start("!think about it", "!say let me look", "!call a ls", "!say all is well")
    state = await life.rest()
    events = await life.events()
    assert said(events) == ["let me look", "call 1-1-a", "done 1-1-a result of a", "all is well"]
    (attached,) = [event for event in events if isinstance(event, AgentAttached)]
    assert (attached.agent, attached.how, attached.context) == (format, "new", "none")
    assert attached.version == ("1.0" if format == "claude" else "")
    (first, last) = [event for event in events if isinstance(event, ModelResponded)]
    assert first.thinking == "about it" and [call.tool for call in first.calls] == ["terminal"]
    assert json.loads(first.calls[0].arguments) == {"command": "ls"}
    assert (last.usage.input_tokens, last.usage.output_tokens) == (11, 7)
    (end,) = [event for event in events if isinstance(event, TurnFinished)]
    assert (end.outcome, end.reason) == ("done", "the agent had nothing more to do")
    assert state.activity == "idle" and not await life.store.running_tasks()


async def test_plain_output_is_the_answer(make: Make) -> None:
    life = make("text")
    await life.start("!say one", "!say \x1b[31mtwo\x1b[0m", "!half three")
    await life.rest()
    assert said(await life.events()) == ["one\ntwo\nthree"]


@pytest.mark.parametrize("format", FORMATS)
async def test_the_next_turn_is_another_process_that_resumes(make: Make, format: str) -> None:
    life = make(format)
    await life.start("!say one")
    await life.rest()
    await life.say("!remember")
    await life.rest(2)
    events = await life.events()
    assert said(events) == ["one", "!say one"]
    assert len([event for event in events if isinstance(event, AgentAttached)]) == 1, "nothing new"
    assert len({event.task for event in events if isinstance(event, DriverOutputRead)}) == 2


async def test_what_a_session_cost_is_divided_among_its_turns(make: Make) -> None:
    """Codex counts the whole session; the scripted one always says the same, so the second turn cost nothing more."""
    life = make("codex")
    await life.start("!say one")
    await life.rest()
    await life.say("!say two")
    await life.rest(2)
    used = [event.usage.input_tokens for event in await life.events() if isinstance(event, ModelResponded)]
    assert used == [11, 0]


@pytest.mark.parametrize("format", JSON)
async def test_files_and_failed_calls(make: Make, format: str, tmp_path: Path) -> None:
    life = make(format)
    file = tmp_path / "a.txt"
    await life.start(f"!write {file} hello", "!open b make", "!end b failed no rule")
    await life.rest()
    written, failed = [event for event in await life.events() if isinstance(event, ToolCallFinished)]
    assert (written.tool, written.outcome, written.files) == ("write", "done", [str(file)])
    assert (failed.tool, failed.outcome, failed.output) == ("terminal", "failed", "no rule")


async def test_a_plan_is_in_the_log(make: Make) -> None:
    life = make("codex")
    await life.start("!plan read;write", "!say done")
    await life.rest()
    (plan,) = [event for event in await life.events() if isinstance(event, AgentPlanned)]
    assert [entry.text for entry in plan.entries] == ["read", "write"]


@pytest.mark.parametrize("format", FORMATS)
async def test_promise_3_the_agent_continues_while_no_gateway_is_there(make: Make, format: str, tmp_path: Path) -> None:
    life = make(format)
    go = tmp_path / "go"
    await life.start("!say one two", "!call a ls", f"!wait {go}", "!say three", "!call b ls", "!say four")
    await life.until(AgentAttached if format == "text" else ToolCallFinished)
    await life.close()
    go.touch()
    life = make(format)
    await life.start()
    await life.rest()
    events = await life.events()
    if format == "text":
        assert said(events) == ["one two\nthree\nfour"]
    else:
        first = ["one two", "call 1-1-a", "done 1-1-a result of a"]
        assert said(events) == [*first, "three", "call 1-1-b", "done 1-1-b result of b", "four"]
    names = {type(event).__name__ for event in events}
    assert not {"TurnSuspended", "TurnResumed", "ModelInterrupted"} & names
    assert len([event for event in events if isinstance(event, AgentAttached)]) == 1


@pytest.mark.parametrize("format", JSON)
async def test_an_agent_that_was_killed_resumes_its_own_session(make: Make, format: str, tmp_path: Path) -> None:
    life = make(format)
    await life.start("!say one", "!open a make", "!half {", f"!wait {tmp_path / 'go'}", "!say never")
    await life.until(ToolCallStarted)
    await kill_agent(life)
    await life.rest()
    events = await life.events()
    assert said(events)[:3] == ["one", "call 1-1-a", "cut "]
    assert said(events)[3].startswith("unknown 1-1-a Its outcome is not known")
    first, second = [event for event in events if isinstance(event, AgentAttached)]
    assert (second.remote, second.how, second.context) == (first.remote, "resume", "proven")
    (resumed,) = [event for event in events if isinstance(event, TurnResumed)]
    assert "SIGKILL" in resumed.reason
    await life.say("!remember")
    await life.rest(2)
    told = said(await life.events())[-1]
    assert "!say one" in told and "Check what is done already" in told, "it knows both prompts"


async def test_a_plain_agent_that_was_killed_is_informed(make: Make, tmp_path: Path) -> None:
    life = make("text")
    await life.start("!say one", f"!wait {tmp_path / 'go'}")
    await life.until(AgentAttached)
    await eventually(lambda: _size(life))
    await kill_agent(life)
    await life.rest()
    events = await life.events()
    assert said(events)[0] == "cut one"
    first, second = [event for event in events if isinstance(event, AgentAttached)]
    assert (second.remote, second.how, second.context) == (first.remote, "resume", "unproven")
    prompts = (tmp_path / "memory" / f"{first.remote}.jsonl").read_text().splitlines()
    assert len(prompts) == 2 and "were interrupted" in prompts[1].replace("Your process ended", "You were interrupted")


async def _size(life: AgentLife) -> int:
    (row,) = await life.store.running_tasks()
    return life.rig.tasks.supervisor.output(row.id).size()


async def test_a_resume_that_opened_another_session_is_unproven_and_reported(make: Make, tmp_path: Path) -> None:
    life = make("codex", "amnesia")
    await life.start("the word is BANANA", "!say one")
    await life.rest()
    await life.say("!say two")
    await life.rest(2)
    events = await life.events()
    first, second, third = [event for event in events if isinstance(event, AgentAttached)]
    assert (second.how, second.context) == ("resume", "unproven")
    assert second.remote != first.remote and f"instead of {first.remote}" in second.reason
    assert (third.how, third.context, third.reason) == ("new", "none", second.reason)
    memory = (tmp_path / "memory" / f"{third.remote}.jsonl").read_text()
    assert "the word is BANANA" in memory and "You answered: one" in memory, "it is told the conversation"
    assert said(events)[-1] == "two" and len([e for e in events if isinstance(e, TurnResumed)]) == 1


@pytest.mark.parametrize("format", FORMATS)
async def test_a_session_that_cannot_be_resumed_gets_an_account_of_the_conversation(
    make: Make, format: str, tmp_path: Path
) -> None:
    life = make(format, "forgetful")
    await life.start("the word is BANANA", "!say one")
    await life.rest()
    await life.say("!say two")
    state = await life.rest(2)
    events = await life.events()
    assert state.attached is not None and (state.attached.how, state.attached.context) == ("new", "none")
    assert "No conversation found" in state.attached.reason
    assert "the word is BANANA" in (tmp_path / "memory" / f"{state.attached.remote}.jsonl").read_text()
    assert said(events)[-1] == "two"


async def test_without_a_way_to_resume_each_turn_gets_an_account_of_the_conversation(
    make: Make, tmp_path: Path
) -> None:
    argv = [sys.executable, "-I", "-S", str(CLI), "text", "-p", "{prompt}"]
    life = make("text", settings=command_profile("unrestricted = true", argv))
    await life.start("the word is BANANA", "!say one")
    await life.rest()
    await life.say("!say two")
    await life.rest(2)
    texts = [path.read_text() for path in (tmp_path / "memory").iterdir()]
    (told,) = [text for text in texts if "!say two" in text]
    assert "the word is BANANA" in told and "You answered: one" in told
    assert said(await life.events()) == ["one", "two"]


@pytest.mark.parametrize("format", FORMATS)
async def test_a_stop_ends_the_whole_tree(make: Make, format: str, tmp_path: Path) -> None:
    life = make(format)
    child = tmp_path / "child"
    await life.start("!say one", f"!children {child}", "!open a make", "!hang")
    await eventually(lambda: _exists(child))
    await life.rig.say(ID, StopTurn())
    records = await life.until(TurnFinished)
    end = records[-1].event
    assert isinstance(end, TurnFinished) and end.outcome == "stopped"
    pid = int(child.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    await life.say("!say two")
    await life.rest(2)
    assert said(await life.events())[-1] == "two"


async def _exists(path: Path) -> bool:
    return path.exists() and bool(path.read_text())


async def test_junk_and_long_lines_change_nothing(make: Make) -> None:
    life = make("codex")
    await life.start("!junk {", "!junk hello", "!long 50000000", "!junk []", '!junk {"type": 3}', "!say end")
    await life.rest()
    assert said(await life.events()) == ["end"]


@pytest.mark.parametrize("format", JSON)
async def test_an_agent_that_ends_in_the_middle_is_resumed(make: Make, format: str, tmp_path: Path) -> None:
    life = make(format)
    await life.start("!say one", f"!once {tmp_path / 'ended'} die 0", "!say two")
    await life.rest()
    events = await life.events()
    (resumed,) = [event for event in events if isinstance(event, TurnResumed)]
    assert "exit code 0" in resumed.reason
    assert said(events)[0] == "cut one"


async def test_an_agent_that_dies_again_and_again_waits_for_a_person(make: Make) -> None:
    life = make("codex", "killed-at-start")
    await life.start("!say one")
    records = await life.until(WaitOpened)
    attempts = [record.event.attempt for record in records if isinstance(record.event, TurnResumed)]
    assert attempts == [1, 2, 3]
    wait = next(record.event for record in records if isinstance(record.event, WaitOpened))
    assert wait.purpose == "resume" and "exit code 137" in wait.reason


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("flag", "line", "code", "words"),
    [
        ("crash-at-start", "!say x", "agent_failed", "exit code 1: it cannot start"),
        ("", "!fail the model is away", "agent_failed", "the model is away"),
        ("", "!die 3", "agent_failed", "exit code 3"),
    ],
)
async def test_an_agent_that_cannot_work_says_why(
    make: Make, format: str, flag: str, line: str, code: str, words: str
) -> None:
    life = make(format, *([flag] if flag else []))
    await life.start(line)
    state = await life.rest()
    assert state.last_turn is not None and state.last_turn.problem is not None
    assert (state.last_turn.outcome, state.last_turn.problem.code) == ("failed", code)
    assert words in state.last_turn.problem.message
    assert not await life.store.running_tasks()


@pytest.mark.parametrize("format", FORMATS)
async def test_a_turn_continues_after_a_log_in(make: Make, format: str, tmp_path: Path) -> None:
    life = make(format, "no-login")
    await life.start("!say one")
    records = await life.until(WaitOpened)
    wait = next(record.event for record in records if isinstance(record.event, WaitOpened))
    assert wait.purpose == "login" and "Not logged in" in wait.reason
    (tmp_path / "memory" / "logged-in").touch()
    await life.answer("try again")
    state = await life.rest()
    assert state.last_turn is not None and state.last_turn.outcome == "done"
    assert len([event for event in await life.events() if isinstance(event, DriverOutputRead) and event.prompt]) >= 2


async def test_a_plain_agent_without_output_has_not_answered(make: Make) -> None:
    life = make("text", "silent")
    await life.start("nothing to do")
    state = await life.rest()
    assert state.last_turn is not None and "without an answer" in state.last_turn.reason


async def test_a_program_that_is_not_installed(make: Make) -> None:
    life = make("text", settings=command_profile('agent = "codex"', ["/nowhere/codex"]))
    await life.start("!say one")
    state = await life.rest()
    assert state.last_turn is not None and state.last_turn.problem is not None
    assert state.last_turn.problem.code == "agent_missing"
    assert "npm install" in state.last_turn.problem.hint


async def test_an_agent_that_has_answered_and_does_not_end_is_ended(make: Make) -> None:
    life = make("codex", timings=replace(QUICK, runtime=replace(QUICK.runtime, agent_stop=0.2)))
    await life.start("!say one", "!linger")
    state = await life.rest()
    assert state.last_turn is not None and state.last_turn.outcome == "done"
    assert said(await life.events()) == ["one"] and not await life.store.running_tasks()


@pytest.mark.parametrize("format", FORMATS)
async def test_a_very_long_prompt_goes_by_standard_input(make: Make, format: str) -> None:
    life = make(format)
    await life.start("!size", "x" * 3_000_000)
    await life.rest()
    assert said(await life.events()) == [str(len("!size\n") + 3_000_000)]


async def test_a_prompt_too_long_for_a_command_line_is_refused(make: Make) -> None:
    argv = [sys.executable, "-I", "-S", str(CLI), "text", "-p", "{prompt}"]
    life = make("text", settings=command_profile("unrestricted = true", argv))
    await life.start("x" * (128 << 10))
    state = await life.rest()
    assert state.last_turn is not None and state.last_turn.problem is not None
    assert "131072 bytes" in state.last_turn.problem.message and "{prompt}" in state.last_turn.problem.hint
    await life.say("!say $(touch pwned) `ls` \"' {session} --help")
    await life.rest(2)
    assert said(await life.events())[-1] == "$(touch pwned) `ls` \"' {session} --help"
    assert not (life.cwd / "pwned").exists()


async def test_messages_wait_for_the_next_turn(make: Make, tmp_path: Path) -> None:
    life = make("codex")
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
    life = make("codex")
    await life.start("!say one")
    await life.rest()
    with pytest.raises(Conflict, match="a context of its own"):
        await life.rig.say(ID, command)


async def test_a_reset_and_a_fork_begin_a_new_session_with_an_account_of_the_old(make: Make, tmp_path: Path) -> None:
    life = make("claude")
    await life.start("the word is BANANA", "!say one")
    await life.rest()
    await life.rig.sessions.fork(ID, ForkSession(), session="f" * 16, caller=life.rig.caller())
    await life.rig.sessions.execute("f" * 16, SendMessage(text="!say two"), life.rig.caller())
    fork = await life.rig.until_session("f" * 16, lambda state: state.turns == 2 and state.activity == "idle")
    await life.rig.gateway.reset_service.by_person(ID, ResetSession(note=True), life.rig.caller())
    await life.say("!say two")
    state = await life.rest(2)
    for one in (fork, state):
        assert one.attached is not None and one.attached.how == "new"
        memory = (tmp_path / "memory" / f"{one.attached.remote}.jsonl").read_text()
        assert "The user said: the word is BANANA" in memory
    assert state.attached is not None and state.attached.chapter == 2


async def test_a_stop_before_the_next_gateway_ends_the_process(make: Make) -> None:
    life = make("codex")
    await life.start("!say one", "!open a make", "!hang")
    await life.until(ToolCallStarted)
    await life.rig.say(ID, StopTurn())
    await life.close()
    life = make("codex")
    await life.start()
    state = await life.rest()
    assert state.last_turn is not None and state.last_turn.outcome == "stopped"
    assert not await life.store.running_tasks()


async def test_a_mode_without_limits_is_used_where_the_profile_says_so(make: Make) -> None:
    life = make("claude", more='mode = "bypassPermissions"\nunrestricted = true')
    await life.start("!arguments")
    await life.rest()
    assert "--permission-mode bypassPermissions" in said(await life.events())[-1]


async def test_each_format_gets_its_mode(make: Make) -> None:
    life = make("codex")
    await life.start("!arguments")
    await life.rest()
    await life.say("!arguments")
    await life.rest(2)
    first, second = said(await life.events())
    assert 'exec --json --skip-git-repo-check -c sandbox_mode="workspace-write" -' in first
    assert "exec resume --json" in second and 'sandbox_mode="workspace-write"' in second
