"""Resets, what still runs, stale commands, a shorter context: asked for, shown and undone in the browser."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from holdfast.config import Home
from holdfast.domain.events import session_stream
from holdfast.domain.events.chapter import ChapterOpened, Survivor
from holdfast.domain.events.session import SessionCreated
from holdfast.store.contract import Append, Write
from holdfast.store.sqlite.store import SqliteStore
from tests.actors import person
from tests.e2e.gateway import GatewayProcess
from tests.web.conftest import settled
from tests.web.user import User

AWAY = "ab" * 8


async def reset_while_away(home: Path) -> None:
    """A rule opened a chapter last night."""
    place = Home(home)
    place.prepare()
    store = SqliteStore(place.database)
    opened = ChapterOpened(
        chapter=2,
        rule="idle",
        reason="no user activity for 2 h (idle_minutes = 120)",
        by=person("the reset rule"),
        stopped=[
            Survivor(
                task="cd" * 8,
                title="make watch",
                pid=7,
                activity="idle",
                evidence="",
                age_ms=60_000,
                rule="its lifetime is the chapter",
            )
        ],
        hand_over="The **golden** files are done.",
        hand_over_from="model",
    )
    created = SessionCreated(session=AWAY, profile="demo", cwd="/", title="Left alone", by=person("cli"))
    await store.append(Append((Write(session_stream(AWAY), (created, opened)),), time.time_ns() // 1_000_000))
    await store.close()


@pytest.fixture(scope="module")
def with_resets(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[GatewayProcess]:
    home = settled(tmp_path_factory.mktemp("chapters") / "home")
    with ThreadPoolExecutor(1) as beside:  # the browser's own loop runs in this thread
        beside.submit(asyncio.run, reset_while_away(home)).result()
    with GatewayProcess(home) as process:
        yield process.start()


@pytest.fixture
def visitor(browser: Browser, with_resets: GatewayProcess) -> Iterator[User]:
    with User(browser, with_resets) as found:
        yield found


def menu(user: User, entry: str) -> None:
    user.page.locator("main section [data-bar]").get_by_role("button", name=re.compile("^Session menu")).click()
    user.page.get_by_role("menuitem", name=entry, exact=True).click()


def background(user: User, name: str) -> str:
    body = {"shell": "sleep 300", "name": name, "session": user.session, "lifetime": "session"}
    return str(user.gateway.command("POST", "/v1/tasks", body)["task"])


def state_of(user: User, task: str) -> str:
    return str(user.gateway.get(f"/v1/tasks/{task}")["state"])


def said(user: User, text: str) -> None:
    done = len(user.events("TurnFinished"))
    user.send(text)
    user.finished(done + 1)


def test_a_reset_asks_what_becomes_of_what_runs_and_is_undone(visitor: User) -> None:
    visitor.begin()
    said(visitor, "say before")
    task = background(visitor, "a server " + "with-a-very-long-name" * 6)
    menu(visitor, "Reset…")
    dialog = visitor.page.get_by_role("dialog", name=re.compile("^Reset"))
    expect(dialog.get_by_text("1 task still runs here")).to_be_visible()
    assert dialog.evaluate("box => box.scrollWidth <= box.clientWidth"), "nothing sticks out of it"
    expect(dialog).to_contain_text("a server")
    go = dialog.get_by_role("button", name=re.compile("^Reset"))
    expect(go).to_be_disabled()  # somebody has to choose
    dialog.get_by_label(re.compile("^Keep them")).check()
    go.click()
    divider = visitor.page.locator('[data-kind="chapter"]')
    expect(divider).to_contain_text("Chapter 2")
    expect(divider).to_contain_text("reset by you")
    expect(divider.get_by_role("link", name="a server")).to_have_attribute("href", f"/tasks/{task}")
    assert state_of(visitor, task) == "running"
    divider.get_by_role("button", name="Undo").click()
    expect(divider).to_contain_text("undone")
    expect(divider.get_by_role("button", name="Undo")).to_have_count(0)
    visitor.sees("Chapter 2 was undone by you")
    menu(visitor, "Reset…")
    dialog.get_by_label("Stop them with the old chapter").check()
    dialog.get_by_role("button", name="Reset and stop 1 task").click()
    expect(visitor.page.locator('[data-kind="chapter"]').last).to_contain_text("Stopped with the old chapter")
    visitor.until(lambda: state_of(visitor, task) == "stopped", "it is stopped")


def test_archive_and_delete_ask_too(visitor: User) -> None:
    visitor.begin()
    said(visitor, "say hello")
    task = background(visitor, "one that runs")
    menu(visitor, "Archive")
    dialog = visitor.page.get_by_role("dialog", name=re.compile("^Archive"))
    expect(dialog).to_contain_text("one that runs")
    dialog.get_by_role("button", name="Cancel").click()
    assert not visitor.gateway.get(f"/v1/sessions/{visitor.session}")["session"]["archived"]
    menu(visitor, "Delete")
    dialog = visitor.page.get_by_role("dialog", name=re.compile("^Delete"))
    dialog.get_by_label("Stop them").check()
    dialog.get_by_role("button", name="Delete 1 session and stop 1 task").click()
    visitor.page.wait_for_url("**/s")
    visitor.until(lambda: state_of(visitor, task) == "stopped", "it is stopped")


def test_when_it_is_reset_is_shown_and_chosen(visitor: User) -> None:
    visitor.begin()
    said(visitor, "say hello")
    menu(visitor, "When it is reset…")
    dialog = visitor.page.get_by_role("dialog", name="When this session is reset")
    expect(dialog.locator("dl > div", has_text="Resets")).to_contain_text("Never automatically")
    expect(dialog.locator("dl > div", has_text="Resets")).to_contain_text("by default")
    dialog.get_by_label("Mode").select_option("idle")
    dialog.get_by_label("Idle minutes").fill("90")
    dialog.get_by_role("button", name="Save").click()
    expect(visitor.page.locator("[data-context]", has_text="Reset in 1 h")).to_be_visible()
    visitor.sees(
        "The reset rules of this session were set by you: reset when idle, idle after 90 min without a message"
    )
    menu(visitor, "When it is reset…")
    expect(dialog.locator("dl > div", has_text="Idle")).to_contain_text("chosen for this session")


def test_who_comes_back_is_told_of_a_reset(visitor: User) -> None:
    visitor.open(f"/s/{AWAY}")
    notice = visitor.page.locator('[data-banner="reset"]')
    expect(notice).to_contain_text("no user activity for 2 h")
    divider = visitor.page.locator('[data-kind="chapter"]')
    expect(divider).to_contain_text("make watch")
    divider.get_by_role("button", name="Hand-over note of the agent").click()
    expect(divider.locator("strong", has_text="golden")).to_be_visible()
    notice.get_by_role("button", name="Dismiss").click()
    visitor.page.reload()
    expect(divider).to_be_visible()
    expect(notice).to_have_count(0)
    divider.get_by_role("button", name="Undo").click()
    expect(divider).to_contain_text("undone")


def row(place: Locator, name: str) -> Locator:
    return place.locator("[data-why]", has_text=name)


def test_a_stale_command_is_named_and_stopped(user: User) -> None:
    """In a gateway of its own: what other tests leave running may be stale too."""
    user.begin()
    said(user, "say hello")
    task, other = background(user, "an old watcher"), background(user, "another one")
    user.gateway.command("POST", f"/v1/sessions/{user.session}/archive", {"running": "keep"})
    user.until(lambda: len(user.gateway.get("/v1/tasks/stale")["tasks"]) == 2, "they are stale")
    user.open("/home")
    panel = user.page.get_by_label("Stale commands")
    expect(row(panel, "an old watcher")).to_contain_text("its session is archived")
    user.open(f"/tasks/{task}")
    expect(user.page.locator("[data-bar] [data-chip]", has_text="Stale")).to_be_visible()
    expect(user.page.get_by_label("About this task")).to_contain_text("its session is archived")
    user.open("/tasks")
    expect(user.page.get_by_text("2 commands are still running, although nothing waits for them.")).to_be_visible()
    user.page.get_by_role("link", name="Look at them").click()
    panel.get_by_role("button", name="Stop an old watcher").click()
    expect(row(panel, "an old watcher")).to_have_count(0)
    user.until(lambda: state_of(user, task) == "stopped", "it is stopped")
    assert state_of(user, other) == "running"
    third = background(user, "a third")
    user.until(lambda: len(user.gateway.get("/v1/tasks/stale")["tasks"]) == 2, "they are stale")
    user.page.reload()
    panel.get_by_role("button", name="Stop all 2").click()
    user.page.get_by_role("dialog").get_by_role("button", name="Stop 2").click()
    expect(panel).to_have_count(0)
    user.until(lambda: {state_of(user, one) for one in (other, third)} == {"stopped"}, "all are")


def test_compact_now(visitor: User) -> None:
    visitor.begin()
    for number in range(5):
        said(visitor, f"say answer {number}")
    visitor.page.locator("button[data-context]").click()
    dialog = visitor.page.get_by_role("dialog", name="Compact now")
    expect(dialog).to_contain_text("from 100k on, when the session rests")
    dialog.get_by_role("textbox").fill("keep the numbers")
    dialog.get_by_role("button", name="Compact now").click()
    line = visitor.page.locator("article[data-kind]", has_text="replaces the turns up to")
    expect(line).to_contain_text(re.compile(r"[\d,]+ → [\d,]+ tokens"))
    line.get_by_role("button", name=re.compile("The summary|The digest")).click()
    expect(line.locator("[data-folded]")).to_be_visible()
    visitor.sees("keep the numbers")
    assert len(visitor.events("SummaryWritten")) == 1
