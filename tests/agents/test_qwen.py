"""A real agent, Qwen Code, at work for a real gateway; only its model is ours (`loopback_model.py`)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.agents.loopback_model import LoopbackModel
from tests.agents.real_agents import AGENTS, installed_for_tests, starter
from tests.e2e.agents import answer, waiting
from tests.e2e.gateway import GatewayProcess, check_whole, of_kind, until


@dataclass(frozen=True)
class Rig:
    """A gateway whose only profile is the agent."""

    gateway: GatewayProcess
    model: LoopbackModel
    work: Path

    def create(self, text: str) -> str:
        body = {"text": text, "profile": "qwen", "cwd": str(self.work)}
        return str(self.gateway.command("POST", "/v1/sessions", body)["session"])

    def agents(self) -> list[int]:
        """The processes of the agent."""
        return [row["pid"] for row in self.gateway.get("/v1/tasks", state="running")["tasks"]]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    program = installed_for_tests("qwen")
    work = tmp_path / "work"
    work.mkdir()
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with LoopbackModel() as model, GatewayProcess(home, timings={"runtime.agent_ready": 300.0}) as gateway:
        script = starter(AGENTS["qwen"], program, tmp_path, model.url)
        (home / "config.toml").write_text(f'[profiles.qwen]\nagent = "qwen"\nargv = ["{script}"]\n')
        rig = Rig(gateway.start(), model, work)
        yield rig
        for pid in rig.agents():
            os.killpg(pid, signal.SIGKILL)


def test_it_writes_a_file_after_an_approval(rig: Rig) -> None:
    session = rig.create(f"The word is APPLE10. [[write {rig.work}/a.txt|hello]]")
    wait = waiting(rig.gateway)
    assert not (rig.work / "a.txt").exists()
    assert answer(rig.gateway, wait["id"], "allow") == 202
    records = rig.gateway.until_rest(session)
    check_whole(records)
    assert (rig.work / "a.txt").read_text() == "hello"
    (call,) = of_kind(records, "ToolCallFinished")
    assert (call["tool"], call["outcome"], call["files"]) == ("write", "done", [f"{rig.work}/a.txt"])
    assert "APPLE10" in of_kind(records, "ModelResponded")[-1]["text"]
    (attached,) = of_kind(records, "AgentAttached")
    assert (attached["agent"], attached["version"]) == ("qwen", AGENTS["qwen"].package.rpartition("@")[2])


def test_promise_3_its_permission_outlives_kill_9_of_the_gateway(rig: Rig) -> None:
    session = rig.create(f"[[write {rig.work}/a.txt|hello]] [[run echo again >> {rig.work}/b.txt]]")
    wait = waiting(rig.gateway)
    rig.gateway.kill9()
    rig.gateway.start()
    assert waiting(rig.gateway)["id"] == wait["id"] and not (rig.work / "a.txt").exists()
    assert answer(rig.gateway, wait["id"], "allow") == 202
    second = until(lambda: found if (found := waiting(rig.gateway))["id"] != wait["id"] else None, "it asks again")
    rig.gateway.kill9()
    rig.gateway.start()
    assert answer(rig.gateway, second["id"], "allow") == 202
    records = rig.gateway.until_rest(session)
    check_whole(records)
    assert ((rig.work / "a.txt").read_text(), (rig.work / "b.txt").read_text()) == ("hello", "again\n")
    assert len(of_kind(records, "WaitAnswered")) == 2
    assert len(of_kind(records, "AgentAttached")) == 1, "the same process did all of it"
    (finished,) = of_kind(records, "TurnFinished")
    assert finished["outcome"] == "done"
    assert not of_kind(records, "TurnResumed", "ModelInterrupted")


def test_it_resumes_its_own_session_when_it_was_killed(rig: Rig) -> None:
    session = rig.create(f"The word is APPLE10. [[write {rig.work}/a.txt|hello]] [[hold]]")
    assert answer(rig.gateway, waiting(rig.gateway)["id"], "allow") == 202
    assert rig.model.held.wait(300)
    (pid,) = rig.agents()
    os.killpg(pid, signal.SIGKILL)
    rig.model.released.set()
    records = rig.gateway.until_rest(session)
    first, second = of_kind(records, "AgentAttached")
    assert (second["remote"], second["how"], second["context"]) == (first["remote"], "resume", "proven")
    rig.gateway.send(session, "Which word was it? [[end]]")
    rig.gateway.until_event(session, "TurnFinished", count=2)
    records = rig.gateway.until_rest(session)
    assert [turn["outcome"] for turn in of_kind(records, "TurnFinished")] == ["done", "done"]
    assert "APPLE10" in of_kind(records, "ModelResponded")[-1]["text"], "it knows what only the first process was told"
    sent = (rig.gateway.home / "tasks" / second["task"] / "stdin").read_bytes()
    assert b"APPLE10" not in sent, "we did not tell it again"
    assert len(of_kind(records, "ToolCallFinished")) == 1
