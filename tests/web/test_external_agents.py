"""Sessions of external agents: their plan, their permissions, their doubts, and what they cannot do."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.agents import end_agents
from tests.e2e.gateway import GatewayProcess
from tests.web.checks import check_axe, check_layout
from tests.web.conftest import settled
from tests.web.user import User

AGENT = Path(__file__).parents[1] / "agents" / "scripted_agent.py"


@pytest.fixture
def outsider(browser: Browser, tmp_path: Path) -> Iterator[User]:
    """Somebody in front of a gateway whose profile `outsider` is an agent that forgets when its process ends."""
    home = settled(tmp_path / "home")
    argv = [sys.executable, "-I", "-S", str(AGENT), f"memory={tmp_path}", "amnesia"]
    with (home / "config.toml").open("a") as config:
        config.write(f"\n[profiles.outsider]\nargv = {argv!r}\nenv = []\n".replace("'", '"'))
    with GatewayProcess(home) as gateway, User(browser, gateway.start()) as user:
        yield user
        end_agents(gateway)


def test_an_external_agent_plans_asks_and_may_forget(outsider: User, tmp_path: Path) -> None:
    page = outsider.page
    outsider.begin("outsider")
    outsider.send("Do it.\n!plan Read it;Write it\n!ask c1 make all\n!say Done with it.")
    expect(page.locator("[data-plan=pending]")).to_have_text(["○Read it, to do", "○Write it, to do"])
    wait = page.get_by_role("group", name="Approval")
    expect(wait).to_contain_text("Allow make all?")
    expect(page.locator("article", has_text=re.compile(r"^outsider.*\d s$"))).to_have_count(
        0
    )  # it waits, it does not work
    assert check_layout(page) == []
    wait.get_by_role("button", name="always", exact=True).click()
    outsider.sees("Done with it.")
    outsider.finished(1)
    expect(page.get_by_role("button", name="Answer again")).to_have_count(0)
    expect(page.locator("[data-context]")).to_have_count(0)
    page.get_by_role("region", name="Conversation").get_by_role("button", name=re.compile("^Session menu of")).click()
    expect(page.get_by_role("menuitem", name="Fork")).to_be_visible()
    expect(page.get_by_role("menuitem", name=re.compile("Compact|Undo"))).to_have_count(0)
    page.keyboard.press("Escape")

    outsider.send(f"!once {tmp_path / 'died'} die 3\n!say Here again.")
    outsider.sees("Here again.")
    notice = page.locator("article", has_text="It may not know the conversation")
    expect(notice).to_be_visible()
    kinds = page.locator("article").all_inner_texts()
    doubt = next(index for index, text in enumerate(kinds) if "It may not know" in text)
    assert doubt < next(index for index, text in enumerate(kinds) if "Here again." in text and "!say" not in text)
    assert check_axe(page) == []

    outsider.open("/settings/profiles")
    expect(page.get_by_text("outsider · external agent · from config.toml")).to_be_visible()
    outsider.open("/new")
    page.get_by_role("combobox", name=re.compile("^Profile")).select_option("outsider")
    expect(page.get_by_text("An external agent with tools and rules of its own.")).to_be_visible()
    expect(page.get_by_label("Model")).to_have_count(0)
    outsider.open("/tasks")
    expect(page.get_by_role("row", name=re.compile("outsider")).first).to_contain_text("agent of Do it.")
