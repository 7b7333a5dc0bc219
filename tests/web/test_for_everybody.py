"""axe finds nothing to complain about on the pages that have no such test of their own, in either theme."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.e2e.gateway import GatewayProcess
from tests.web.checks import AXE, check_axe, loaded, set_drawer
from tests.web.seat import SECTIONS, Seat


def test_axe_finds_nothing(browser: Browser, shared: GatewayProcess) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is missing: make web")
    with Seat(browser, shared, service_workers="block") as seat:
        seat.begin("careful")
        seat.send("say # A title\nsay some `code`\nsh echo waits")
        seat.page.get_by_role("group", name="Approval").wait_for()
        found: list[str] = []
        paths = ["/home", f"/s/{seat.session}", "/s"]
        paths += [f"/settings/{section}" for section in SECTIONS]
        for path in paths:
            seat.page.evaluate("path => history.pushState(null, '', path)", path)
            loaded(seat.page)
            if path == "/home":
                set_drawer(seat.page, is_open=True)  # from here on
                loaded(seat.page)
            found += [f"{path}: {violation}" for violation in check_axe(seat.page)]
        assert not found, "\n".join(found)
