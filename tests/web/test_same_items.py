"""The dashboard shows the same items as the terminal and the export: tests/chat/test_same_items.py has the others."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, expect

from holdfast.config import Home
from holdfast.domain.events import Record
from holdfast.domain.transcript_items import AnyItem, ChapterItem, NoteItem, StepItem, ToolCallView, WaitItem
from holdfast.store.contract import Append, Write
from holdfast.store.sqlite.store import SqliteStore
from tests.chat.test_same_items import NAME, check, words
from tests.domain.test_transcript import load
from tests.e2e.gateway import GatewayProcess
from tests.web.conftest import settled
from tests.web.user import User

RECORDS = [msgspec.convert(piece, Record) for piece in load(NAME)["input"] if "event" in piece]
SCREENS = """async (log) => {
  const seen = new Map();
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  log.scrollTop = 0;
  for (let last = -1; log.scrollTop !== last; ) {
    await frame();
    for (const one of log.querySelectorAll("article")) seen.set(one.id || one.textContent, one.textContent);
    last = log.scrollTop;
    log.scrollTop += log.clientHeight / 2;
    await frame();
  }
  return [...seen.values()];
}"""


def words_of_page(item: AnyItem) -> list[str]:
    """What the page says in its own words: buttons, labels and facts instead of sentences."""
    match item:
        case StepItem():
            return [*item.text.split("\n"), *(word for call in item.calls for word in call_words(call))]
        case WaitItem(answer=answer) if answer is not None and item.purpose == "approval":
            return [item.reason, {"deny": "Refuse"}[answer.answer], answer.note]
        case ChapterItem():
            return [f"Chapter {item.chapter}", *(one.title for one in [*item.kept, *item.stopped])]
        case NoteItem():
            return item.text.split("\n")[:1]  # the rest is in the task, to which there is a link
        case _:
            return words(item)


def call_words(call: ToolCallView) -> list[str]:
    subject = json.loads(call.arguments)
    shown = subject.get("command") or subject.get("path") or call.tool
    name = "" if "command" in subject else call.tool
    return [f"{call.state.capitalize()}{name}", shown, *([f"exit code {call.exit_code}"] if call.exit_code else [])]


async def store_records(home: Path) -> None:
    """As if it had just happened, so that no rule resets the session."""
    place = Home(home)
    place.prepare()
    store = SqliteStore(place.database)
    later = time.time_ns() // 1_000_000 - RECORDS[-1].at
    for record in RECORDS:
        await store.append(Append((Write(record.stream, (record.event,)),), record.at + later))
    await store.close()


@pytest.fixture
def gateway(tmp_path: Path, browser: Browser) -> Iterator[GatewayProcess]:
    home = settled(tmp_path / "home")
    with ThreadPoolExecutor(1) as beside:  # the browser's own loop runs in this thread
        beside.submit(asyncio.run, store_records(home)).result()
    with GatewayProcess(home) as process:
        yield process.start()


def test_the_dashboard_shows_every_item(user: User) -> None:
    user.open("/" + RECORDS[0].stream.replace("session/", "s/"))
    log = user.page.get_by_role("log")
    expect(log).to_contain_text("Restored by you")
    shown = log.evaluate(SCREENS)
    check("\n".join(shown).replace(" by you", " by api"), words=words_of_page)  # the person who reads it wrote it
