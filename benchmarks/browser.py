"""The dashboard in headless Chromium: a long session painted, an answer streamed, and what a hundred tabs cost.

Where there is no chromium, or the dashboard is not built, it says so and measures nothing.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from benchmarks.children import gateway, megabytes, python, upgrade
from benchmarks.measure import Figure, Plan, alternate
from benchmarks.report import Goal, Line, Report
from benchmarks.workload import Workload, fill, opened, rest
from holdfast.config import Home
from holdfast.domain.events.session import ModelResponded
from holdfast.gateway.dashboard_files import STATIC

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page

AREA = "browser"
CHROMIUM = Path("/usr/bin/chromium")
EVENTS = 10_000
TABS, AT_ONCE = 100, 10
WORDS_A_SECOND = 60
SETTLE_SECONDS = 1.5
PATIENCE_SECONDS = 120
WATCH = """
(() => {
  const wanted = new URLSearchParams(location.search).get("bench");
  if (!wanted) return;
  const there = () => wanted === "message" ? document.querySelector("[aria-label=Message]")
    : [...document.querySelectorAll(".entry")].slice(-3).some((entry) => entry.textContent.includes(wanted));
  window.painted = new Promise((tell) => {
    const watch = new MutationObserver(() => {
      if (!there()) return;
      watch.disconnect();
      requestAnimationFrame(() => requestAnimationFrame(() => tell(performance.now())));
    });
    watch.observe(document, { childList: true, subtree: true, characterData: true });
  });
})();
"""
"""The second frame after it is in the document: then it has been painted."""


@dataclass(frozen=True, slots=True)
class Door:
    """The gateway from the outside."""

    pid: int
    port: int
    token: str

    def ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Authorization": f"Bearer {self.token}"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    if not CHROMIUM.exists():
        report.note(f"browser is left out: {CHROMIUM} is missing (apt-get install chromium)")
        return
    if not (STATIC / "index.html").exists():
        report.note("browser is left out: the dashboard is not built (make web)")
        return
    home, work = Home(plan.scratch / "browser"), Workload(plan.seed)
    long, empty = work.id(8), work.id(8)
    async with opened(home.path) as store:
        events = list(islice(work.turns(tools=True), EVENTS - 1))
        await fill(store, long, events)
        await fill(store, empty, ())
        await rest(store)
    last = [event.text for event in events if isinstance(event, ModelResponded)][-1][:40]
    with gateway(home) as (pid, port):
        door = Door(pid, port, home.token.read_text().strip())
        _tabs(report, door, long)
        async with signed_in(door) as context:
            await _paint(plan, report, context, door, {long: last, empty: "message"})
            await _speak(plan, report, context, door)


@asynccontextmanager
async def signed_in(door: Door) -> AsyncIterator[BrowserContext]:
    """A browser with a cookie, and its cache warm."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(CHROMIUM))
        context = await browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(PATIENCE_SECONDS * 1000)
        page = await context.new_page()
        await page.goto(f"{door.url}/#code={door.ask('POST', '/v1/codes')['code']}")
        await page.wait_for_url("**/home")
        await page.close()
        await context.add_init_script(WATCH)
        yield context
        await browser.close()


# --- a long session -------------------------------------------------------------------------------


async def _paint(plan: Plan, report: Report, context: BrowserContext, door: Door, wanted: dict[str, str]) -> None:
    """`wanted` is what shows that a session is painted: of the long one, then of the empty one."""
    long, empty = wanted

    def painting(session: str) -> Figure:
        async def seconds() -> float:
            page = await context.new_page()
            await page.goto(f"{door.url}/s/{session}?bench={quote(wanted[session])}", wait_until="commit")
            async with asyncio.timeout(PATIENCE_SECONDS):
                found = float(await page.evaluate("window.painted"))
            await page.close()
            return found / 1000

        return seconds

    page = await context.new_page()
    await page.goto(f"{door.url}/settings")

    async def fetched() -> float:
        ask = """async (path) => {
          const began = performance.now();
          await (await fetch(path)).arrayBuffer();
          return performance.now() - began;
        }"""
        return float(await page.evaluate(ask, f"/v1/sessions/{long}/export?format=jsonl")) / 1000

    ours, rounds = painting(long), plan.rounds(20)
    blank = await alternate(ours, painting(empty), rounds)
    report.add(blank.line(AREA, f"first paint of {EVENTS:,} events, beside an empty session", "s"))
    raw = await alternate(ours, fetched, rounds)
    report.add(raw.line(AREA, f"first paint of {EVENTS:,} events, beside a fetch of the same bytes", "s"))
    await page.close()


