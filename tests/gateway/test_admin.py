"""What ended in the last hours, the findings of the doctor, the retention rules, and when devices looked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.actors import by
from tests.e2e.browser import Browser
from tests.e2e.gateway import GatewayProcess, of_kind, until

HALF_HOUR = 30 * 60_000


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[GatewayProcess]:
    """A gateway that keeps one ended task."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[retention]\ntasks_count = 1\n")
    (home / "config.toml").chmod(0o600)
    with GatewayProcess(home) as process:
        yield process.start()


def ran(gateway: GatewayProcess, shell: str) -> str:
    task = str(gateway.command("POST", "/v1/tasks", {"shell": shell})["task"])
    gateway.until_ended(task)
    return task


def test_the_last_day_by_the_half_hour(kept: GatewayProcess) -> None:
    before = kept.get("/v1/overview")["slots"]
    assert len(before) == 48 and {slot["turns"] + slot["tasks"] for slot in before} == {0}
    assert {b["at"] - a["at"] for a, b in pairwise(before)} == {HALF_HOUR}
    kept.until_rest(kept.create("say hi"))
    ran(kept, "exit 3")
    ran(kept, "echo fine")
    found = kept.get("/v1/overview")
    sums = {name: sum(slot[name] for slot in found["slots"][-2:]) for name in ("turns", "tasks", "failed", "waits")}
    assert sums == {"turns": 1, "tasks": 2, "failed": 1, "waits": 0}
    assert {one["state"]: one["count"] for one in found["tasks"]} == {"done": 1, "failed": 1}
    assert next(one["bytes"] for one in found["tasks"] if one["state"] == "done") == len("fine\n")


def test_the_doctor_finds_the_same_over_http_as_in_a_terminal(gateway: GatewayProcess) -> None:
    seq = gateway.get("/v1/status")["seq"]
    found = gateway.get("/v1/doctor")
    assert found["ok"] and {one["name"] for one in found["findings"]} >= {"home", "config", "gateway", "disk", "events"}
    (disk,) = (one["detail"] for one in found["findings"] if one["name"] == "disk")
    assert disk.split()[1] in {"MiB", "GiB"}  # the units of every other size
    assert (
        next(one for one in found["findings"] if one["name"] == "gateway")["detail"] == f"running (pid {gateway.pid})"
    )
    (gateway.home / "config.toml").write_text("[gateway]\nport = 'x'\n")
    (gateway.home / "config.toml").chmod(0o600)
    bad = gateway.get("/v1/doctor")
    (gateway.home / "config.toml").unlink()
    assert not bad["ok"] and next(one for one in bad["findings"] if one["name"] == "config")["hint"]
    assert gateway.get("/v1/status")["seq"] == seq  # it only reads


def test_the_rules_show_what_they_let_go_and_then_let_it_go(kept: GatewayProcess) -> None:
    old, new = ran(kept, "echo old"), ran(kept, "echo new")
    shown = kept.get("/v1/retention")
    assert (shown["tasks_count"], shown["tasks_days"], shown["pruned"]) == (1, 0, False)
    assert [(one["rule"], [task["id"] for task in one["tasks"]]) for one in shown["rules"]] == [
        ("tasks_count = 1", [old])
    ]
    assert kept.get(f"/v1/tasks/{old}")["id"] == old  # looking takes nothing
    gone = kept.command("POST", "/v1/retention")
    assert gone["pruned"] and gone["count"] == 1 and gone["bytes"] > len("old\n"), "its output and its events"
    assert kept.request("GET", f"/v1/tasks/{old}").status_code == 410
    assert kept.get(f"/v1/tasks/{new}")["id"] == new
    (event,) = of_kind(kept.whole_log(), "TaskPruned")
    assert by(event) == "the retention rule tasks_count = 1, applied by api"
    assert kept.command("POST", "/v1/retention")["count"] == 0


def test_without_a_rule_nothing_is_deleted(gateway: GatewayProcess) -> None:
    ran(gateway, "true")
    assert gateway.get("/v1/retention")["rules"] == []
    assert gateway.command("POST", "/v1/retention")["count"] == 0


def test_a_device_says_that_somebody_looked(gateway: GatewayProcess) -> None:
    one, other = Browser(gateway), Browser(gateway)
    began = one.get("/v1/devices/me")["looked_at"]
    assert began == one.get("/v1/devices/me")["device"]["created_at"]
    at = one.request("POST", "/v1/looked").json()["looked_at"]
    assert at > began and one.get("/v1/devices/me")["looked_at"] == at
    assert other.get("/v1/devices/me")["looked_at"] < at
    assert gateway.request("POST", "/v1/looked").status_code == 404  # the bearer token is nobody


def test_the_list_is_searched_by_title_and_filtered_by_work(gateway: GatewayProcess) -> None:
    quiet = gateway.command("POST", "/v1/sessions", {"title": "Größe der Übergabe"})["session"]
    busy = gateway.command("POST", "/v1/sessions", {"title": "Busy", "text": "slow 60 " + "word " * 200})["session"]
    found = gateway.get("/v1/sessions", text="GRÖSSE")
    assert [row["id"] for row in found["sessions"]] == [quiet]
    gateway.until_state(busy, "running")
    assert [row["id"] for row in gateway.get("/v1/sessions", at_work="true")["sessions"]] == [busy]
    gateway.command("POST", f"/v1/sessions/{busy}/stop")
    until(lambda: not gateway.get("/v1/sessions", at_work="true")["sessions"], "nobody works")


def test_what_ended_lately_is_found_however_long_ago_it_began(gateway: GatewayProcess) -> None:
    first = ran(gateway, "true")
    ended = gateway.get(f"/v1/tasks/{first}")["finished_at"]
    second = ran(gateway, "sleep 0.1")
    assert {first, second} <= {task["id"] for task in gateway.get("/v1/tasks", ended=ended)["tasks"]}
    assert {task["id"] for task in gateway.get("/v1/tasks", ended=ended + 1)["tasks"]} == {second}


def test_a_task_returns_its_events_and_is_measured(gateway: GatewayProcess) -> None:
    task = str(gateway.command("POST", "/v1/tasks", {"shell": "while :; do :; done"})["task"])
    view = until(lambda: found if (found := gateway.get(f"/v1/tasks/{task}"))["cpu"] else None, "its work was measured")
    assert 0 < view["cpu"] < 64 and view["memory"] > 100_000
    gateway.command("POST", f"/v1/tasks/{task}/stop", {"force": True})
    ended = gateway.until_ended(task)
    assert (ended["cpu"], ended["memory"]) == (None, None)
    page = gateway.get(f"/v1/tasks/{task}/events")
    kinds = [record["event"]["kind"] for record in page["events"]]
    assert kinds == ["TaskStarted", "ProcessStarted", "TaskStopRequested", "TaskFinished"]
    assert page["cursor"] == 4 and not page["more"]
    assert gateway.get(f"/v1/tasks/{task}/events", after=3)["events"][0]["version"] == 4


def test_the_context_without_its_texts(gateway: GatewayProcess) -> None:
    session = gateway.create("say hi")
    gateway.until_rest(session)
    whole, brief = (gateway.get(f"/v1/sessions/{session}/context", texts=texts) for texts in ("true", "false"))
    assert whole["messages"] and brief["messages"] == [] and brief["instructions"] == ""
    assert whole["tokens"] == brief["tokens"] > 0
    assert brief["window"] is None  # nobody knows the window of a script
    assert (brief["limit"], brief["limit_source"]) == (125_000, "default")
