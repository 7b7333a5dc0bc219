"""A browser turns pushes on and off; it gets the kinds that it chose, and nothing once it is signed out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browser import Browser
from tests.e2e.gateway import GatewayProcess, until
from tests.notify.push_service import PushService, push_service

CONFIG = """
[notify.push]
allow_private = true
[profiles.demo]
model = "demo"
tools = { terminal = "allow" }
[profiles.careful]
model = "demo"
tools = { terminal = "ask" }
"""
ALWAYS = {"only_when_nobody_looks": False}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    home = tmp_path_factory.mktemp("push") / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(CONFIG)
    with GatewayProcess(home) as process:
        yield process.start()


@pytest.fixture
def service() -> Iterator[PushService]:
    with push_service() as found:
        yield found
        assert found.refused == []


@pytest.fixture
def phone(gateway: GatewayProcess) -> Iterator[Browser]:
    found = Browser(gateway, name="My phone")
    yield found
    gateway.request("DELETE", f"/v1/devices/{found.id}")


def turn_on(phone: Browser, service: PushService, **rules: Any) -> Any:
    answer = phone.request("POST", "/v1/push", json=service.subscribe().json | rules)
    assert answer.status_code == 200, answer.text
    return answer.json()


def listed(gateway: GatewayProcess, phone: Browser) -> Any:
    found = gateway.get("/v1/notify")["destinations"]
    return next((one for one in found if one["name"] == f"push.{phone.id}"), None)


def ask(gateway: GatewayProcess, text: str = "sh echo waits") -> str:
    return str(gateway.command("POST", "/v1/sessions", {"text": text, "profile": "careful"})["session"])


def test_a_device_turns_pushes_on_changes_their_kinds_and_turns_them_off(
    gateway: GatewayProcess, service: PushService, phone: Browser
) -> None:
    before = phone.get("/v1/push")
    assert before["subscription"] is None
    assert len(before["key"]) == 87
    subscribed = service.subscribe().json
    state = phone.request("POST", "/v1/push", json=subscribed).json()
    assert state["subscription"] == {
        "destination": f"push.{phone.id}",
        "service": "127.0.0.1",
        "on": ["question", "approval", "blocked", "done", "failed", "stalled"],
        "only_when_nobody_looks": True,
        "details": False,
        "changed_at": state["subscription"]["changed_at"],
        "ended": "",
    }
    rules = {"on": ["failed", "disk_full", "failed"], "details": True} | ALWAYS
    phone.request("POST", "/v1/push", json=subscribed | rules)
    again = phone.request("POST", "/v1/push", json=service.subscribe().json).json()["subscription"]
    assert (again["on"], again["details"], again["only_when_nobody_looks"]) == (["failed", "disk_full"], True, False)
    shown = listed(gateway, phone)
    assert (shown["label"], shown["on"], shown["pending"]) == ("My phone", ["disk_full", "failed"], 0)
    assert phone.request("DELETE", "/v1/push").json()["subscription"] is None
    assert listed(gateway, phone) is None


def test_a_test_arrives_and_the_list_says_when(gateway: GatewayProcess, service: PushService, phone: Browser) -> None:
    turn_on(phone, service)
    for name in (f"push.{phone.id}", phone.id):
        answer = gateway.request("POST", "/v1/notify/test", json={"destination": name})
        assert answer.json() == {"destination": f"push.{phone.id}", "sent": True, "problem": "", "hint": ""}
    assert [message["kind"] for message in service.messages] == ["test", "test"]


def test_an_approval_is_notified_with_its_choices_and_when_it_is_settled(
    gateway: GatewayProcess, service: PushService, phone: Browser
) -> None:
    turn_on(phone, service, details=True, **ALWAYS)
    session = ask(gateway, "sh echo told")
    until(lambda: service.messages or None, "it is told")
    (told,) = service.messages
    assert (told["kind"], told["link"], told["matter"]) == ("approval", f"/s/{session}", f"wait/{session}")
    assert "echo told" in told["text"]
    assert told["choices"] == ["allow", "deny"]
    answer = phone.request("POST", "/v1/answers", json={"wait": told["wait"], "answer": "allow"})
    assert answer.status_code == 202
    until(lambda: [one for one in service.messages if one["kind"] == "settled"] or None, "that it is settled is told")
    settled = next(one for one in service.messages if one["kind"] == "settled")
    assert (settled["matter"], settled["text"]) == (told["matter"], "answered by web: allow")
    topics = {one.headers["topic"] for one in service.pushed if one.message["matter"] == told["matter"]}
    assert len(topics) == 1
    until(lambda: listed(gateway, phone)["sent_at"] or None, "the list says when something arrived")
    until(lambda: [one for one in service.messages if one["kind"] == "done"] or None, "the next test hears nothing")


def test_without_details_it_has_the_title_and_offers_to_deny_only(
    gateway: GatewayProcess, service: PushService, phone: Browser
) -> None:
    turn_on(phone, service, **ALWAYS)
    ask(gateway, "sh echo hidden-words")
    until(lambda: service.messages or None, "it is told")
    (told,) = service.messages
    assert (told["text"], told["choices"]) == ("asks for an approval", ["deny"])


def test_a_device_that_is_signed_out_gets_nothing_more(
    gateway: GatewayProcess, service: PushService, phone: Browser
) -> None:
    other = Browser(gateway)
    turn_on(phone, service, **ALWAYS)
    turn_on(other, service, **ALWAYS)
    gateway.command("DELETE", f"/v1/devices/{phone.id}")
    assert listed(gateway, phone) is None
    ask(gateway)
    until(lambda: service.messages or None, "the other is told")
    gateway.command("DELETE", f"/v1/devices/{other.id}")
    assert {one.subscription for one in service.pushed} == {"s1"}


def test_a_subscription_that_has_ended_is_shown_with_what_to_do(
    gateway: GatewayProcess, service: PushService, phone: Browser
) -> None:
    turn_on(phone, service, **ALWAYS)
    service.answer = (410, {})
    ask(gateway)
    shown = until(lambda: (one := listed(gateway, phone)) and one["ended"] and one, "it has ended")
    assert "410" in shown["problem"]
    assert "Turn notifications on again" in shown["problem"]
    own = phone.get("/v1/push")["subscription"]
    assert "410" in own["ended"]
    log = gateway.get("/v1/notify/log", destination=f"push.{phone.id}")["deliveries"]
    assert [one["state"] for one in log] == ["failed"]
    service.answer = (201, {})
    turn_on(phone, service)
    assert not listed(gateway, phone)["ended"]


def test_the_token_of_the_command_line_is_no_device(gateway: GatewayProcess, service: PushService) -> None:
    for method, body in (("GET", None), ("POST", service.subscribe().json), ("DELETE", None)):
        answer = gateway.request(method, "/v1/push", json=body)
        assert answer.status_code == 404


SUBSCRIBED = {"endpoint": "https://1.1.1.1/x", "keys": {"p256dh": "B" * 87, "auth": "A" * 22}}


@pytest.mark.parametrize(
    "change",
    [
        {"endpoint": 1},
        {"endpoint": ""},
        {"endpoint": "https://" + "x" * 3000},
        {"endpoint": "javascript:alert(1)"},
        {"keys": {}},
        {"keys": {"p256dh": "x" * 5000, "auth": "x"}},
        {"keys": {"p256dh": "B" * 87, "auth": "A" * 22}},  # not on the curve
        {"on": ["everything"]},
        {"on": ["done"] * 21},
        {"on": "done"},
        {"details": "yes"},
        {"device": "another"},
    ],
)
def test_hostile_subscriptions(gateway: GatewayProcess, phone: Browser, change: dict[str, Any]) -> None:
    answer = phone.request("POST", "/v1/push", json=SUBSCRIBED | change)
    assert answer.status_code == 400, answer.text
    assert listed(gateway, phone) is None


def test_a_foreign_page_cannot_subscribe(gateway: GatewayProcess, service: PushService, phone: Browser) -> None:
    for origin in ("https://evil.example", None):
        answer = phone.request("POST", "/v1/push", origin=origin, json=service.subscribe().json)
        assert answer.status_code == 403
    assert listed(gateway, phone) is None


def test_where_private_addresses_are_not_allowed(tmp_path: Path, service: PushService) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.start()
        phone = Browser(gateway)
        assert phone.request("POST", "/v1/push", json=service.subscribe().json).status_code == 400
        given = service.subscribe().json | {"endpoint": "https://127.0.0.1:9/x"}
        answer = phone.request("POST", "/v1/push", json=given)
        assert answer.status_code == 400
        assert "not a public address" in answer.json()["error"]["message"]
        assert "allow_private" in answer.json()["error"]["hint"]
        assert listed(gateway, phone) is None
