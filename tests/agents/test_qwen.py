"""A real agent, Qwen Code, at work for a real gateway; only its model is ours (`loopback_model.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.real_agents import AGENTS, installed_for_tests
from tests.agents.real_rig import RealRig, real_rig
from tests.cli.commandline import CommandLine
from tests.e2e.agents import answer, waiting
from tests.e2e.board import create_card, tell_card, until_card
from tests.e2e.gateway import check_whole, of_kind, until
from tests.eventually import PATIENCE


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[RealRig]:
    with real_rig(AGENTS["qwen"], installed_for_tests("qwen"), tmp_path) as rig:
        yield rig


def test_promise_3_its_permission_outlives_kill_9_of_the_gateway(rig: RealRig) -> None:
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
    (attached,) = of_kind(records, "AgentAttached")  # the same process did all of it
    assert (attached["agent"], attached["version"]) == ("qwen", AGENTS["qwen"].package.rpartition("@")[2])
    wrote, _ = of_kind(records, "ToolCallFinished")
    assert (wrote["tool"], wrote["outcome"], wrote["files"]) == ("write", "done", [f"{rig.work}/a.txt"])
    (finished,) = of_kind(records, "TurnFinished")
    assert finished["outcome"] == "done"
    assert not of_kind(records, "TurnResumed", "ModelInterrupted")


def test_it_resumes_its_own_session_when_it_was_killed(rig: RealRig) -> None:
    session = rig.create(f"The word is APPLE10. [[write {rig.work}/a.txt|hello]]")
    assert answer(rig.gateway, waiting(rig.gateway)["id"], "allow") == 202
    rig.gateway.until_event(session, "TurnFinished")
    rig.gateway.send(session, "Which word was it? [[hold]]")
    assert rig.model.held.wait(PATIENCE)
    rig.kill_agent()
    rig.model.released.set()
    rig.gateway.until_event(session, "TurnFinished", count=2)
    records = rig.gateway.until_rest(session)
    first, second = of_kind(records, "AgentAttached")
    assert (second["remote"], second["how"], second["context"]) == (first["remote"], "resume", "proven")
    assert [turn["outcome"] for turn in of_kind(records, "TurnFinished")] == ["done", "done"]
    assert "APPLE10" in of_kind(records, "ModelResponded")[-1]["text"], "it knows what only the first process was told"
    sent = (rig.gateway.home / "tasks" / second["task"] / "stdin").read_bytes()
    assert b"APPLE10" not in sent, "we did not tell it again"
    assert len(of_kind(records, "ToolCallFinished")) == 1


def test_it_works_on_a_card_through_kills_of_the_gateway_and_of_itself(rig: RealRig) -> None:
    gateway, rig_model = rig.gateway, rig.model
    body = f'The word is APPLE10. [[write {rig.work}/a.txt|hello]] [[tool kanban_block|{{"reason": "which one?"}}]]'
    card = create_card(gateway, body, profile="qwen", workspace=f"dir:{rig.work}")
    wait = waiting(gateway)
    rig.restart_gateway()
    assert waiting(gateway)["id"] == wait["id"] and not (rig.work / "a.txt").exists()
    assert answer(gateway, wait["id"], "allow") == 202
    found = until_card(gateway, card, "blocked")
    assert (found["card"]["reason"], (rig.work / "a.txt").read_text()) == ("which one?", "hello")
    session = found["runs"][0]["session"]
    gateway.until_rest(session)
    tell_card(gateway, card, "unblock", {"text": "The blue one. [[hold]]"})
    assert rig_model.held.wait(PATIENCE)
    tell_card(gateway, card, "comments", {"text": '[[tool kanban_complete|{"summary": "the blue one"}]]'})
    rig.kill_agent()
    rig_model.released.set()
    found = until_card(gateway, card, "done", "ready")
    assert found["summary"] == "the blue one"
    assert [(run["session"], run["outcome"]) for run in found["runs"]] == [(session, "blocked"), (session, "done")]
    records = gateway.until_rest(session)
    check_whole(records)
    assert len(of_kind(records, "WaitAnswered")) == 1, "the tools of the board need no approval"
    attached = of_kind(records, "AgentAttached")
    assert [(one["run"], one["context"]) for one in attached] == [(1, "none"), (2, "proven"), (2, "proven")]
    assert len({one["remote"] for one in attached}) == 1
    assert "APPLE10" in of_kind(records, "ModelResponded")[-1]["text"], "it knows what only the first run was told"


def test_agents_test_says_what_it_can_do(rig: RealRig) -> None:
    rig.model.released.set()
    cli = CommandLine(rig.gateway.home)
    said = cli.ok("agents", "test", "qwen")
    assert "agent           qwen 0.24.4" in said
    assert "wrote its file  yes" in said
    assert "hello.txt" in said and "allow" in said
    assert "resumes         yes, by its own session" in said
    assert not rig.gateway.get("/v1/tasks", state="running")["tasks"]
