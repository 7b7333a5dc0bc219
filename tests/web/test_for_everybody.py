"""axe finds nothing to complain about on the pages that have no such test of their own, in either theme."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.e2e.gateway import GatewayProcess
from tests.web.checks import AXE, check_axe, loaded, set_drawer
from tests.web.user import SECTIONS, User


def test_axe_finds_nothing(browser: Browser, shared: GatewayProcess) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is missing: make web")
    with User(browser, shared) as user:
        user.begin("careful")
        user.send("say # A title\nsay some `code`\nsh echo waits")
        user.page.get_by_role("group", name="Approval").wait_for()
        found: list[str] = []
        paths = ["/home", f"/s/{user.session}", "/s"]
        paths += [f"/settings/{section}" for section in SECTIONS]
        for path in paths:
            user.page.evaluate("path => history.pushState(null, '', path)", path)
            loaded(user.page)
            if path == "/home":
                set_drawer(user.page, is_open=True)  # from here on
                loaded(user.page)
            found += [f"{path}: {violation}" for violation in check_axe(user.page)]
        assert not found, "\n".join(found)
