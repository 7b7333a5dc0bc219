"""Notifications from the command line: where they go, and what they are about."""

from __future__ import annotations

import pytest

from tests.cli.commandline import CommandLine
from tests.e2e.browser import Browser
from tests.e2e.gateway import GatewayProcess, until
from tests.notify.push_service import push_service


@pytest.fixture
def cli(gateway: GatewayProcess) -> CommandLine:
    return CommandLine(gateway.home)


def test_notifications_are_chosen_for_a_task(cli: CommandLine) -> None:
    task = cli.ok("start", "--notify", "always", "--", "sleep", "600").strip()
    assert cli.json("tasks", "show", task)["tell"] == "always"
    assert cli.ok("notify", "never", task[:6]) == f"{task}: you are never notified of it\n"
    assert "notifications  never" in cli.ok("tasks", "show", task)
    assert "Notifications about its end: never, chosen by cli." in cli.ok("why", task)
    cli.ok("notify", "default", task)
    assert cli.json("tasks", "show", task)["tell"] == "default"
    cli.ok("tasks", "kill", task)


def test_notifications_are_chosen_for_a_card_and_for_a_session(cli: CommandLine) -> None:
    card = cli.ok("card", "add", "--triage", "--notify", "never", "The login").strip()
    assert cli.json("card", "show", card)["card"]["tell"] == "never"
    assert "notifications  never" in cli.ok("card", "show", card)
    cli.ok("notify", "always", card)
    assert cli.json("card", "show", card)["card"]["tell"] == "always"
    cli.ok("card", "edit", card, "--notify", "default")
    assert cli.json("card", "show", card)["card"]["tell"] == "default"
    session = cli.json("run", "say hello")["session"]
    cli.ok("notify", "never", session)
    assert cli.json("sessions", "show", session)["session"]["tell"] == "never"
    assert "You are never told of this session: chosen by cli." in cli.ok("sessions", "log", session)


def test_notifications_of_a_run_are_chosen_for_its_card(cli: CommandLine) -> None:
    card = cli.ok("card", "add", "--profile", "demo", "--body", "complete", "Do it").strip()
    runs = until(lambda: cli.json("card", "show", card)["runs"] or None, "it runs")
    refused = cli("notify", "always", runs[0]["task"])
    assert (refused.returncode, "Choose the notifications of the card." in refused.stderr) == (5, True)
    assert "There is no session, task or card nothing." in cli("notify", "never", "nothing").stderr


def test_devices_that_take_pushes_are_listed_by_their_names(cli: CommandLine, gateway: GatewayProcess) -> None:
    config = gateway.home / "config.toml"
    config.write_text(f"{config.read_text() if config.exists() else ''}\n[notify.push]\nallow_private = true\n")
    with push_service() as service:
        phone = Browser(gateway, name="My phone")
        assert phone.request("POST", "/v1/push", json=service.subscribe().json).status_code == 200
        name = f"push.{phone.id}"
        assert f"{name} (My phone)" in cli.ok("notify", "list")
        assert cli.ok("notify", "test", name) == f"{name}: the test was delivered\n"
        assert [message["kind"] for message in service.messages] == ["test"]
        service.answer = (410, {})
        assert "Turn notifications on again" in cli("notify", "test", name).stderr
        assert "answered 410" in cli.ok("notify", "list")


def test_telegram_says_how_to_set_it_up_and_lets_nobody_in_before(cli: CommandLine) -> None:
    assert "token_env" in cli.ok("telegram")
    assert cli.json("telegram") == {
        "is_on": False,
        "bot": "",
        "problem": "",
        "since": 0,
        "people": [],
        "strangers": [],
    }
    assert "[telegram] is not set up in config.toml." in cli("telegram", "pair", "42-ABCDEFGH").stderr
    assert "42 is not let in." in cli("telegram", "remove", "42").stderr
