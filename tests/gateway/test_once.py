"""What is typed into a command is typed once, however often the request is repeated."""

from __future__ import annotations

from tests.e2e.gateway import GatewayProcess, until


def test_a_repeated_write_types_once(gateway: GatewayProcess) -> None:
    task = gateway.command("POST", "/v1/tasks", {"shell": "cat", "stdin": True})["task"]
    until(lambda: gateway.get(f"/v1/tasks/{task}")["pid"], "it runs")
    first = gateway.command("POST", f"/v1/tasks/{task}/write", {"text": "one\n"}, key="typed-once-1")
    again = gateway.command("POST", f"/v1/tasks/{task}/write", {"text": "one\n"}, key="typed-once-1")
    assert first == again == {"bytes": 4, "of": 4}
    other = gateway.request("POST", f"/v1/tasks/{task}/write", json={"text": "two\n"}, key="typed-once-1")
    assert other.status_code == 409
    gateway.command("POST", f"/v1/tasks/{task}/write", {"text": "end\n", "close": True}, key="typed-once-2")
    gateway.get(f"/v1/tasks/{task}/wait", seconds=30)
    assert gateway.get(f"/v1/tasks/{task}/output")["text"] == "one\nend\n"


def test_a_prune_counts_the_events_and_the_files_of_a_task_too(gateway: GatewayProcess) -> None:
    task = gateway.command("POST", "/v1/tasks", {"shell": "echo hello"})["task"]
    ended = gateway.get(f"/v1/tasks/{task}/wait", seconds=30)
    would_go = gateway.command("POST", "/v1/tasks/prune", {"keep_last": 0})
    events = sum(len(str(record)) for record in gateway.get(f"/v1/tasks/{task}/events")["events"])
    others = would_go["count"] - 1
    assert ended["output_bytes"] == len("hello\n")
    assert would_go["bytes"] > events / 2 + others
