"""Long lists: all of 5,000 sessions and 600 tasks can be reached and found, and few of them are rendered."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from holdfast.config import Home
from holdfast.domain.events import session_stream, task_stream
from holdfast.domain.events.session import SessionCreated
from holdfast.domain.events.task import CommandExited, TaskFinished, TaskStarted
from holdfast.store.contract import Append, Write
from holdfast.store.sqlite.store import SqliteStore
from tests.actors import person
from tests.e2e.gateway import GatewayProcess
from tests.web.conftest import settled
from tests.web.user import User

SESSIONS, TASKS, AT_ONCE = 5_000, 600, 100
FEW = 150
"""Rows of a screen, one above and one below it."""
LIST, ROW = 'nav[aria-label="Sessions"]', "a[data-row-link]"
TO_THE_END = "box => { box.scrollTop = box.scrollHeight; return box.scrollTop }"
BY_A_SCREEN = "box => { box.scrollTop += box.clientHeight; return box.scrollTop }"


def id_of(number: int) -> str:
    """Of those of the same moment the last one is the first of the list."""
    return f"{10_000 - number:016x}"


async def fill(home: Path) -> None:
    """What years of work leave behind, without the years."""
    now = time.time_ns() // 1_000_000
    place = Home(home)
    place.prepare()
    store = SqliteStore(place.database)
    for start in range(0, SESSIONS, AT_ONCE):
        writes = []
        for number in range(start, start + AT_ONCE):
            id, title = id_of(number), f"Session {number}" if number != 4321 else "Größe des Ankers"
            created = SessionCreated(session=id, profile="demo", cwd="/", title=title, by=person("cli"))
            writes.append(Write(session_stream(id), (created,)))
        await store.append(Append(tuple(writes), now - (SESSIONS - start) * 60_000))
    for start in range(0, TASKS, AT_ONCE):
        writes = []
        for number in range(start, start + AT_ONCE):
            id = id_of(number)
            started = TaskStarted(
                task=id,
                task_kind="process",
                title=f"make part-{number}",
                command=f"make part-{number}",
                cwd="/",
                by=person("cli"),
            )
            ended = TaskFinished(
                task=id, outcome="failed" if number == 7 else "done", reason="exit code 0", end=CommandExited(code=0)
            )
            writes.append(Write(task_stream(id), (started, ended)))
        await store.append(Append(tuple(writes), now - (TASKS - start) * 60_000))
    await store.close()


@pytest.fixture(scope="module")
def years(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[GatewayProcess]:
    home = settled(tmp_path_factory.mktemp("years") / "home")
    with ThreadPoolExecutor(1) as beside:  # the browser's own loop runs in this thread
        beside.submit(asyncio.run, fill(home)).result()
    with GatewayProcess(home) as process:
        yield process.start()


def scroll_until(user: User, box: str, text: str, rows: str, how: str = TO_THE_END) -> int:
    """Scroll to the end again and again, until something is there; how many rows were rendered at most."""
    most = 0

    def reached() -> bool:
        nonlocal most
        most = max(most, user.page.locator(rows).count())
        if user.page.get_by_text(text, exact=True).count():
            return True
        user.page.locator(box).evaluate(how)
        return False

    user.until(reached, f"{text} is reached")
    return most


def test_every_session_is_reached_and_found(browser: Browser, years: GatewayProcess) -> None:
    with User(browser, years) as user:
        page = user.page
        user.open("/s")
        expect(page.get_by_text("Session 4999", exact=True)).to_be_visible()
        assert scroll_until(user, LIST, "Session 0", ROW) < FEW
        new = years.command("POST", "/v1/sessions", {"title": "Made meanwhile"})["session"]
        expect(page.get_by_text("Session 0", exact=True)).to_be_visible()  # what is read does not move
        page.locator(LIST).evaluate("box => box.scrollTop = 0")
        expect(page.get_by_text("Made meanwhile")).to_be_visible()
        years.command("DELETE", f"/v1/sessions/{new}")
        expect(page.get_by_text("Made meanwhile")).to_have_count(0)
        page.get_by_label("Search titles and text").fill("GRÖSSE DES")
        expect(page.get_by_text("Größe des Ankers")).to_be_visible()
        expect(page.locator(ROW)).to_have_count(1)
        page.keyboard.press("Control+k")
        page.get_by_role("combobox").fill("session 1234")
        expect(page.get_by_role("option", name="Session 1234")).to_be_visible()
        expect(page.locator("[role=option][data-highlighted]")).to_have_text(re.compile("Session 1234"))
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/s/{id_of(1234)}")


def test_a_session_far_down_that_is_renamed_or_pinned(browser: Browser, years: GatewayProcess) -> None:
    with User(browser, years) as user:
        page = user.page
        user.open("/s")
        expect(page.get_by_text("Session 4998", exact=True)).to_be_visible()
        scroll_until(user, LIST, "Session 4600", ROW, BY_A_SCREEN)
        years.command("PATCH", f"/v1/sessions/{id_of(4600)}", {"title": "Another title"})
        expect(page.get_by_text("Another title")).to_be_visible()
        years.command("POST", f"/v1/sessions/{id_of(4600)}/pin", {"pinned": True})
        page.locator(LIST).evaluate("box => box.scrollTop = 0")
        expect(page.get_by_text("Pinned", exact=True)).to_be_visible()
        expect(page.locator(ROW).first).to_contain_text("Another title")
        years.command("POST", f"/v1/sessions/{id_of(4600)}/pin", {"pinned": False})
        expect(page.get_by_text("Pinned", exact=True)).to_have_count(0)


def test_every_task_is_reached_and_found(browser: Browser, years: GatewayProcess) -> None:
    with User(browser, years) as user:
        page = user.page
        user.open("/tasks")
        expect(page.get_by_text("make part-599", exact=True)).to_be_visible()
        expect(page.get_by_text(f"{TASKS} tasks")).to_be_visible()
        assert scroll_until(user, "[aria-label=Tasks][role=region]", "make part-0", "tbody tr") < FEW
        page.get_by_role("button", name="Failed 1").click()
        expect(page.locator("td [data-row-link]")).to_have_text(["make part-7"])
        page.get_by_role("button", name="All", exact=True).click()
        page.get_by_label("Search commands, prompts and output").fill("part-123")
        expect(page.locator("td [data-row-link]")).to_have_text(["make part-123"])
        page.get_by_label("Search commands, prompts and output").fill("")
        started = years.command("POST", "/v1/tasks", {"shell": "sleep 300", "name": "one more"})["task"]
        expect(page.get_by_text("Open 1")).to_be_visible()
        expect(page.get_by_text("one more")).to_be_visible()
        years.command("POST", f"/v1/tasks/{started}/stop", {"force": True})
        expect(page.get_by_text("Open 1")).to_have_count(0)
        expect(page.locator("tr", has_text="one more")).to_contain_text("Stopped")
