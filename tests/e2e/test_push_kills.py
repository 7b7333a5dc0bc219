"""Web Push of a real gateway that is killed: each end of a turn is pushed, and a second push has the same id."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.browser import Browser
from tests.e2e.gateway import GatewayProcess, Json, until
from tests.notify.push_service import PushService, push_service
from tests.seed import new_seed

KILLS = 4
MANY_KILLS = 100
CONFIG = "[notify.push]\nallow_private = true\n[resume]\nattempts = 1000\n"  # kills come faster than anything gets done


def left_by_a_kill(home: Path) -> set[tuple[str, str]]:
    """What is in the outbox: `pending` was not sent yet, of `sending` it is not recorded what became of it."""
    with closing(sqlite3.connect(home / "holdfast.db")) as db:
        return set(db.execute("SELECT state, id FROM deliveries WHERE state <> 'sent'"))


def until_being_sent(gateway: GatewayProcess, service: PushService, *, key: str) -> list[str]:
    """Let two turns end; return when the push service has a notice and has not answered, so that the next one waits."""
    before = len(service.pushed)
    service.gate.clear()
    sessions = [gateway.create("say hello", key=f"{key}-{name}") for name in "ab"]
    until(lambda: len(service.pushed) > before or None, "the push service has one")
    for session in sessions:
        gateway.until_rest(session)
    return sessions


def kills(directory: Path, count: int, seed: int) -> str:
    choose, home = random.Random(seed), directory / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(CONFIG)
    expected: set[str] = set()
    left: set[tuple[str, str]] = set()
    with push_service() as service, GatewayProcess(home) as gateway:
        gateway.start()
        rules = {"only_when_nobody_looks": False}
        answer = Browser(gateway).request("POST", "/v1/push", json=service.subscribe().json | rules)
        assert answer.status_code == 200, answer.text
        for number in range(count):
            key = f"push-{seed}-{number:04}"
            if number % 2:
                sessions = until_being_sent(gateway, service, key=key)
            else:
                sessions = [gateway.create("say hello", key=key)]
                threading.Event().wait(choose.uniform(0, 0.3))
            expected |= {f"turn/{session}" for session in sessions}
            gateway.kill9()
            left |= left_by_a_kill(home)
            service.gate.set()
            gateway.start()

        def quiet() -> list[Json] | None:
            rows: list[Json] = gateway.get("/v1/notify/log", limit=1000)["deliveries"]
            waiting = any(row["state"] in ("pending", "sending") for row in rows)
            return None if waiting or len(rows) < len(expected) else rows

        rows = until(quiet, "nothing waits to be sent")
        assert service.refused == []
    assert {row["state"] for row in rows} == {"sent"}
    pushed = Counter(message["id"] for message in service.messages)
    told = Counter(matter for matter, _ in {(message["matter"], message["id"]) for message in service.messages})
    assert told == Counter(dict.fromkeys(expected, 1)), "each is told under one id, by which the browser knows it"
    again = {id for id, times in pushed.items() if times > 1}
    by_state = {state: {id for found, id in left if found == state} for state in ("pending", "sending")}
    assert again, "some were sent and not recorded"
    assert again <= by_state["sending"], "only what a kill left in doubt is sent again"
    hit = ", ".join(f"{state}: {len(ids)}" for state, ids in by_state.items())
    return f"{count} kills, {len(expected)} notices; at a kill {hit}; {len(again)} sent more than once, under one id"


def test_kill_9_while_ends_are_pushed(tmp_path: Path) -> None:
    kills(tmp_path, KILLS, new_seed())


@pytest.mark.proof
def test_kill_9_a_hundred_times_while_ends_are_pushed(tmp_path: Path) -> None:
    print(kills(tmp_path, MANY_KILLS, new_seed()))