# --- an answer that is spoken -----------------------------------------------------------------------


async def _speak(plan: Plan, report: Report, context: BrowserContext, door: Door) -> None:
    seconds, work = 20 if plan.quick else 180, Workload(plan.seed)
    words = " ".join(work.text() for _ in range(seconds * 2)).split()
    pieces = [words[at : at + WORDS_A_SECOND] for at in range(0, seconds * WORDS_A_SECOND, WORDS_A_SECOND)]
    text = "\n".join(f"slow 1 {' '.join(piece)}" for piece in pieces)
    session = str(door.ask("POST", "/v1/sessions", {"profile": "demo"})["session"])
    page = await context.new_page()
    await page.goto(f"{door.url}/s/{session}")
    await page.get_by_label("Message", exact=True).wait_for()
    memory = await context.new_cdp_session(page)
    door.ask("POST", f"/v1/sessions/{session}/messages", {"text": text})
    await page.locator(".entry.live").first.wait_for()
    before = await heap(memory)
    samples = [before]
    while door.ask("GET", f"/v1/sessions/{session}")["session"]["state"] != "idle":
        await page.wait_for_timeout(1_000)
        samples.append(await used(memory))
    await _shown(page, pieces[-1])
    after = await heap(memory)
    name = f"{WORDS_A_SECOND} words a second for {seconds} s, the heap"
    ours = f"{before:.1f} to {after:.1f} MB, at most {max(samples):.1f}"
    report.add(Line(AREA, f"{name} grows by", ours, "", after - before, " MB"))
    await page.close()


async def _shown(page: Page, words: list[str]) -> None:
    await page.locator(".entry:not(:has(> .knot.you))", has_text=" ".join(words)).first.wait_for()


async def heap(memory: CDPSession) -> float:
    """The JavaScript heap without what nobody holds, in MB."""
    for _ in range(3):
        await memory.send("HeapProfiler.collectGarbage")
    return await used(memory)


async def used(memory: CDPSession) -> float:
    """The JavaScript heap as it is, in MB."""
    return float((await memory.send("Runtime.getHeapUsage"))["usedSize"]) / 1024**2


# --- a hundred tabs -------------------------------------------------------------------------------


def _tabs(report: Report, door: Door, session: str) -> None:
    """A tab is two sockets: the session from its beginning, and the whole log from now on."""
    events = int(door.ask("GET", "/v1/status")["events"])
    of_session = upgrade(door.port, door.token, f"/v1/sessions/{session}/events?after=0")
    of_log = upgrade(door.port, door.token, f"/v1/events?after={events}")
    with ExitStack() as stack:

        def open_tabs(count: int) -> None:
            sessions, logs = stack.enter_context(python("reader")), stack.enter_context(python("reader"))
            sessions.ask(open=count, port=door.port, request=of_session)
            sessions.ask(**{"await": f'"cursor":{EVENTS}}}'})
            logs.ask(open=count, port=door.port, request=of_log)

        open_tabs(1)  # what the first one of all costs belongs to the gateway
        time.sleep(SETTLE_SECONDS)
        idle = megabytes(door.pid)
        for _ in range(TABS // AT_ONCE):
            open_tabs(AT_ONCE)
        time.sleep(SETTLE_SECONDS)
        more = megabytes(door.pid) - idle
        ours, goal = f"{idle:.0f} to {idle + more:.0f} MB", Goal("≤", 30, " MB")
        name = f"the gateway with {TABS} tabs more on a session of {EVENTS:,} events (their sockets, no pages)"
        report.add(Line(AREA, name, ours, "", more, " MB", goal))
