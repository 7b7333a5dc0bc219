"""Somebody in front of a browser: types, looks, closes the tab, comes back."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, WebSocketRoute, expect

import holdfast.gateway
from tests.e2e.gateway import GatewayProcess

DESKTOP, HEADLESS = Path("/usr/bin/chromium"), Path("/usr/bin/chromium-headless-shell")
CHROMIUM = HEADLESS if HEADLESS.exists() else DESKTOP
"""The same engine without a desktop's browser around it takes half of the time; it shows no notifications."""
STATIC = Path(holdfast.gateway.__file__).with_name("static")
SOCKETS = re.compile(r"^ws://")
WAIT_MS = 200_000
OTHERS = 'article[data-kind]:not([data-kind="person"], [data-kind="outbox"])'
"""Entries of a conversation that the person did not write."""
MARKS = """() => {
  window.marks = [];
  const look = () => document.querySelectorAll("[data-marked]").forEach((one) => window.marks.push(one.textContent));
  new MutationObserver(look).observe(document, { childList: true, subtree: true, attributes: true });
  look();
}"""
SECTIONS = ("devices", "appearance", "profiles", "reset", "retention", "notifications", "health", "about")
"""Of the settings."""


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    """One that waits as long as everything here."""
    context = browser.new_context(**options)
    context.set_default_timeout(WAIT_MS)
    return context


class User:
    """One device that is signed in. Its tabs come and go; the first one is empty until the test opens something."""

    def __init__(self, browser: Browser | BrowserContext, gateway: GatewayProcess, **options: Any) -> None:
        self.gateway = gateway
        usual = {
            "viewport": {"width": 1280, "height": 800},
            "reduced_motion": "reduce",  # without a graphics card an animation takes a fifth of a core
            "service_workers": "block",  # installing one takes as long as loading the page
        }
        self.context = new_context(browser, **(usual | options)) if isinstance(browser, Browser) else browser
        self.errors: list[str] = []
        self._line: Literal["direct", "routed", "cut"] = "direct"
        self._sockets: list[WebSocketRoute] = []
        self.session = ""
        self.page = self.tab()
        code = gateway.client.post("/v1/codes", json={}).json()["code"]
        signed_in = self.context.request.post(
            f"{gateway.url}/v1/login",
            data={"code": code, "name": "Chrome on Linux"},
            headers={"origin": gateway.url},
        )
        assert signed_in.ok, signed_in.text()

    def tab(self) -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        return page

    def begin(self, profile: str = "demo") -> str:
        """Open a new session, without a new load of the page if the dashboard is open."""
        self.session = str(self.gateway.client.post("/v1/sessions", json={"profile": profile}).json()["session"])
        if self.page.url.startswith(self.gateway.url):
            self.page.evaluate("path => history.pushState(null, '', path)", f"/s/{self.session}")
        else:
            self.open(f"/s/{self.session}")
        expect(self.page.get_by_label("Message", exact=True)).to_be_visible()
        return self.session

    def open(self, path: str) -> None:
        self.page.goto(self.gateway.url + path)

    def close_tab(self) -> None:
        self.page.close()

    def reopen(self, path: str = "/") -> None:
        self.page = self.tab()
        self.open(path)

    def send(self, text: str) -> None:
        box = self.page.get_by_label("Message", exact=True)
        box.fill(text)
        box.press("Enter")

    def choose(self, entry: str) -> None:
        """An entry of the menu that was opened, by keyboard. The menu takes the focus when it is there."""
        expect(self.page.locator("[role=menu]:focus, [role=menu] :focus")).to_have_count(1)
        self.page.get_by_role("menuitem", name=entry).press("Enter")

    def sees(self, text: str) -> None:
        """Somewhere in the conversation, but in what the person said."""
        said = self.page.locator(OTHERS, has_text=text)
        expect(said.first).to_be_visible(timeout=WAIT_MS)

    def until(self, true: Callable[[], bool], what: str) -> None:
        """Wait for the gateway while the page lives on: its frames pass through this process."""
        end = time.monotonic() + WAIT_MS / 1000
        while not true():
            assert time.monotonic() < end, f"not in {WAIT_MS / 1000} s: {what}"
            if self.page.is_closed():
                time.sleep(0.05)
            else:
                self.page.wait_for_timeout(50)

    def finished(self, turns: int) -> None:
        self.until(lambda: len(self.events("TurnFinished")) >= turns, f"{turns} turns are over")

    def sees_banner(self, text: str) -> None:
        expect(self.page.locator('[data-banner="away"] strong')).to_contain_text(text)

    def watch_marks(self) -> None:
        """Remember which entries are marked from now on: a mark goes after two seconds."""
        self.page.add_init_script(f"({MARKS})()")
        self.page.evaluate(MARKS)

    def saw_mark(self, text: str) -> None:
        """It was marked since the marks are watched, and is not any more."""
        self.page.wait_for_function("text => window.marks.some((mark) => mark.includes(text))", arg=text)
        expect(self.page.locator("[data-marked]")).to_have_count(0)

    # --- the line -------------------------------------------------------------------------------

    def route_line(self) -> None:
        """Pass every message of the pages that are opened from now on through this process, so that it can be cut."""
        self._line = "routed"
        self.context.route_web_socket(SOCKETS, self._socket)

    def _socket(self, socket: WebSocketRoute) -> None:
        if self._line == "cut":
            socket.close()
            return
        self._sockets.append(socket)
        socket.connect_to_server()

    def cut_line(self) -> None:
        """`set_offline` leaves open sockets open, so they are cut here, and no new one gets through."""
        assert self._line == "routed", "call route_line before a page is opened"
        self._line = "cut"
        for socket in self._sockets:
            socket.close()
        self._sockets.clear()

    def mend_line(self) -> None:
        self._line = "routed"

    # --- what the log says ------------------------------------------------------------------------

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        page = self.gateway.client.get(f"/v1/sessions/{self.session}/events", params={"limit": 2000}).json()
        return [record["event"] for record in page["events"] if not kinds or record["event"]["kind"] in kinds]

    @property
    def port(self) -> int:
        return urlsplit(self.gateway.url).port or 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.context.close()
        if error is None:
            assert self.errors == []
