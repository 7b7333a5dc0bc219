"""Tasks in the chat, on a real terminal: lists, logs, agents in the background, and a turn that becomes a task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chat.seat import ALT_ENTER, PROMPT, Seat, sit_down
from tests.cli.commandline import CommandLine
from tests.e2e.gateway import GatewayProcess, Json, of_kind, until, wait_for


@pytest.fixture(autouse=True)
def nothing_is_left(gateway: GatewayProcess) -> Iterator[None]:
    """Commands outlive the gateway on purpose, so they are ended through it."""
    yield
    for task in running(gateway):
        gateway.request("POST", f"/v1/tasks/{task['id']}/stop", json={"force": True})  # it may have ended just now
        assert gateway.until_ended(task["id"])["state"] != "running"


def running(gateway: GatewayProcess) -> list[Json]:
    return list(gateway.get("/v1/tasks", state="running", all="true")["tasks"])


def test_looking_at_tasks_and_ending_them(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    task = cli.ok("start", "--", "echo from the task; sleep 300").strip()
    short = task[:8]
    with sit_down(cli, cwd=cwd) as seat:
        seat.until("idle")
        seat.enter("/bg status")
        seat.until("for running tasks use /tasks")
        seat.enter("/tasks")
        seat.until("ACTIVITY", short, "echo from the")
        seat.enter(f"/tasks log {short}")
        seat.until("\nfrom the task\n")
        seat.enter(f"/tasks log -f {short}")
        seat.until("/tasks log --follow is not for the chat: it would stay until Ctrl-C.")
        seat.enter(f"/tasks wait {short}")
        seat.until("/tasks wait is not for the chat")
        seat.enter(f"/tasks kill {short}")
        seat.until(f"{task}: stopped after", "by force")
        seat.enter(f"/tasks show {short.upper()}")
        seat.until("at the request of cli (by force)")
        seat.enter(f"/tasks pin {short}")
        seat.until(f"{task}: protected from pruning")
        seat.enter("/tasks history --state stopped")
        seat.until("TOOK")
        seat.enter("/tasks history --state failed")
        seat.until("No task matches")
        seat.enter("/tasks prune")
        seat.until("No task would be deleted (ended more than 7 days ago).")
        seat.enter("/tasks")
        seat.until("Nothing is running in the background.")
        seat.enter("/tasks hsitory")
        seat.until("No such command 'hsitory'. Did you mean 'history'?")
    assert [row["kind"] for row in gateway.get("/v1/tasks", all="true")["tasks"]] == ["process"]


def test_an_agent_in_the_background_and_its_note(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    """Nobody said the note, so it is not shown as somebody's; it is there again when one comes back."""
    with sit_down(cli, cwd=cwd) as seat:
        seat.until("idle")
        seat.enter("/bg say from beside")
        seat.until(
            "is running; this session is notified when it ends", "note The background agent", "It said: from beside"
        )
        (task,) = gateway.get("/v1/tasks", kind="agent")["tasks"]
        assert task["session"] == seat_session(gateway, str(task["id"]))
        seat.enter("bg echo out")
        seat.until_idle("· task ", "note The background command", "Its output ends with: out")
        assert f"{PROMPT} The background" not in seat.look()
        gate = cwd / "gate"
        seat.enter(f"/bg sh while ! [ -e {gate} ]; do sleep 0.05; done")
        until(lambda: running(gateway), "the second agent is at work")
        seat.leave()
    gate.touch()
    session = str(task["session"])
    gateway.until_event(session, "NoteReceived", count=3)
    with sit_down(cli, "chat", session[:8], cwd=cwd) as seat:
        seat.until_idle("── 1 ended task while away ──")


def seat_session(gateway: GatewayProcess, task: str) -> str:
    """The session in front of which somebody sits: the one that is not the task's own."""
    (row,) = [row for row in gateway.get("/v1/sessions")["sessions"] if row["task"] != task]
    return str(row["id"])


def test_a_stop_says_what_goes_on(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with sit_down(cli, cwd=cwd) as seat:
        seat.until("idle")
        seat.type(f"bg sleep 300{ALT_ENTER}slow 300 a b c")
        seat.type("\r")
        seat.until("· task ", "· running")
        seat.enter("/stop")
        (task,) = running(gateway)
        seat.until_idle("stopped by cli", f"still running: process {task['id'][:8]} sleep 300 (/tasks stop ID)")


def test_a_running_turn_becomes_a_task(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with sit_down(cli, cwd=cwd) as seat:
        seat.until("idle")
        seat.enter(f"sh {wait_for(Path('gate'))}{ALT_ENTER}say one two three")
        seat.until("· running")
        seat.enter("/detach")
        shown = seat.ended()
    (cwd / "gate").touch()
    (task,) = gateway.get("/v1/tasks", kind="agent")["tasks"]
    assert "detached; the agent continues (running)" in shown
    assert f"the turn is a task now: holdfast tasks show {task['id'][:8]}" in shown
    ended = gateway.until_ended(task["id"])
    assert (ended["state"], ended["summary"].splitlines()[-1]) == ("done", "one two three")
    with sit_down(cli, "chat", str(task["worker"])[:8], cwd=cwd) as seat:
        seat.until_idle(f"Turn 1 was made background task {task['id'][:8]} by cli.", "one two three")
        seat.enter("/detach")
        assert "detached; nothing is running" in seat.ended()
    assert len(of_kind(gateway.events(str(task["worker"])), "TurnBackgrounded")) == 1


def test_verbs_and_ids_are_completed(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    task = cli.ok("start", "--name", "the sleeper", "--", "sleep", "300").strip()
    with sit_down(cli, cwd=cwd) as seat:
        seat.until("idle")
        seat.type("/tasks his")
        seat.until(" history")
        seat.type("\t\r\r")
        seat.until("STARTED")
        seat.type("/tasks show ")
        until(lambda: "running · the sleeper" in _retyped(seat), "the id is offered", pause=0.3)
        seat.type("\t")
        seat.until(f"/tasks show {task[:8]}")


def _retyped(seat: Seat) -> str:
    """The first time nothing is known yet: type the blank again."""
    seat.type("\x7f ")
    return seat.look()
