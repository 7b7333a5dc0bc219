"""Resets of a real gateway with real servers running: on time, with the reason, and visible everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commandline import CommandLine
from tests.e2e.gateway import GatewayProcess, Json, kinds, of_kind, until
from tests.e2e.tasks import home_with_commands, task, tasks_of, until_over

QUICK = {"lifecycle.reset_check": 0.1, "minute_ms": 1_500}
"""A minute of the policy is a second and a half."""
SERVER = "bg python3 -m http.server 0 --bind 127.0.0.1"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    (tmp_path / "work").mkdir()
    with home_with_commands(tmp_path / "home", timings=QUICK) as gateway:
        yield gateway.start()


def policy(gateway: GatewayProcess, session: str, **chosen: object) -> None:
    body = {"policy": {"mode": "idle", "idle_minutes": 1, "hand_over_note": False} | chosen}
    gateway.command("POST", f"/v1/sessions/{session}/reset/policy", body)


def with_servers(gateway: GatewayProcess, tmp_path: Path, count: int = 2) -> tuple[str, list[str]]:
    """A session whose agent started servers that nobody uses."""
    session = gateway.create("\n".join([SERVER] * count), cwd=tmp_path / "work")
    gateway.until_rest(session)
    ids = [one["id"] for one in tasks_of(gateway, session)]
    quiet = ("activity_detail", "not in use")
    until(
        lambda: all(quiet in (found := task(gateway, id)).items() and found["quiet_looks"] >= 3 for id in ids), "quiet"
    )
    return session, sorted(ids)


def opened(gateway: GatewayProcess, session: str) -> Json:
    return of_kind(gateway.until_event(session, "ChapterOpened"), "ChapterOpened")[-1]


def test_promise_5_an_idle_session_with_two_servers_is_reset_on_time_and_hands_them_over(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    session, ids = with_servers(gateway, tmp_path)
    policy(gateway, session, hand_over_note=True)
    reset = opened(gateway, session)
    records = gateway.events(session)
    assert reset["rule"] == "idle" and "no user activity for" in reset["reason"]
    assert reset["by"]["name"] == "reset clock" and reset["hand_over_from"] == "model"
    assert sorted(one["task"] for one in reset["kept"]) == ids and reset["stopped"] == []
    assert {one["activity"] for one in reset["kept"]} == {"serving not in use"}
    set_at = next(record["at"] for record in records if record["event"]["kind"] == "ResetPolicySet")
    at = next(record["at"] for record in records if record["event"]["kind"] == "ChapterOpened")
    assert at - set_at >= 1_500 and reset["due_at"] - set_at >= 1_500, "not before its time"
    assert "ResetPostponed" not in kinds(records), "a server postpones nothing"

    assert [task(gateway, id)["state"] for id in ids] == ["running", "running"]
    listed = gateway.get("/v1/tasks")["tasks"]
    assert sorted(one["id"] for one in listed) == ids
    printed = CommandLine(gateway.home).ok("tasks")
    assert all(id[:8] in printed for id in ids)
    because = " ".join(sentence["text"] for sentence in gateway.why(session))
    assert "Chapter 2 began" in because and "Handed over: " in because and all(id in because for id in ids)
    stale = gateway.get("/v1/tasks/stale")["tasks"]
    assert sorted(one["id"] for one in stale) == ids
    assert all("outlived the chapter" in one["stale"] for one in stale)

    seen = gateway.get(f"/v1/sessions/{session}/context")
    assert seen["chapter"] == 2 and len(seen["messages"]) == 1
    first = str(seen["messages"][0])
    assert "A new chapter of this session begins" in first and all(id in first for id in ids)
    gateway.send(session, "tasks\ncount")
    records = gateway.until_event(session, "TurnFinished", count=2)
    listing = of_kind(records, "ToolCallFinished")[-1]["output"]
    assert all(id in listing for id in ids) and "of another session" not in listing
    said = of_kind(records, "ModelResponded")[-1]["text"]
    assert "I have seen 1 user message" in said, "the model begins anew"


def test_what_belongs_to_a_chapter_ends_with_it_and_its_task_says_by_which_rule(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    session = gateway.create("say hello", cwd=tmp_path / "work")
    gateway.until_rest(session)
    body = {"shell": "sleep 600", "cwd": str(tmp_path / "work"), "session": session, "lifetime": "chapter"}
    id = str(gateway.command("POST", "/v1/tasks", body)["task"])
    policy(gateway, session)
    reset = opened(gateway, session)
    assert [(one["task"], one["rule"]) for one in reset["stopped"]] == [(id, "its lifetime is the chapter")]
    over = until_over(gateway, id)
    assert over["state"] == "stopped" and "its lifetime is the chapter" in over["ended_by"]
    assert "the reset clock" in over["ended_by"] and session in over["ended_by"]


@pytest.mark.parametrize("rule", ["stop_idle", "stop"])
def test_on_live_process(gateway: GatewayProcess, tmp_path: Path, rule: str) -> None:
    session, ids = with_servers(gateway, tmp_path, 1)
    busy = "bg while :; do seq 5000 > /dev/null; sleep 0.02; done"  # a fifth of a processor is work enough
    gateway.send(session, busy)
    gateway.until_rest(session)
    [work] = {one["id"] for one in tasks_of(gateway, session)} - set(ids)
    until(lambda: task(gateway, work)["activity"] == "working", "it works")
    policy(gateway, session, on_live_process=rule, max_postpone="1h")
    postponed = of_kind(gateway.until_event(session, "ResetPostponed"), "ResetPostponed")[0]
    assert [(one["by"], one["task"]) for one in postponed["blockers"]] == [("process", work)]
    assert "CPU" in postponed["blockers"][0]["evidence"]
    policy(gateway, session, on_live_process=rule, max_postpone="0s")
    reset = opened(gateway, session)
    stopped = {one["task"] for one in reset["stopped"]}
    assert stopped == (set(ids) if rule == "stop_idle" else {work, *ids})
    for id in stopped:
        assert f"on_live_process = {rule}" in until_over(gateway, id)["ended_by"]
    assert task(gateway, work)["state"] == ("running" if rule == "stop_idle" else "stopped")


@pytest.mark.parametrize(
    ("what", "because"),
    [
        ("archive", "its session was archived"),
        ("delete", "its session was deleted"),
        ("reset", "a reset of session {}: a person chose to stop it"),
    ],
)
def test_promise_6_with_something_running_there_is_a_question(
    gateway: GatewayProcess, tmp_path: Path, what: str, because: str
) -> None:
    method = "DELETE" if what == "delete" else "POST"
    for choice in ("keep", "stop"):
        session = gateway.create("bg sleep 600", cwd=tmp_path / "work")
        gateway.until_rest(session)
        [running] = tasks_of(gateway, session)
        assert running["lifetime"] == "session"
        path = f"/v1/sessions/{session}" + ("" if what == "delete" else f"/{what}")
        refused = gateway.request(method, path, json={})
        assert refused.status_code == 409 and running["id"] in refused.json()["error"]["message"]
        assert task(gateway, running["id"])["state"] == "running"
        key = f"{what}-{choice}-1"
        gateway.command(method, path, {"running": choice}, key=key)
        again = gateway.command(method, path, {"running": choice}, key=key)
        assert again["version"], "a retry has its first answer"
        if choice == "stop":
            over = until_over(gateway, running["id"])
            assert (over["state"], over["ended_by"]) == ("stopped", f"api ({because.format(session)})")
            continue
        gateway.kill9()
        gateway.start()
        found = task(gateway, running["id"])
        assert (found["state"], found["lifetime"]) == ("running", "persist"), "it outlives its session"
        gateway.command("POST", f"/v1/tasks/{running['id']}/stop", {})
        until_over(gateway, running["id"])


def test_recall_finds_what_was_said_before_a_reset_and_a_summary_of_its_own_session_only(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    other = gateway.create("say the password of the other is walrus", cwd=tmp_path)
    session = gateway.create("say the password is marmot", cwd=tmp_path)
    gateway.until_rest(other)
    gateway.until_rest(session)
    gateway.command("POST", f"/v1/sessions/{session}/compact", {})
    gateway.until_event(session, "SummaryWritten")
    gateway.command("POST", f"/v1/sessions/{session}/reset", {})
    gateway.send(session, "recall marmot\nrecall walrus")
    results = of_kind(gateway.until_event(session, "TurnFinished", count=2), "ToolCallFinished")
    assert [one["tool"] for one in results] == ["recall"] * 2
    assert "turn 1: user: say the password is marmot" in results[0]["output"]
    assert all("of the other" not in one["output"] for one in results), "of another session"
