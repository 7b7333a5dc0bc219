"""`holdfast open` and `holdfast devices`: a browser is let in, listed, and sent away."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.commandline import CommandLine
from tests.e2e.browser import Browser, log_in
from tests.e2e.gateway import GatewayProcess, until

NOWHERE = {"DISPLAY": "", "WAYLAND_DISPLAY": ""}


def test_it_starts_a_gateway_and_prints_an_address_that_signs_in(alone: CommandLine) -> None:
    done = alone("open", "--print")
    assert done.returncode == 0 and "started a gateway" in done.stderr
    base, _, code = done.stdout.strip().partition("/#code=")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", base)
    gateway = GatewayProcess(alone.home)
    assert gateway.url == base
    assert log_in(gateway, code).status_code == 202
    assert log_in(gateway, code).status_code == 401


def test_a_session_is_opened_by_a_prefix_of_its_id(cli: CommandLine, shared: GatewayProcess) -> None:
    session = shared.create()
    found = cli.json("open", session[:12], "--print")
    assert found["url"].startswith(f"{shared.url}/s/{session}#code=")
    assert set(found) == {"url", "expires_at"}
    assert cli("open", "0123456789abcdef", "--print").returncode == 4


def test_without_a_screen_it_says_that_no_browser_was_opened(cli: CommandLine) -> None:
    done = cli("open", env=NOWHERE)
    assert done.returncode == 0 and "#code=" in done.stdout
    assert "no browser was opened" in done.stderr


def test_with_a_screen_the_browser_gets_the_address(cli: CommandLine, tmp_path: Path) -> None:
    script, seen = tmp_path / "browser", tmp_path / "seen"
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}\n')
    script.chmod(0o700)
    done = cli("open", env={"DISPLAY": ":0", "BROWSER": f"{script} %s"})
    assert done.returncode == 0 and "no browser" not in done.stderr
    assert until(lambda: seen.exists() and seen.read_text(), "the browser was called") == done.stdout.strip()


def test_devices_are_listed_and_revoked(cli: CommandLine, shared: GatewayProcess) -> None:
    browser = Browser(shared, name="kitchen tablet")
    assert "kitchen tablet" in cli.ok("devices")
    assert browser.id in [device["id"] for device in cli.json("devices", "list")["devices"]]
    assert "is signed out" in cli.ok("devices", "revoke", browser.id[:12])
    assert browser.request("GET", "/v1/status").status_code == 401
    assert cli("devices", "revoke", browser.id).returncode == 4
    assert browser.id not in cli.ok("devices")
