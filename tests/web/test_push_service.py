"""A phone that takes pushes from the push service of its browser, with nothing between them but the real thing.

Chromium subscribes, decrypts and wakes the service worker itself; only the address of the service is on this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.gateway import GatewayProcess
from tests.web.board import label
from tests.web.chromium_push import ChromiumPush, chromium_push
from tests.web.conftest import SETTINGS, Driver, settled
from tests.web.test_push import OPENS, PRESSED, PUSH, RECORDED
from tests.web.user import DESKTOP, User

BROWSER = DESKTOP
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "device_scale_factor": 2}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ChromiumPush]:
    with chromium_push(tmp_path) as found:
        yield found


@pytest.fixture
def gateway(tmp_path: Path, browser: Browser) -> Iterator[GatewayProcess]:
    home = settled(tmp_path / "home")
    (home / "config.toml").write_text(SETTINGS + PUSH)
    with GatewayProcess(home) as process:
        yield process.start()


@pytest.fixture
def phone(tmp_path: Path, driver: Driver, gateway: GatewayProcess, service: ChromiumPush) -> Iterator[User]:
    """A second browser, with a profile of its own on disk: one of a test is a private window, which gets no pushes."""
    with driver.profile(DESKTOP, tmp_path / "phone", flags=service.flags, **PHONE) as context:
        context.grant_permissions(["notifications"], origin=gateway.url)
        context.add_init_script(service.page_script)
        with User(context, gateway) as found:
            yield found


def test_show_a_blocked_card_reaches_a_phone_whose_tab_is_closed_and_the_answer_goes_on(
    user: User, phone: User, service: ChromiumPush
) -> None:
    gateway = user.gateway
    phone.open("/settings/notifications")
    box = phone.page.get_by_role("checkbox", name="Notify me on this device")
    box.click()
    expect(box).to_be_checked()
    expect(phone.page.get_by_role("button", name="Send a test", exact=True)).to_be_visible()
    (worker,) = phone.context.service_workers
    worker.evaluate(RECORDED)
    worker.evaluate(OPENS)
    blank = phone.tab()
    phone.close_tab()
    phone.page = blank
    card = gateway.command("POST", "/v1/cards", {"title": "Ship it", "body": "block which one?", "profile": "demo"})
    user.close_tab()
    phone.until(lambda: bool(worker.evaluate("self.shown")), "it is shown")
    (shown,) = worker.evaluate("self.shown")
    to = f"/board/default/{label(gateway, card['card'])}"
    assert (shown["tag"], shown["to"], "is blocked" in shown["body"]) == (f"card/{card['card']}", to, True)
    assert all(b"Ship it" not in body for body in service.pushed), "only the browser can read it"
    assert worker.evaluate(PRESSED, [shown["tag"], ""]) == "done"
    assert worker.evaluate("self.opened") == [to]
    assert worker.evaluate("self.shown") == []
    phone.open(to)
    phone.page.get_by_label("Answer or comment").fill("complete the first one")
    phone.page.get_by_role("button", name="Unblock and continue").tap()
    phone.until(lambda: gateway.get(f"/v1/cards/{card['card']}")["card"]["status"] == "done", "it is done")
