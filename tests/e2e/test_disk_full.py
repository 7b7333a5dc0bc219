"""A home on a full disk: writes get 507 and nothing false is acknowledged, reads go on, it recovers by itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from holdfast.client import launch
from holdfast.config import Home
from holdfast.lifecycle.doctor import examine
from holdfast.store.sqlite.migrate import prepare
from tests.e2e.browser import Browser
from tests.e2e.gateway import GatewayProcess, Json, check_whole, kinds, of_kind, until
from tests.e2e.test_notifications import HOME_CHANNEL, listening
from tests.eventually import PATIENCE

SIZE = 12 * 1024 * 1024
LEFT = 300_000


QUICK_DISK = {"store.probe": 0.1, "store.search_retry": 0.1, "tasks.retry": 0.1, "runtime.append_retry": 0.1}
"""A disk that refused is tried again at once."""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, if we may make one."""
    disk = tmp_path / "disk"
    disk.mkdir(mode=0o700)
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "tmpfs", str(disk)]
    made = subprocess.run(command, capture_output=True, text=True, check=False) if os.geteuid() == 0 else None
    if made is None or made.returncode:
        reason = f"no small disk could be mounted: {made.stderr.strip() if made else 'not root'}"
        print(reason)
        pytest.skip(reason)
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path, *, leave: int) -> Path:
    """Take every last byte but these."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
    os.truncate(ballast, ballast.stat().st_size - leave)
    return ballast


def all_say_that_it_takes_no_writes(gateway: GatewayProcess) -> bool:
    """Now and then something is so small that it fits after all: then it is the next one that is refused."""
    if gateway.request("POST", "/v1/sessions", json={"text": "say x"}).status_code != 507:
        return False
    health = gateway.request("GET", "/healthz").json()
    return (
        (health["status"] == "degraded" and "does not take writes" in health["problem"])
        and gateway.get("/v1/status")["writable"] is False
        and "does not take writes" in gateway.get("/v1/why")["sentences"][0]["text"]
        and "holdfast_writable 0\n" in gateway.request("GET", "/metrics").text
    )


def test_promise_1_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    gateway = GatewayProcess(small_disk / "home", log_next_to=tmp_path, timings=QUICK_DISK)
    with gateway.start():
        session, busy = gateway.create("say before", cwd=tmp_path), gateway.create(cwd=tmp_path)
        resting = gateway.create(cwd=tmp_path)
        gateway.until_rest(session)
        gateway.send(busy, "slow 1.5 one two three\nwrite f x\nsay so")
        gateway.until_event(busy, "ModelRequested")
        ballast = fill(small_disk, leave=LEFT)
        accepted: dict[str, Json] = {}
        for number in range(400):
            key, body = f"message-{number}", {"text": f"say {number} {'x' * 2000}"}
            answer = gateway.request("POST", f"/v1/sessions/{session}/messages", json=body, key=key)
            if answer.status_code == 507:
                break
            assert answer.status_code == 202, answer.text
            accepted[key] = answer.json()
        else:
            raise AssertionError("the disk never became full")
        fill(small_disk, leave=0)
        print(f"\n{len(accepted)} acknowledged on the last bytes, then 507")
        assert int(answer.headers["retry-after"]) >= 1
        error = answer.json()["error"]
        assert error["code"] == "unavailable"
        assert "does not take writes" in error["message"] and "recovers automatically" in error["hint"]

        until(lambda: all_say_that_it_takes_no_writes(gateway), "health, status, why and metrics agree")
        check_whole(gateway.events(session))
        assert gateway.get("/v1/sessions")["sessions"]
        assert gateway.request("GET", f"/v1/sessions/{session}/export").status_code == 200
        assert gateway.request("DELETE", f"/v1/sessions/{resting}").status_code == 507

        ballast.unlink()
        until(
            lambda: gateway.request("GET", "/healthz").json()["status"] == "ok",
            "it recovers by itself",
        )
        assert gateway.get("/v1/status")["writable"] is True
        accepted[key] = gateway.command("POST", f"/v1/sessions/{session}/messages", body, key=key)
        records = gateway.until_rest(session)
        work = gateway.until_rest(busy)
        assert gateway.terminate() == 0

        check_whole(records)
        inputs = {event["input"]: event["text"] for event in of_kind(records, "InputReceived")}
        assert len(inputs) == kinds(records).count("InputReceived") == len(accepted) + 1
        for key, answer_given in accepted.items():
            assert records[answer_given["version"] - 1]["event"]["input"] == key, "acknowledged and lost"
        assert kinds(records).count("TurnStarted") == kinds(records).count("TurnFinished") == len(inputs)
        assert {event["outcome"] for event in of_kind(records, "TurnFinished")} == {"done"}
        check_whole(work)
        assert [event["outcome"] for event in of_kind(work, "TurnFinished")] == ["done"]
        assert [event["outcome"] for event in of_kind(work, "ToolCallFinished")] == ["done"]
        assert "".join(event["text"] for event in of_kind(work, "ModelResponded")).endswith("so")
        assert all(finding.ok or finding.name == "disk" for finding in examine(Home(gateway.home)))


@pytest.mark.parametrize("goodbye", [False, True])
def test_promise_1_start_on_a_full_disk_serves_reads_and_recovers(
    small_disk: Path, tmp_path: Path, goodbye: bool
) -> None:
    """What was acknowledged is there after kill -9 on a full disk, and can be read before there is space again."""
    gateway = GatewayProcess(small_disk / "home", log_next_to=tmp_path, timings=QUICK_DISK)
    with gateway.start():
        session = gateway.create("slow 300 one two three four five six")
        gateway.until_event(session, "ModelRequested")
        ballast = fill(small_disk, leave=LEFT)
        accepted = []
        for number in range(400):
            key = f"message-{number}"
            body = {"text": f"say {'x' * 2000}"}
            if gateway.request("POST", f"/v1/sessions/{session}/messages", json=body, key=key).status_code == 507:
                break
            accepted.append(key)
        print(f"\n{len(accepted)} acknowledged on the last bytes, then {'goodbye' if goodbye else 'kill -9'}")
        if goodbye:
            gateway.terminate()
        else:
            gateway.kill9()
        fill(small_disk, leave=0)
        gateway.start()
        assert gateway.request("GET", "/healthz").json()["status"] == "degraded"
        assert [event["input"] for event in of_kind(gateway.events(session), "InputReceived")][1:] == accepted
        assert gateway.request("POST", "/v1/sessions", json={"text": "say x"}).status_code == 507
        assert "Traceback" not in gateway.stderr
        ballast.unlink()
        until(lambda: gateway.request("GET", "/healthz").json()["status"] == "ok", "it recovers by itself")
        assert [event["input"] for event in of_kind(gateway.events(session), "InputReceived")][1:] == accepted
        gateway.command("POST", f"/v1/sessions/{session}/stop")
        records = gateway.until_rest(session)
        assert [event["outcome"] for event in of_kind(records, "TurnFinished")] == ["stopped"] + ["done"] * len(
            accepted
        )


def test_a_start_on_a_full_disk_is_reported_in_the_home_channel(small_disk: Path, tmp_path: Path) -> None:
    gateway = GatewayProcess(small_disk / "home", log_next_to=tmp_path, timings=QUICK_DISK)
    with listening() as (hook, port), gateway.start():
        gateway.kill9()
        (gateway.home / "config.toml").write_text(HOME_CHANNEL.format(port=port))
        ballast = fill(small_disk, leave=0)
        gateway.start()
        (_, body), *_ = until(lambda: hook.received or None, "it is told")
        assert body["type"] == "notice.disk_full"
        assert body["data"]["text"].startswith("The disk does not take writes: ")
        assert body["data"]["text"].endswith(". Agents wait until it does; then they continue automatically.")
        ballast.unlink()
        until(lambda: gateway.request("GET", "/healthz").json()["status"] == "ok", "it recovers by itself")


def test_a_new_home_on_a_full_disk_is_refused_with_the_reason(small_disk: Path) -> None:
    home = Home(small_disk / "home")
    ballast = fill(small_disk, leave=0)
    command = [sys.executable, "-m", "holdfast", "--home", str(home.path), "serve", "--port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (ended.returncode, ended.stderr.splitlines()) == (
        1,
        [
            f"error: The disk of {home.path} is full. A new home, or the first start of a new version, needs "
            "some space.",
            "  hint: Nothing was lost. Free some space, then start the gateway again.",
        ],
    )
    client = launch._failed(home, 0, "it ended with exit code 1", exit_code=1)
    assert f"the disk that holds {home.path} is full" in client.message and "Free some space" in client.hint
    assert {finding.name for finding in examine(home) if not finding.ok} == {"disk"}
    ballast.unlink()
    prepare(home.database)  # what a start does first: nothing half made is in its way
    assert {finding.name for finding in examine(home) if not finding.ok} == {"disk"}, "as small as it is"


def test_a_revoke_bites_on_a_full_disk_and_is_written_when_there_is_space(small_disk: Path, tmp_path: Path) -> None:
    gateway = GatewayProcess(small_disk / "home", log_next_to=tmp_path, timings=QUICK_DISK)
    with gateway.start():
        lost, itself, kept = Browser(gateway, name="lost"), Browser(gateway), Browser(gateway)
        with lost.socket() as socket:
            socket.recv(PATIENCE)
            ballast = fill(small_disk, leave=0)
            until(
                lambda: gateway.request("POST", "/v1/sessions", json={"text": "x" * 9000}).status_code == 507,
                "nothing fits",
            )
            assert kept.request("DELETE", f"/v1/devices/{lost.id}").status_code == 202
            assert lost.request("GET", "/v1/status").status_code == 401
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    socket.recv(PATIENCE)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 4401
        assert itself.request("POST", "/v1/logout").status_code == 202
        port = gateway.port
        gateway.kill9()
        gateway.start(port)  # on the full disk
        both = [itself.request("GET", "/v1/status").status_code, lost.request("GET", "/v1/status").status_code]
        assert (both, kept.request("GET", "/v1/status").status_code) == ([401, 401], 200)
        ballast.unlink()
        until(lambda: gateway.request("GET", "/healthz").json()["status"] == "ok", "it recovers by itself")
        revoked = gateway.home / "revoked"
        until(lambda: not revoked.read_bytes().strip(b"\0"), "both revocations are in the database")
        gateway.kill9()
        gateway.start(port)
        assert [lost.request("GET", "/v1/status").status_code, itself.request("GET", "/v1/status").status_code] == [
            401
        ] * 2
        assert kept.request("GET", "/v1/status").status_code == 200
