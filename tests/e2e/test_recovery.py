"""A starting gateway takes no command before it knows what is open; a locked database stops nothing for long."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.e2e.gateway import GatewayProcess, check_whole, kinds, of_kind, until
from tests.eventually import PATIENCE

RECOVERING = Path(__file__).with_name("recovering_gateway.py")


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_input_is_accepted_when_recovery_is_finished(tmp_path: Path) -> None:
    gate, port, run = tmp_path / "gate", free_port(), tmp_path / "home" / "run"
    run.parent.mkdir(mode=0o700)
    run.mkdir(mode=0o700)
    token_file = os.open(run / "token", os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(token_file, b"t" * 43)
    os.close(token_file)
    with GatewayProcess(tmp_path / "home", script=RECOVERING, arguments=(str(gate),)) as gateway:
        gateway.launch(port)
        url = f"http://127.0.0.1:{port}"

        def health() -> str:
            try:
                return str(httpx.get(f"{url}/healthz").json()["status"])
            except httpx.HTTPError:
                return ""

        assert until(health, "it answers") == "starting"
        token = {"authorization": f"Bearer {gateway.token}"}
        refused = httpx.post(f"{url}/v1/sessions", json={"text": "say hello"}, headers=token)
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "not_ready"
        assert int(refused.headers["retry-after"]) >= 1
        assert httpx.get(f"{url}/v1/sessions", headers=token).json()["sessions"] == []
        gate.touch()
        gateway.wait_until_up()
        assert health() == "ok"
        gateway.until_rest(gateway.create("say hello"))


def hold_the_lock(gateway: GatewayProcess, seconds: float) -> list[float]:
    """Another program locks the database under load. How long `/healthz` took meanwhile."""
    sessions = [gateway.create() for _ in range(4)]
    busy = gateway.create("slow 1 one two three four five six\nsay done")
    gateway.until_event(busy, "ModelRequested")
    answers: dict[str, int] = {}

    def post(number: int) -> None:
        session, key = sessions[number % 4], f"message-{number}"
        body = {"text": f"say {number}"}
        while True:
            answer = gateway.request("POST", f"/v1/sessions/{session}/messages", json=body, key=key)
            if answer.status_code == 202:
                answers[key] = answer.status_code
                return
            assert answer.status_code == 503, answer.text
            assert int(answer.headers["retry-after"]) >= 1

    took: list[float] = []
    with closing(sqlite3.connect(gateway.home / "holdfast.db", isolation_level=None)) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        posts = [threading.Thread(target=post, args=(number,)) for number in range(12)]
        for thread in posts:
            thread.start()
        begun, words = time.monotonic(), set[str]()
        while time.monotonic() - begun < seconds or not any("locked" in word for word in words):
            assert time.monotonic() - begun < PATIENCE, "it says so while it lasts"
            before = time.monotonic()
            words.add(str(httpx.get(f"{gateway.url}/healthz", timeout=PATIENCE).json()["problem"]))
            took.append(time.monotonic() - before)
            time.sleep(0.05)
        assert answers == {}, "nothing was acknowledged that could not be written"
        foreign.execute("ROLLBACK")
    for thread in posts:
        thread.join()
    records = {session: gateway.until_rest(session) for session in [*sessions, busy]}
    for found in records.values():
        check_whole(found)
        assert {event["outcome"] for event in of_kind(found, "TurnFinished")} == {"done"}
    received = [event["input"] for session in sessions for event in of_kind(records[session], "InputReceived")]
    assert sorted(received) == sorted(answers), "nothing lost, nothing doubled"
    assert kinds(records[busy]).count("TurnFinished") == 1
    assert gateway.get("/healthz")["status"] == "ok"
    return took


def test_promise_1_a_foreign_lock_under_load_loses_nothing(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home", timings={"store.lock": 1.0}) as gateway:
        assert hold_the_lock(gateway.start(), 2.5)


@pytest.mark.proof
def test_promise_1_a_foreign_lock_of_sixteen_seconds_under_load_loses_nothing(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        took = hold_the_lock(gateway.start(), 16.0)
        print(f"\n/healthz under the lock: {len(took)} answers, {max(took) * 1000:.0f} ms at most")
