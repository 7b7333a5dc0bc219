"""Adopting sessions that agents had in their own terminal: scripted agents, real processes, a real store."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from holdfast.domain.commands import AdoptSession, ForkSession, SendMessage
from holdfast.domain.errors import Conflict, HoldfastError, NotFound, Rejected
from holdfast.domain.events import AnyEvent, session_stream
from holdfast.domain.events.external_agent import AgentAttached, SessionAdopted
from holdfast.domain.events.session import InputReceived, ModelResponded, SessionCreated
from holdfast.processes.identity import process
from holdfast.runtime.external.adoption.adopt import Adoptions
from holdfast.store.contract import Appended
from tests.agents.life import AGENT, CLI, AgentLife, said
from tests.agents.own_sessions import (
    ID,
    OTHER,
    agent,
    answered,
    asked,
    claude_file,
    codex_file,
    ms,
    person,
)
from tests.agents.own_sessions import said as block

WORD = "the word is PEACH22"


class Adopted:
    """A gateway, and an agent that had a session in its own terminal."""

    def __init__(self, directory: Path, name: str, driver: str, *flags: str, more: str = "") -> None:
        self.name = name
        script = [str(CLI), name] if driver == "command" else [str(AGENT)]
        argv = [sys.executable, "-I", "-S", *script, *flags]
        profile = f'driver = "{driver}"\nagent = "{name}"\nargv = {json.dumps(argv)}\nenv = ["SCRIPTED_HOME"]\n'
        self.life = AgentLife(directory, settings=f"[profiles.mine]\n{profile}{more}")
        self.rig, self.cwd = self.life.rig, self.life.cwd
        self.memory = directory / "memory" / f"{ID}.jsonl"
        """What the agent itself remembers."""
        self.home = directory / "of-agent"
        self.file = self.write()
        self.adoptions = Adoptions(self.rig.store, self.rig.sessions, self.rig.profiles, self.rig.clock)

    def write(self, id: str = ID, cwd: Path | None = None) -> Path:
        """Write a session of two turns, the first one with a call."""
        self.memory.with_name(f"{id}.jsonl").write_text(json.dumps(WORD) + "\n")
        if self.name == "claude":
            lines = [person(WORD, 1), agent(2, block("I see")), person("and more", 3), agent(4, block("well"))]
            return claude_file(self.home, cwd or self.cwd, *lines, id=id)
        lines = [asked(WORD, 1), answered("I see", 2), asked("and more", 3), answered("well", 4)]
        return codex_file(self.home, cwd or self.cwd, *lines, id=id)

    async def adopt(self, session: str = ID, *, key: str | None = None, **more: object) -> str:
        return (await self.adopted(session, key=key, **more)).stream.removeprefix("session/")

    async def adopted(self, session: str = ID, *, key: str | None = None, **more: object) -> Appended:
        command = AdoptSession(session=session, **more)  # type: ignore[arg-type]
        return await self.adoptions.adopt(self.name, command, self.rig.caller(key))

    async def say(self, session: str, text: str, *, turns: int) -> list[AnyEvent]:
        await self.rig.sessions.execute(session, SendMessage(text=text), self.rig.caller())
        await self.rig.until_session(session, lambda state: state.activity == "idle" and state.turns >= turns)
        return await self.events(session)

    async def events(self, session: str) -> list[AnyEvent]:
        return [record.event for record in await self.rig.store.load(session_stream(session), after=0)]

    def originals(self) -> dict[str, bytes]:
        return {str(file): file.read_bytes() for file in (self.file, self.memory)}


Make = Callable[..., Adopted]
WAYS = [("claude", "command"), ("codex", "command"), ("claude", "acp"), ("codex", "acp")]


@pytest.fixture
async def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    (tmp_path / "memory").mkdir()
    monkeypatch.setenv("SCRIPTED_HOME", str(tmp_path / "memory"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "of-agent"))
    made: list[Adopted] = []

    def make(*arguments: str, **more: str) -> Adopted:
        made.append(Adopted(tmp_path, *arguments, **more))
        return made[-1]

    yield make
    await made[-1].life.end()


# --- it goes on -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "driver"), WAYS)
async def test_it_continues_in_a_copy_and_the_original_stays_as_it_is(name: str, driver: str, make: Make) -> None:
    it = make(name, driver, *(["fork"] if driver == "acp" else []))
    await it.life.start()
    before = it.originals()
    session = await it.adopt()
    imported = await it.rig.store.load(session_stream(session), after=0)
    first, last = imported[0], imported[-1]
    assert isinstance(first.event, SessionCreated) and (first.at, first.event.title) == (ms(1), WORD)
    assert (first.event.profile, first.event.driver, first.event.cwd) == ("mine", driver, str(it.cwd))
    assert isinstance(last.event, SessionAdopted) and last.event.turns == 2 and last.at > ms(4)
    assert [one.at for one in imported if isinstance(one.event, InputReceived)] == [ms(1), ms(3)]
    assert [one.event.text for one in imported if isinstance(one.event, ModelResponded)] == ["I see", "well"]

    events = await it.say(session, "!remember", turns=3)
    assert said(events)[-1] == WORD, "only the session outside was told"
    (attached,) = [event for event in events if isinstance(event, AgentAttached)]
    assert (attached.how, attached.context, attached.reason) == ("fork", "proven", "")
    assert attached.remote != ID and it.originals() == before

    await it.life.end_agents()
    await it.rig.tasks.wait_ended(attached.task)
    events = await it.say(session, "!remember", turns=4)
    assert said(events)[-1] == f"{WORD} | !remember"
    *_, again = [event for event in events if isinstance(event, AgentAttached)]
    assert again.remote == attached.remote and it.originals() == before


@pytest.mark.parametrize(("name", "driver"), WAYS)
async def test_killed_in_the_middle_it_continues_with_the_copy(
    name: str, driver: str, make: Make, tmp_path: Path
) -> None:
    it = make(name, driver, *(["fork"] if driver == "acp" else []), "quoted")
    await it.life.start()
    before = it.originals()
    session = await it.adopt()
    prompt = f"!say one\n!call 1 {'execute ' if driver == 'acp' else ''}x\n!once {tmp_path}/mark die 137\n!say two"
    events = await it.say(session, prompt, turns=3)
    forked, resumed = [event for event in events if isinstance(event, AgentAttached)]
    assert (forked.how, resumed.how, resumed.context) == ("fork", "resume", "proven")
    assert resumed.remote == forked.remote and it.originals() == before


async def test_a_copy_that_cannot_be_made_is_reported_and_the_agent_gets_a_short_account(make: Make) -> None:
    it = make("claude", "command", "forgetful")
    await it.life.start()
    before = it.originals()
    events = await it.say(await it.adopt(), "!remember", turns=3)
    failed, new = [event for event in events if isinstance(event, AgentAttached)]
    assert (failed.how, failed.context) == ("fork", "unproven") and "could not be copied" in failed.reason
    assert (new.how, new.context) == ("new", "none")
    (memory,) = [file for file in it.memory.parent.glob("*.jsonl") if file != it.memory]
    assert WORD in memory.read_text() and "You do not remember this conversation" in memory.read_text()
    assert it.originals() == before


@pytest.mark.parametrize(
    ("flags", "reason"), [((), "the agent cannot copy a session"), (("fork", "no-copy"), "it made no copy")]
)
async def test_by_the_protocol_nothing_is_said_to_the_original(flags: tuple[str, ...], reason: str, make: Make) -> None:
    it = make("codex", "acp", *flags)
    await it.life.start()
    before = it.originals()
    events = await it.say(await it.adopt(), "!say hello", turns=3)
    (attached,) = [event for event in events if isinstance(event, AgentAttached)]
    assert (attached.how, attached.context) == ("new", "none") and reason in attached.reason
    assert it.originals() == before


async def test_a_copy_of_a_session_that_the_agent_does_not_list_is_unproven(make: Make) -> None:
    it = make("codex", "acp", "fork", "no-list")
    await it.life.start()
    events = await it.say(await it.adopt(), "!remember", turns=3)
    (attached,) = [event for event in events if isinstance(event, AgentAttached)]
    assert (attached.how, attached.context) == ("fork", "unproven") and "cannot list" in attached.reason
    assert said(events)[-1] == WORD


async def test_a_fork_of_the_session_here_does_not_go_back_to_what_was_adopted(make: Make) -> None:
    it = make("claude", "command")
    await it.life.start()
    session = await it.adopt()
    await it.say(session, "!say later", turns=3)
    await it.rig.sessions.fork(session, ForkSession(), session="f" * 16, caller=it.rig.caller())
    events = await it.say("f" * 16, "!say hello", turns=4)
    (attached,) = [event for event in events if isinstance(event, AgentAttached)]
    assert attached.how == "new" and not any(isinstance(event, SessionAdopted) for event in events)


async def test_what_is_imported_is_no_activity_of_today(make: Make) -> None:
    it = make("claude", "command")
    session = await it.adopt()
    state, row = await it.rig.sessions.get(session), await it.rig.store.session(session)
    assert state.last_active is not None and state.last_active.at > ms(4)
    assert row.last_active_at == row.first_input_at == row.updated_at == state.last_active.at
    turns = await it.rig.store.turns(session)
    assert [(turn.state, turn.reason, turn.input_tokens) for turn in turns] == [("done", "imported", 0)] * 2


# --- once -----------------------------------------------------------------------------------------


async def test_what_was_adopted_before_is_refused_with_its_session(make: Make) -> None:
    it = make("claude", "command")
    first = await it.adopted(key="first-time")
    session = first.stream.removeprefix("session/")
    with pytest.raises(Conflict, match=f"continues in session {session}") as refused:
        await it.adopt()
    assert f"holdfast send {session}" in refused.value.hint and "--anyway" in refused.value.hint
    again = await it.adopted(key="first-time")
    assert again.duplicate and again.stream == first.stream, "a retry gets the same answer"
    other = await it.adopt(anyway=True)
    assert other != session
    (listed,) = (await it.adoptions.sessions_of("claude", limit=10)).sessions
    assert (listed.id, listed.session, listed.cwd, listed.title) == (ID, other, str(it.cwd), WORD)
    for one in (session, other):
        await it.rig.sessions.delete(one, it.rig.caller())
    assert await it.adopt() not in (session, other)


async def test_of_two_concurrent_adoptions_one_succeeds(make: Make) -> None:
    it = make("codex", "command")
    results = await asyncio.gather(*(it.adopted() for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(result, Appended) for result in results) == 1
    assert all(isinstance(result, Appended | Conflict) for result in results)


async def test_a_session_in_which_holdfast_works_is_refused(make: Make) -> None:
    it = make("claude", "command")
    await it.life.start()
    session = await it.adopt()
    await it.say(session, "!say hello", turns=3)
    own = (await it.rig.sessions.get(session)).attached
    assert own is not None
    it.write(own.remote)
    with pytest.raises(Conflict, match=f"is that of the Holdfast session {session}"):
        await it.adopt(own.remote)
    listed = {one.id: one.session for one in (await it.adoptions.sessions_of("claude", limit=10)).sessions}
    assert listed == {ID: session, own.remote: session}


# --- refused --------------------------------------------------------------------------------------


async def test_a_session_that_is_open_in_its_terminal_is_refused(make: Make) -> None:
    it = make("claude", "command")
    register = it.home / "sessions"
    register.mkdir()
    with subprocess.Popen(["sleep", "600"]) as running:
        found = process(running.pid)
        assert found is not None
        entry = {"pid": running.pid, "sessionId": ID, "procStart": str(found.start)}
        (register / f"{running.pid}.json").write_text(json.dumps(entry))
        with pytest.raises(Conflict, match=rf"still open outside of Holdfast: process {running.pid}") as refused:
            await it.adopt()
        assert "--anyway" in refused.value.hint
        await it.adopt(anyway=True)
        running.kill()


async def test_what_cannot_be_adopted_is_refused_with_the_reason(make: Make, tmp_path: Path) -> None:
    it = make("claude", "command", more='[profiles.other]\nmodel = "demo"\n')
    it.write(OTHER, cwd=tmp_path / "gone")
    empty = "0a1b2c3d-9999-4222-8333-555555555555"
    claude_file(it.home, it.cwd, agent(1, block("nobody asked")), id=empty)

    async def refused(
        kind: type[HoldfastError], words: str, *arguments: str, hint: str = "", profile: str | None = None
    ) -> None:
        with pytest.raises(kind, match=words) as error:
            await it.adopt(*arguments, profile=profile)
        assert hint in error.value.hint

    await refused(NotFound, "Claude Code has no session 'ffff'", "ffff", hint="holdfast agents adopt claude")
    await refused(NotFound, "has no session '0a1'", "0a1")
    await refused(NotFound, "has no session", "../../../etc/passwd")
    await refused(Conflict, "fits 3 sessions", "0a1b2c3d", hint="more characters")
    await refused(Rejected, "gone' does not exist any more", OTHER, hint="Create it again")
    await refused(Rejected, "nobody has said anything", empty)
    long = "ffffffff-9999-4222-8333-555555555555"
    for odd in (".", "x" * 5000, "/etc/passwd"):
        claude_file(it.home, it.cwd, person("hello", 1), id=long, stated=odd)
        await refused(Rejected, "does not exist any more", long)
    await refused(Rejected, "'other' does not use Claude Code", profile="other", hint="mine")
    await refused(Rejected, "'none' does not exist", profile="none")
    with pytest.raises(NotFound, match="cannot be adopted") as error:
        await it.adoptions.sessions_of("../etc", limit=1)
    assert "claude, codex" in error.value.hint
    listed = (await it.adoptions.sessions_of("claude", limit=10)).sessions
    assert {one.id for one in listed} == {ID, OTHER, long}, "not the empty one"


async def test_a_profile_and_the_program_of_the_agent_are_needed(make: Make) -> None:
    it = make("claude", "command")
    config = it.rig.home / "config.toml"
    config.write_text("")
    with pytest.raises(Rejected, match="No profile uses Claude Code") as refused:
        await it.adopt()
    assert refused.value.hint == "Add one: `holdfast agents add claude`"
    profile = 'agent = "claude"\nargv = ["{}"]\n'
    config.write_text(f"[profiles.one]\n{profile.format('/no/such/program')}")
    with pytest.raises(Rejected, match="is not installed where the gateway runs: there is no '/no/such") as refused:
        await it.adopt()
    assert "npm install" in refused.value.hint
    config.write_text(f"[profiles.one]\n{profile.format('sh')}[profiles.two]\n{profile.format('sh')}# several")
    with pytest.raises(Rejected, match="Several profiles use Claude Code") as refused:
        await it.adopt()
    assert "one, two" in refused.value.hint
    session = await it.adopt(profile="two")
    assert (await it.rig.store.session(session)).profile == "two"


async def test_a_link_in_the_place_of_the_file_is_not_followed(make: Make) -> None:
    it = make("claude", "command")
    it.file.unlink()
    it.file.symlink_to("/etc/passwd")
    with pytest.raises(NotFound):
        await it.adopt()
