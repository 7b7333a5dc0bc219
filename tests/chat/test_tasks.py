"""Tasks in the chat, on a real terminal: lists, logs, agents in the background, and a turn that becomes a task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chat.terminal import ALT_ENTER, PROMPT, Terminal, on_terminal
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
    with on_terminal(cli, cwd=cwd) as chat:
        chat.until("idle")
        chat.enter("/bg status")
        chat.until("for running tasks use /tasks")
        chat.enter("/tasks")
        chat.until("ACTIVITY", short, "echo from the")
        chat.enter(f"/tasks log {short}")
        chat.until("\nfrom the task\n")
        chat.enter(f"/tasks log -f {short}")
        chat.until("/tasks log --follow is not for the chat: it would stay until Ctrl-C.")
        chat.enter(f"/tasks wait {short}")
        chat.until("/tasks wait is not for the chat")
        chat.enter(f"/tasks kill {short}")
        chat.until(f"{task}: stopped after", "by force")
        chat.enter(f"/tasks show {short.upper()}")
        chat.until("at the request of cli (by force)")
        chat.enter(f"/tasks pin {short}")
        chat.until(f"{task}: protected from pruning")
        chat.enter("/tasks history --state stopped")
        chat.until("TOOK")
        chat.enter("/tasks history --state failed")
        chat.until("No task matches")
        chat.enter("/tasks prune")
        chat.until("There is no task to delete (ended more than 7 days ago).")
        chat.enter("/tasks")
        chat.until("Nothing is running in the background.")
        chat.enter("/tasks hsitory")
        chat.until("No such command 'hsitory'. Did you mean 'history'?")
    assert [row["kind"] for row in gateway.get("/v1/tasks", all="true")["tasks"]] == ["process"]


def test_an_agent_in_the_background_and_its_note(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    """Nobody said the note, so it is not shown as somebody's; it is there again when one comes back."""
    with on_terminal(cli, cwd=cwd) as chat:
        chat.until("idle")
        chat.enter("/bg say from beside")
        chat.until(
            "is running; this session is notified when it ends", "note The background agent", "It said: from beside"
        )
        (task,) = gateway.get("/v1/tasks", kind="agent")["tasks"]
        assert task["session"] == session_of(gateway, str(task["id"]))
        chat.enter("bg echo out")
        chat.until_idle("· task ", "note The background command", "Its output ends with: out")
        assert f"{PROMPT} The background" not in chat.look()
        gate = cwd / "gate"
        chat.enter(f"/bg sh while ! [ -e {gate} ]; do sleep 0.05; done")
        until(lambda: running(gateway), "the second agent is at work")
        chat.leave()
    gate.touch()
    session = str(task["session"])
    gateway.until_event(session, "NoteReceived", count=3)
    with on_terminal(cli, "chat", session[:8], cwd=cwd) as chat:
        chat.until_idle("── 1 ended task while away ──")


def session_of(gateway: GatewayProcess, task: str) -> str:
    """The session in front of which somebody sits: the one that is not the task's own."""
    (row,) = [row for row in gateway.get("/v1/sessions")["sessions"] if row["task"] != task]
    return str(row["id"])


def test_a_stop_says_what_continues(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with on_terminal(cli, cwd=cwd) as chat:
        chat.until("idle")
        chat.type(f"bg sleep 300{ALT_ENTER}slow 300 a b c")
        chat.type("\r")
        chat.until("· task ", "· running")
        chat.enter("/stop")
        (task,) = running(gateway)
        chat.until_idle("stopped by cli", f"still running: process {task['id'][:8]} sleep 300 (/tasks stop ID)")


def test_a_running_turn_becomes_a_task(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    with on_terminal(cli, cwd=cwd) as chat:
        chat.until("idle")
        chat.enter(f"sh {wait_for(Path('gate'))}{ALT_ENTER}say one two three")
        chat.until("· running")
        chat.enter("/detach")
        shown = chat.ended()
    (cwd / "gate").touch()
    (task,) = gateway.get("/v1/tasks", kind="agent")["tasks"]
    assert "detached; the agent continues (running)" in shown
    assert f"the turn is a task now: holdfast tasks show {task['id'][:8]}" in shown
    ended = gateway.until_ended(task["id"])
    assert (ended["state"], ended["summary"].splitlines()[-1]) == ("done", "one two three")
    with on_terminal(cli, "chat", str(task["worker"])[:8], cwd=cwd) as chat:
        chat.until_idle(f"Turn 1 was made background task {task['id'][:8]} by cli.", "one two three")
        chat.enter("/detach")
        assert "detached; nothing is running" in chat.ended()
    assert len(of_kind(gateway.events(str(task["worker"])), "TurnBackgrounded")) == 1


def test_verbs_and_ids_are_completed(gateway: GatewayProcess, cli: CommandLine, cwd: Path) -> None:
    task = cli.ok("start", "--name", "the sleeper", "--", "sleep", "300").strip()
    with on_terminal(cli, cwd=cwd) as chat:
        chat.until("idle")
        chat.type("/tasks his")
        chat.until(" history")
        chat.type("\t\r\r")
        chat.until("STARTED")
        chat.type("/tasks show ")
        until(lambda: "running · the sleeper" in _retyped(chat), "the id is offered", pause=0.3)
        chat.type("\t")
        chat.until(f"/tasks show {task[:8]}")


def _retyped(chat: Terminal) -> str:
    """The first time nothing is known yet: type the blank again."""
    chat.type("\x7f ")
    return chat.look()
