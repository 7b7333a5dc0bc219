"""Pushes of a real gateway that is killed: the same push again under one id and one topic, and none is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.browser import Browser
from tests.e2e.gateway import GatewayProcess, until
from tests.notify.push_service import PushService, push_service

CONFIG = '[notify.push]\nallow_private = true\n[profiles.demo]\nmodel = "demo"\n'


@contextmanager
def told_by_push(directory: Path) -> Iterator[tuple[GatewayProcess, PushService]]:
    home = directory / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(CONFIG)
    with push_service() as service, GatewayProcess(home) as gateway:
        gateway.start()
        body = service.subscribe().json | {"only_when_nobody_looks": False}
        assert Browser(gateway).request("POST", "/v1/push", json=body).status_code == 200
        yield gateway, service
        assert service.refused == []


def test_promise_5_killed_between_the_send_and_its_record_it_is_sent_again_as_the_same(tmp_path: Path) -> None:
    with told_by_push(tmp_path) as (gateway, service):
        service.gate.clear()
        session = gateway.create("say hello")
        until(lambda: service.pushed or None, "the push service has it")
        gateway.kill9()
        service.gate.set()
        gateway.start()
        until(lambda: len(service.pushed) == 2 or None, "it has it again")
        first, second = service.pushed
        assert first.message == second.message
        assert first.message["link"] == f"/s/{session}"
        assert first.headers["topic"] == second.headers["topic"], "the later one replaces the first"
        assert first.key == second.key, "the key outlives the gateway"
        found = until(
            lambda: [one for one in gateway.get("/v1/notify/log")["deliveries"] if one["state"] == "sent"] or None,
            "it is recorded",
        )
        assert [one["attempts"] for one in found] == [2]


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.15])
def test_promise_5_killed_between_the_end_of_a_turn_and_its_push_it_is_pushed_once_or_as_the_same(
    tmp_path: Path, moment: float
) -> None:
    with told_by_push(tmp_path) as (gateway, service):
        session = gateway.create("say hello", key="kill-push-000001")
        threading.Event().wait(moment)  # wherever that is: nothing may be lost
        gateway.kill9()
        gateway.start()
        until(lambda: service.pushed or None, "it is told")
        gateway.until_rest(session)
        until(lambda: not gateway.get("/v1/notify")["destinations"][0]["pending"] or None, "nothing waits")
        assert len({(one.message["id"], one.headers["topic"]) for one in service.pushed}) == 1
