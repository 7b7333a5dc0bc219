"""A browser in front of a real gateway. Debian's chromium, driven by Playwright; skipped where it is missing.

`HOLDFAST_BROWSER=must` makes that a failure.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from playwright.sync_api import Browser, expect, sync_playwright

from tests.e2e.gateway import GatewayProcess
from tests.web.seat import CHROMIUM, STATIC, WAIT_MS, Seat

expect.set_options(timeout=WAIT_MS)  # how long it may take says nothing about whether it is right

SETTINGS = """
[profiles.demo]
model = "demo"
tools = { terminal = "allow", delegate = "allow" }

[profiles.careful]
model = "demo"
tools = { terminal = "ask" }
"""


def why_not(program: Path = CHROMIUM) -> str:
    if not program.exists():
        return f"{program} is missing: apt-get install {program.name}"
    if not (STATIC / "index.html").exists():
        return "the dashboard is not built: make web"
    return ""


@pytest.fixture(scope="module")  # its loop must be gone before anybody else's test begins
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """A module that needs another one than usual names it in BROWSER."""
    program: Path = getattr(request.module, "BROWSER", CHROMIUM)
    if reason := why_not(program):
        if os.environ.get("HOLDFAST_BROWSER") == "must":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=str(program))
        yield found
        found.close()


def settled(home: Path) -> Path:
    """A home with its settings."""
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(SETTINGS)
    (home / "config.toml").chmod(0o600)
    return home


@pytest.fixture
def gateway(tmp_path: Path, browser: Browser) -> Iterator[GatewayProcess]:  # without a browser there is no need for one
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with GatewayProcess(settled(tmp_path / "home")) as process:
        process.start(port)
        yield process


@pytest.fixture
def seat(browser: Browser, gateway: GatewayProcess) -> Iterator[Seat]:
    """Somebody who signed in and sees an empty session."""
    with Seat(browser, gateway) as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[GatewayProcess]:
    """One gateway for a whole file of tests that do it no harm."""
    with GatewayProcess(settled(tmp_path_factory.mktemp("shared") / "home")) as process:
        yield process.start()


@pytest.fixture
def guest(browser: Browser, shared: GatewayProcess) -> Iterator[Seat]:
    """Somebody new at the shared one."""
    with Seat(browser, shared) as found:
        yield found


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A browser on a busy machine may miss its moment: such a test is run once more, and named. Twice is a failure."""
    if Path(__file__).parent not in item.path.parents:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if any(report.failed for report in reports):
        item._initrequest()  # type: ignore[attr-defined]
        item.user_properties.append(("twice", str(next(report.longrepr for report in reports if report.failed))[-500:]))
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Which were run twice, and why."""
    for report in terminalreporter.getreports("passed"):
        for name, why in report.user_properties:
            if name == "twice" and report.when == "call":
                terminalreporter.write_line(f"passed only when it was run again: {report.nodeid}\n{why}")
