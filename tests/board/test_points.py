"""A crash, a doubt and a refusal at every write of a card's life: claim, start, block, unblock, complete.

In the gate at every second one; another seed takes the others.

The points are found by counting the writes of the store. After each the gateway is started again, the client says
again what was not acknowledged, and the same two runs come to the same end.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.domain.commands import CommentCard, UnblockCard
from holdfast.domain.errors import Unavailable
from holdfast.domain.events import session_stream
from holdfast.domain.events.card import CardBlocked, CardCompleted, RunFinished, RunStarted
from holdfast.domain.events.session import NoteReceived, ToolCallFinished
from holdfast.domain.history import UserMessage
from holdfast.store.reads import SessionCursor, TaskFilter
from tests.board.history import check_card
from tests.board.rig import BoardRig
from tests.eventually import PATIENCE
from tests.memory import MEMORY
from tests.rig import QUICK_DISK
from tests.runtime.mortal import Fault, How, Killed, mortal_store
from tests.seed import new_seed
from tests.store.rebuilt import check_integrity, check_projections

pytestmark = pytest.mark.usefixtures("each_engine")
CARD, FOLLOWER = "c0ffee01", "f" * 16
BODY = "write a.txt one\nblock which colour?"
ANSWER = "read a.txt\ncomplete it is blue"
SAVED = 3
"""So many writes may come or not: how often the text so far is saved is a matter of time."""
EVERY = [2, pytest.param(1, marks=pytest.mark.proof)]
CONFIG = "[resume]\nattempts = 1000\n"


@pytest.fixture
def homes() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        yield Path(directory)


class Life:
    """One home that goes through it all, with one fault."""

    def __init__(self, home: Path, fault: Fault | None) -> None:
        self.home = home
        self.fault = fault
        self.writes = 0
        self.struck = False

    async def streaming(self) -> bool:
        """Whether the fault was reached."""
        while not await self._until_it_dies():
            pass
        await self._judge()
        return self.struck

    async def _until_it_dies(self) -> bool:
        store = mortal_store(self.home / "holdfast.db", self.fault)
        rig = BoardRig(self.home, store=store, config=CONFIG, timings=QUICK_DISK)
        client = asyncio.create_task(self._client(rig))
        death = asyncio.create_task(store.died.wait())
        await asyncio.wait({client, death}, return_when=asyncio.FIRST_COMPLETED)
        if not store.died.is_set():
            await client
        for task in (client, death):
            task.cancel()
        await asyncio.gather(client, death, return_exceptions=True)
        with suppress(Killed):
            await rig.close()
        if store.struck:
            self.struck, self.fault = True, None
        self.writes += store.writes
        return not store.died.is_set()

    async def _client(self, rig: BoardRig) -> None:
        with suppress(Killed):
            await rig.start()
            await _insist(lambda: self._follow(rig))
            await _insist(lambda: rig.create(CARD, BODY, id="create", session=FOLLOWER))
            await self._until(rig, "blocked", "done")
            await _insist(lambda: rig.tell(CARD, CommentCard(text="say I listen"), id="comment"))
            await _insist(lambda: rig.tell(CARD, UnblockCard(text=ANSWER), id="unblock"))
            await self._until(rig, "done")
            for run in (await rig.card(CARD)).runs:
                await rig.rest(run.started.session)

    async def _follow(self, rig: BoardRig) -> None:
        if not (await rig.sessions.get(FOLLOWER)).exists:
            await rig.new_session(FOLLOWER)

    async def _until(self, rig: BoardRig, *statuses: str) -> None:
        """A refusal is made good at the next look, and the sweep is slow."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while (await rig.card(CARD)).status not in statuses:
            assert asyncio.get_running_loop().time() < deadline, await rig.events(CARD)
            with suppress(Unavailable):
                await rig.look()
            await asyncio.sleep(0.05)

    async def _judge(self) -> None:
        rig = BoardRig(self.home)
        records = await rig.records(CARD)
        card = check_card(records)
        events = [record.event for record in records]
        assert [e.resumed_run for e in events if isinstance(e, RunStarted)] == [0, 1], "a crash begins no other run"
        assert [(e.outcome, e.uses_attempt) for e in events if isinstance(e, RunFinished)] == [
            ("blocked", False),
            ("done", False),
        ]
        assert sum(isinstance(e, CardBlocked) for e in events) == sum(isinstance(e, CardCompleted) for e in events) == 1
        session = await rig.sessions.get(card.runs[0].started.session)
        assert (session.run, session.queue, session.turn) == (0, (), None)
        heard = [message.text for message in session.messages if isinstance(message, UserMessage)]
        assert heard == [BODY, f"[ann wrote:]\nsay I listen\n[ann wrote:]\n{ANSWER}"]
        calls = [record.event for record in await rig.store.load(session_stream(session.id), after=0)]
        done = [(e.tool, e.outcome) for e in calls if isinstance(e, ToolCallFinished)]
        assert done == [(t, "done") for t in ("write", "kanban_block", "read", "kanban_complete")]
        told = [record.event for record in await rig.store.load(session_stream(FOLLOWER), after=0)]
        assert [event.text for event in told if isinstance(event, NoteReceived)] == [
            f"Card HF-1 (card {CARD}) is blocked (needs input): which colour?",
            f"Card HF-1 (card {CARD}) is done: it is blue",
        ]
        runs = await rig.store.tasks(TaskFilter(kind="card"), before=SessionCursor(), limit=10)
        tasks = {row.id: row.state for row in runs}
        assert tasks == {card.runs[0].started.task: "stopped", card.runs[1].started.task: "done"}
        assert await rig.store.running_tasks() == []
        await rig.close()
        check_projections(self.home / "holdfast.db")
        check_integrity(self.home / "holdfast.db")


async def _insist(tell: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await tell()
        except Unavailable:
            await asyncio.sleep(0.05)
        else:
            return


async def at_every_write(homes: Path, how: How, *, every: int) -> int:
    undisturbed = Life(homes / "undisturbed", None)
    (homes / "undisturbed").mkdir()
    await undisturbed.streaming()
    few, reached = asyncio.Semaphore(8), 0

    async def one(at: int) -> None:
        nonlocal reached
        home = homes / str(at)
        home.mkdir()
        async with few:
            struck = await Life(home, Fault(at, how)).streaming()
        reached += struck

    points = range(1 + new_seed() % every, undisturbed.writes + 1, every)
    await asyncio.gather(*map(one, points))
    assert len(points) - SAVED <= reached <= len(points)
    return reached


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("how", ["before", "after"])
async def test_promise_1_a_crash_before_or_after_any_write_of_a_cards_life(how: How, every: int, homes: Path) -> None:
    points = await at_every_write(homes, how, every=every)
    print(f"{points} crashes {how} a write: two runs, one end, every word heard once")
    assert points >= 20 // every


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("how", ["doubt", "refuse"])
async def test_a_disk_that_refuses_or_does_not_say_doubles_nothing(how: How, every: int, homes: Path) -> None:
    points = await at_every_write(homes, how, every=every)
    print(f"{points} writes in {how}")
    assert points >= 20 // every
