"""A browser in front of a real gateway. Debian's chromium, driven by Playwright; skipped where it is missing.

`HOLDFAST_BROWSER=must` makes that a failure.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Playwright, expect, sync_playwright

from tests.e2e.gateway import GatewayProcess
from tests.web.user import CHROMIUM, STATIC, WAIT_MS, User

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


class Driver:
    """Playwright, and the browsers that all tests of this process share.

    Its event loop counts as running in this thread from its start to its end, and then no other can run. So it is taken
    away but for the time of a test that uses it.
    """

    def __init__(self) -> None:
        self._playwright = sync_playwright().start()
        self._loop = asyncio.get_running_loop()
        self._browsers: dict[Path, Browser] = {}
        asyncio._set_running_loop(None)

    @contextmanager
    def active(self) -> Iterator[Playwright]:
        asyncio._set_running_loop(self._loop)
        try:
            yield self._playwright
        finally:
            asyncio._set_running_loop(None)

    def browser(self, program: Path) -> Browser:
        found = self._browsers.get(program)
        if found is None or not found.is_connected():
            with self.active() as playwright:
                found = self._browsers[program] = playwright.chromium.launch(
                    executable_path=str(program),
                    env={**os.environ, "TMPDIR": "/tmp"},  # it has a socket there, whose path must be short
                )
        return found

    @contextmanager
    def profile(self, program: Path, directory: Path, *, flags: list[str], **options: Any) -> Iterator[BrowserContext]:
        """A browser of its own whose profile is in a directory, while the driver is active."""
        context = self._playwright.chromium.launch_persistent_context(
            directory,
            executable_path=str(program),
            env={**os.environ, "TMPDIR": "/tmp"},
            ignore_default_args=["--disable-background-networking"],  # it would get no pushes
            args=flags,
            **options,
        )
        context.set_default_timeout(WAIT_MS)
        try:
            yield context
        finally:
            context.close()

    def close(self) -> None:
        with self.active():
            for browser in self._browsers.values():
                browser.close()
            self._playwright.stop()


@pytest.fixture(scope="session")
def driver() -> Iterator[Driver]:
    found = Driver()
    yield found
    found.close()


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Browser:
    """A module that needs another one than usual names it in BROWSER."""
    program: Path = getattr(request.module, "BROWSER", CHROMIUM)
    if reason := why_not(program):
        if os.environ.get("HOLDFAST_BROWSER") == "must":
            pytest.fail(reason)
        pytest.skip(reason)
    driver: Driver = request.getfixturevalue("driver")
    return driver.browser(program)


@pytest.fixture(autouse=True)
def active_driver(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make the driver run for the time of the test, and leave the next one no open page."""
    if "browser" not in request.fixturenames:
        yield
        return
    browser: Browser = request.getfixturevalue("browser")
    driver: Driver = request.getfixturevalue("driver")
    with driver.active():
        yield
        for context in browser.contexts:
            context.close()


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
def user(browser: Browser, gateway: GatewayProcess) -> Iterator[User]:
    """Somebody who has signed in."""
    with User(browser, gateway) as found:
        yield found


@pytest.fixture
def installed(browser: Browser, gateway: GatewayProcess) -> Iterator[User]:
    """Somebody who has signed in, in a browser that installs the service worker."""
    with User(browser, gateway, service_workers="allow") as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[GatewayProcess]:
    """One gateway for a whole file of tests that do it no harm."""
    with GatewayProcess(settled(tmp_path_factory.mktemp("shared") / "home")) as process:
        yield process.start()


@pytest.fixture
def guest(browser: Browser, shared: GatewayProcess) -> Iterator[User]:
    """Somebody new at the shared one."""
    with User(browser, shared) as found:
        yield found
