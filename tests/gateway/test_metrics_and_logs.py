"""Figures that Prometheus can read; logs that are JSON lines, rotate, and hold no secret."""

from __future__ import annotations

import json
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.gateway import GatewayProcess, until
from tests.e2e.wire import UPGRADE, exchange, head

SECRET = "sk-proj-0123456789abcdefghijklmnop"


def figures(gateway: GatewayProcess) -> dict[str, float]:
    answer = gateway.request("GET", "/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = list(text_string_to_metric_families(answer.text))
    assert all(family.documentation and family.type in ("gauge", "counter") for family in families)
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_metrics(gateway: GatewayProcess) -> None:
    before = figures(gateway)
    assert all(name.startswith("holdfast_") for name in before)
    session = gateway.create("say one")
    gateway.until_rest(session)
    after = figures(gateway)
    assert after["holdfast_sessions"] == before["holdfast_sessions"] + 1
    assert after["holdfast_messages"] == before["holdfast_messages"] + 2
    assert after["holdfast_events"] == before["holdfast_events"] + len(gateway.events(session))
    assert after["holdfast_commits_total"] > before["holdfast_commits_total"]
    assert after["holdfast_commit_seconds_total"] > before["holdfast_commit_seconds_total"]
    assert after["holdfast_writable"] == 1
    busy = gateway.create("slow 60 one two")
    gateway.until_event(busy, "ModelRequested")
    assert figures(gateway)["holdfast_turns_running"] == 1
    gateway.command("POST", f"/v1/sessions/{busy}/stop")
    until(lambda: figures(gateway)["holdfast_turns_running"] == 0, "none runs")


def test_followers_are_counted(gateway: GatewayProcess) -> None:
    session = gateway.create("say one")
    gateway.until_rest(session)
    sent = figures(gateway)["holdfast_events_sent_total"]
    headers = {"accept": "text/event-stream"}
    with gateway.client.stream("GET", f"/v1/sessions/{session}/events", headers=headers):
        until(lambda: figures(gateway)["holdfast_followers"] == 1, "one follows")
        until(
            lambda: figures(gateway)["holdfast_events_sent_total"] == sent + len(gateway.events(session)), "it was sent"
        )
    until(lambda: figures(gateway)["holdfast_followers"] == 0, "it left")


def test_the_log_is_json_lines_in_order(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home").start() as gateway:
        gateway.until_rest(gateway.create("say hello"))
        gateway.request("POST", "/v1/sessions", content=b"{")
        gateway.terminate()
        lines = gateway.log
    assert all(set(line) >= {"at", "level", "logger", "message"} for line in lines)
    times = [line["at"] for line in lines]
    assert times == sorted(times)
    assert any("listens on http://127.0.0.1:" in line["message"] for line in lines[:3])
    assert lines[-1]["message"] == "gateway ended"
    assert {line["level"] for line in lines} == {"info"}
    assert gateway.stderr == "", "a gateway in the background says nothing on its own"


def test_the_log_rotates(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[gateway]\nlog_bytes = 10000\n")
    with GatewayProcess(home).start() as gateway:
        for _ in range(1000):
            assert exchange(gateway.port, b"\x00 no HTTP\r\n\r\n").status == 400
        files = sorted((home / "logs").iterdir())
        assert [file.name for file in files] == ["gateway.log", *(f"gateway.log.{n}" for n in range(1, 6))]
        assert all(file.stat().st_size <= 10_000 for file in files)
        for file in files:
            assert all(json.loads(line)["level"] for line in file.read_text().splitlines())
        assert gateway.get("/v1/status")["pid"] == gateway.pid


def test_no_secret_is_in_the_log(tmp_path: Path) -> None:
    """Neither the token, however it is presented, nor what people say; not in errors, not on stderr."""
    with GatewayProcess(tmp_path / "home").start() as gateway:
        token = gateway.token
        own = [("Host", f"127.0.0.1:{gateway.port}")]
        session = gateway.create(f"say my key is {SECRET}\nread {SECRET}\nfail")
        gateway.until_rest(session)
        for path in (
            f"/v1/status?token={token}",
            f"/v1/{token}",
            f"/v1/search?q={SECRET}",
            f"/v1/events?after={token}",
            f"/v1/sessions/{token}/events?after={SECRET}",
        ):
            gateway.request("GET", path)
            exchange(gateway.port, head("GET", path, own))
            exchange(gateway.port, head("GET", path, [*own, ("Authorization", f"Basic {token}"), *UPGRADE]))
            exchange(gateway.port, head("GET", path, [*own, ("Authorization", f"Bearer {token}"), *UPGRADE]))
        exchange(gateway.port, f"GET /{token} {SECRET} HTTP/9.9\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        gateway.request("POST", "/v1/sessions", content=f'{{"{SECRET}": '.encode(), headers={"x-secret": SECRET})
        gateway.request("POST", f"/v1/sessions/{session}/messages", json={"text": SECRET, SECRET: 1})
        gateway.terminate()
        written = "".join(file.read_text() for file in (gateway.home / "logs").iterdir()) + gateway.stderr
        assert "Invalid HTTP request" in written, "there was something to log"
        assert token not in written
        assert SECRET not in written
        assert token not in (gateway.home / "run").joinpath("lock").read_text()
