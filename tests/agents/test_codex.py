"""A real agent, Codex, as a command for a real gateway; only its model is ours (`loopback_model.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.real_agents import AGENTS, installed_for_tests
from tests.agents.real_rig import RealRig, real_rig
from tests.cli.commandline import CommandLine
from tests.e2e.gateway import check_whole, of_kind
from tests.eventually import PATIENCE


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[RealRig]:
    program = installed_for_tests("codex", driver="command")
    with real_rig(AGENTS["codex"], program, tmp_path, driver="command") as rig:
        yield rig


def test_promise_3_it_continues_after_kill_9_of_the_gateway_and_of_itself(rig: RealRig) -> None:
    work = rig.work
    session = rig.create(f"The word is APPLE10. [[write {work}/a.txt|hello]] [[hold]]")
    assert rig.model.held.wait(PATIENCE)
    rig.gateway.kill9()
    rig.gateway.start()
    rig.model.released.set()
    records = rig.gateway.until_rest(session)
    check_whole(records)
    assert (work / "a.txt").read_text() == "hello"
    (call,) = of_kind(records, "ToolCallFinished")
    assert (call["tool"], call["outcome"], call["exit_code"]) == ("terminal", "done", 0)
    assert [one["text"] for one in of_kind(records, "ModelResponded") if one["text"]] == ["I remember: APPLE10"]
    (finished,) = of_kind(records, "TurnFinished")
    assert finished["outcome"] == "done"
    assert not of_kind(records, "TurnResumed", "ModelInterrupted")
    (first,) = of_kind(records, "AgentAttached")
    assert (first["agent"], first["how"]) == ("codex", "new")

    rig.model.held.clear()
    rig.model.released.clear()
    rig.gateway.send(session, "Which word was it? [[hold]]")
    assert rig.model.held.wait(PATIENCE)
    rig.kill_agent()
    rig.model.released.set()
    rig.gateway.until_event(session, "TurnFinished", count=2)
    records = rig.gateway.until_rest(session)
    second = of_kind(records, "AgentAttached")[-1]
    assert (second["remote"], second["how"], second["context"]) == (first["remote"], "resume", "proven")
    assert [turn["outcome"] for turn in of_kind(records, "TurnFinished")] == ["done", "done"]
    assert "APPLE10" in of_kind(records, "ModelResponded")[-1]["text"], "it knows what only the first process was told"
    sent = (rig.gateway.home / "tasks" / second["task"] / "stdin.closed").read_bytes()
    assert b"APPLE10" not in sent and b"interrupted" in sent, "we did not tell it again"
    used = [one["usage"]["input_tokens"] for one in of_kind(records, "ModelResponded")]
    assert 0 < sum(used) <= 11 * len(rig.model.asked), "what a turn cost is counted once"


def test_agents_test_says_what_it_can_do(rig: RealRig) -> None:
    rig.model.released.set()
    said = CommandLine(rig.gateway.home).ok("agents", "test", "codex")
    assert "agent           codex" in said
    assert "wrote its file  yes" in said
    assert "asked before    no" in said
    assert "resumes         yes, by its own session" in said
    assert not rig.gateway.get("/v1/tasks", state="running")["tasks"]


def test_a_session_of_its_own_terminal_is_adopted_and_stays_as_it_is(rig: RealRig) -> None:
    rig.model.released.set()
    rig.run_outside("exec", "--json", "--skip-git-repo-check", "The word is PEACH22. [[run echo hi]]")
    (original,) = (rig.program.parent / "home-of-codex" / ".codex" / "sessions").rglob("*.jsonl")
    before = original.read_bytes()
    remote = original.stem[-36:]
    line = CommandLine(rig.gateway.home)
    listed = line.ok("agents", "adopt", "codex")
    assert "The word is PEACH22." in listed and remote[:8] in listed and str(rig.work) in listed
    adopted = line.json("agents", "adopt", "codex", remote[:18])
    session = adopted["session"]
    assert (adopted["agent"], adopted["profile"], adopted["turns"]) == ("codex", "codex", 1)
    records = rig.gateway.events(session)
    (call,) = of_kind(records, "ToolCallFinished")
    assert (call["tool"], call["output"], call["exit_code"]) == ("terminal", "hi\n", 0)
    assert [one["text"] for one in of_kind(records, "ModelResponded") if one["text"]] == ["I remember: PEACH22"]

    rig.gateway.send(session, "Which word was it?")
    rig.gateway.until_event(session, "TurnFinished", count=2)
    records = rig.gateway.until_rest(session)
    check_whole(records)
    (attached,) = of_kind(records, "AgentAttached")
    assert (attached["how"], attached["context"]) == ("fork", "proven") and attached["remote"] != remote
    last = of_kind(records, "ModelResponded")[-1]
    assert last["text"] == "I remember: PEACH22", "only its own session was told"
    assert last["usage"]["input_tokens"] == 11, "what it cost outside is not counted"
    assert original.read_bytes() == before

    refused = line("agents", "adopt", "codex", remote)
    assert refused.returncode == 5 and f"it continues in session {session}" in refused.stderr
