"""`holdfast open` and `holdfast devices`: a browser is let in, listed, and sent away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.commandline import CommandLine
from tests.e2e.browser import Browser, log_in
from tests.e2e.gateway import GatewayProcess, until
from tests.eventually import PATIENCE

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


def a_browser(folder: Path) -> tuple[dict[str, str], Path]:
    """A screen with a browser that writes down what it is called with."""
    script, seen = folder / "browser", folder / "seen"
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}\n')
    script.chmod(0o700)
    return {"CI": "", "DISPLAY": ":0", "BROWSER": f"{script} %s"}, seen


def test_with_a_screen_the_browser_opens_the_address_and_no_process_has_the_code_in_its_arguments(
    cli: CommandLine, shared: GatewayProcess, tmp_path: Path
) -> None:
    screen, seen = a_browser(tmp_path)
    done = cli("open", env=screen)
    assert done.returncode == 0 and "no browser" not in done.stderr
    address = str(until(lambda: seen.exists() and seen.read_text(), "the browser was called"))
    code = done.stdout.strip().partition("#code=")[2]
    assert address.startswith("file://") and code not in address
    page = Path(address.removeprefix("file://"))
    assert f'url={done.stdout.strip()}"' in page.read_text() and page.stat().st_mode & 0o777 == 0o600
    assert log_in(shared, code).status_code == 202
    assert not page.exists()


def test_devices_are_listed_and_revoked(cli: CommandLine, shared: GatewayProcess) -> None:
    browser = Browser(shared, name="kitchen tablet")
    assert "kitchen tablet" in cli.ok("devices")
    assert browser.id in [device["id"] for device in cli.json("devices", "list")["devices"]]
    assert "is signed out" in cli.ok("devices", "revoke", browser.id[:12])
    assert browser.request("GET", "/v1/status").status_code == 401
    assert cli("devices", "revoke", browser.id).returncode == 4
    assert browser.id not in cli.ok("devices")


def test_a_phone_gets_the_public_address(alone: CommandLine) -> None:
    alone.home.mkdir(mode=0o700, exist_ok=True)
    (alone.home / "config.toml").write_text('[gateway]\npublic_urls = ["https://box.ts.net", "https://b.example"]\n')
    done = alone("open", "--phone", env={"DISPLAY": ":0", "BROWSER": "false %s"})
    assert done.returncode == 0 and "no browser" not in done.stderr
    base, _, code = done.stdout.strip().partition("/#code=")
    assert base == "https://box.ts.net"
    assert log_in(GatewayProcess(alone.home), code).status_code == 202


def test_without_a_public_address_it_says_how_to_get_one(cli: CommandLine) -> None:
    done = cli("open", "--phone")
    assert done.returncode == 2 and done.stdout == ""
    assert "public_urls" in done.stderr and "docs/deploy.md" in done.stderr


def test_in_ci_nothing_is_opened(cli: CommandLine, tmp_path: Path) -> None:
    screen, seen = a_browser(tmp_path)
    done = cli("open", env=screen | {"CI": "true"})
    assert done.returncode == 0 and "#code=" in done.stdout and "no browser was opened" in done.stderr
    assert not seen.exists()


@pytest.mark.parametrize(
    ("flags", "ci", "printed", "opened"),
    [(["--open"], "", True, True), (["--open"], "true", True, False), ([], "", False, False)],
)
def test_serve_shows_a_code_on_a_terminal_and_in_no_log(
    alone: CommandLine, tmp_path: Path, flags: list[str], ci: str, printed: bool, opened: bool
) -> None:
    screen, seen = a_browser(tmp_path)
    with alone.spawn("serve", "--port", "0", *flags, **(screen | {"CI": ci})) as process:
        said = ""
        assert process.stdout is not None
        while "Ctrl-C" not in said:
            said += process.stdout.readline()
        link = re.search(r"http://\S+/#code=(\S+)", said)
        assert (link is not None) is printed and "open\n" in said
        if link is not None:
            log = (alone.home / "logs" / "gateway.log").read_text()
            assert link[1] not in log
        if opened:
            assert link is not None
            called = str(until(lambda: seen.exists() and seen.read_text(), "the browser was called"))
            assert called.startswith("file://") and link[1] not in called, "no code in the words of a process"
        process.terminate()
        assert process.wait(PATIENCE) == 0
    assert seen.exists() is opened
