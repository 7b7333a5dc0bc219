"""Running an ended task again: a new task of the caller, and only where that is possible."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.gateway import GatewayProcess, Json, wait_for
from tests.e2e.tasks import output, start, task, until_over


def rerun(gateway: GatewayProcess, id: str, **body: object) -> str:
    return str(gateway.command("POST", f"/v1/tasks/{id}/rerun", body)["task"])


def first_event(gateway: GatewayProcess, id: str) -> Json:
    return dict(gateway.get(f"/v1/tasks/{id}/events")["events"][0]["event"])


def test_rerun_uses_the_same_directory_and_records_who_asked(gateway: GatewayProcess, tmp_path: Path) -> None:
    session = gateway.create()
    body = {"name": "count", "session": session, "lifetime": "session", "notify": True, "env": {"WORD": "first"}}
    old = start(gateway, 'echo "$WORD" >> words; pwd', cwd=tmp_path, **body)
    until_over(gateway, old)
    key = "run-it-again"
    accepted = gateway.command("POST", f"/v1/tasks/{old}/rerun", {"env": {"WORD": "second"}}, key=key)
    new = str(accepted["task"])
    assert gateway.command("POST", f"/v1/tasks/{old}/rerun", {"env": {"WORD": "second"}}, key=key)["task"] == new
    found = until_over(gateway, new)
    assert (found["title"], found["command"], found["cwd"]) == ("count", 'echo "$WORD" >> words; pwd', str(tmp_path))
    assert (found["session"], found["lifetime"], found["notify"], found["started_by"]) == ("", "persist", False, "api")
    assert (tmp_path / "words").read_text() == "first\nsecond\n", "it ran once more, and once only"
    assert output(gateway, new).decode().strip() == str(tmp_path)
    words = gateway.command("POST", "/v1/tasks", {"argv": ["echo", "a  b"], "cwd": str(tmp_path)})["task"]
    until_over(gateway, words)
    assert output(gateway, until_over(gateway, rerun(gateway, words))["id"]) == b"a  b\n"


def test_agent_runs_again_in_a_session_of_its_own(gateway: GatewayProcess, tmp_path: Path) -> None:
    body = {"prompt": "say hello again", "cwd": str(tmp_path), "title": "greet"}
    old = str(gateway.command("POST", "/v1/tasks/agents", body)["task"])
    until_over(gateway, old)
    new = until_over(gateway, rerun(gateway, old))
    assert (new["kind"], new["title"], new["command"], new["worker"]) == (
        "agent",
        "greet",
        "say hello again",
        new["id"],
    )
    assert new["state"] == task(gateway, old)["state"] == "done"


def test_what_cannot_run_again_is_refused_with_the_reason(gateway: GatewayProcess, tmp_path: Path) -> None:
    go = tmp_path / "go"
    running = start(gateway, wait_for(go), cwd=tmp_path)
    answer = gateway.request("POST", f"/v1/tasks/{running}/rerun", json={})
    assert (answer.status_code, "still running" in answer.text) == (409, True)
    go.touch()
    until_over(gateway, running)
    (tmp_path / "gone").mkdir()
    moved = start(gateway, "true", cwd=tmp_path / "gone")
    until_over(gateway, moved)
    (tmp_path / "gone").rmdir()
    answer = gateway.request("POST", f"/v1/tasks/{moved}/rerun", json={})
    assert answer.status_code in (400, 404, 409), answer.text
    assert str(tmp_path / "gone") in answer.text
