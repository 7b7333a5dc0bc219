"""What one node does for all of them, when that node is frozen in the middle of it and wakes up too late.

The other node has the duty by then. The frozen one has asked whether it has it before it was frozen, so it goes on
with what it was about to write: each of these tests lets it, and finds nothing of it in the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from holdfast.domain.commands import CreateCard, CreateSession
from holdfast.domain.errors import LostDuty
from holdfast.domain.events import AnyEvent, session_stream
from holdfast.domain.events.card import CardCreated, RunStarted
from holdfast.domain.events.chapter import ChapterOpened
from holdfast.domain.events.session import SessionArchived
from holdfast.profiles import Profiles
from holdfast.sessions import Caller
from holdfast.store.contract import CommandKey
from holdfast.store.duties import Duty
from holdfast.store.outbox_store import OutboxPlan
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.store import PostgresStore
from holdfast.timings import USUAL, StoreTimings
from tests.actors import person
from tests.eventually import PATIENCE, eventually
from tests.lifecycle.rig import DAY, HOUR
from tests.postgres_server import schemas
from tests.rig import GatewayRig, StoppedClock
from tests.store.conformance import A, created, finished, responded, said, started, write
from tests.store.conformance_outbox import delivery
from tests.store.test_nodes import stop_renewing

LEASE = StoreTimings(lock=PATIENCE, probe=0.05, look=0.05, lease=1.0)
CONFIG = """
[board]
max_running = 1
[session_reset]
mode = "idle"
idle_minutes = 60
hand_over_note = false
[retention]
sessions_archive_days = 1
[notify.webhooks.mine]
url = "https://example.invalid/hook"
"""
NOW = 1_800_000_000_000
SESSION = "5" * 16


class Node(GatewayRig):
    """A gateway that does only what a test tells it."""

    def __init__(self, home: Path, name: str, database: Database) -> None:
        home.mkdir(mode=0o700)
        (home / "config.toml").write_text(CONFIG)
        self.node_store = PostgresStore(database, home / "tasks", LEASE, name)
        profiles = Profiles(home / "config.toml")
        timings = replace(USUAL, store=LEASE)
        super().__init__(home, profiles, store=self.node_store, clock=StoppedClock(NOW), timings=timings)
        self.notify, self.retention = self.gateway.notify, self.gateway.retention

    async def events(self, kind: type[AnyEvent]) -> list[AnyEvent]:
        found, _ = await self.store.load_kinds(frozenset({kind.__name__}), after=0, limit=1000)
        return [record.event for record in found]


class Pair:
    """A node that has all duties and is frozen, and the one that takes them over."""

    def __init__(self, frozen: Node, other: Node) -> None:
        self.frozen, self.other = frozen, other

    async def freeze(self, duty: Duty) -> None:
        """Take a duty, freeze until the other node has it, and wake up in the middle of the work."""
        assert await duty.is_ours()
        await stop_renewing(self.frozen.node_store)
        theirs = Duty(self.other.store, duty._stream.removeprefix("duty/"))
        await eventually(theirs.is_ours)

        async def found_before() -> bool:
            return True

        duty.is_ours = found_before  # type: ignore[method-assign]


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    database = schemas.take()
    async with AsyncExitStack() as closing:
        nodes = []
        for name in ("frozen", "other"):
            nodes.append(Node(tmp_path / name, name, database))
            closing.push_async_callback(nodes[-1].close)
            await nodes[-1].node_store.announce()
        yield Pair(*nodes)
    schemas.give_back(database)


async def make_session(node: Node, id: str = SESSION) -> None:
    """One that nobody works on."""
    await node.sessions.create(CreateSession(), session=id, profile="demo", cwd="/", caller=caller(id))


def pass_time(node: Node, ms: int) -> None:
    node.move_clock(ms)
    node.boot_seconds += ms / 1000
    node.awake_seconds += ms / 1000


def caller(id: str) -> Caller:
    return Caller(CommandKey(id, "d"), person("ann"))


async def test_promise_2_a_frozen_board_starts_no_run(pair: Pair) -> None:
    frozen, other = pair.frozen, pair.other
    for card in ("first", "second"):
        await other.cards.create(CreateCard(title=card, profile="demo"), card=card, caller=caller(card))
    await pair.freeze(frozen.dispatcher._duty)
    await frozen.dispatcher.run_once()
    assert await other.events(RunStarted) == []
    await other.dispatcher.run_once()
    assert [run.node for run in await other.events(RunStarted) if isinstance(run, RunStarted)] == ["other"]
    await frozen.dispatcher.run_once()
    assert len(await other.events(RunStarted)) == 1
    assert len(await other.events(CardCreated)) == 2


async def test_promise_2_a_frozen_reset_clock_resets_nothing(pair: Pair) -> None:
    frozen, other = pair.frozen, pair.other
    await write(other.store, session_stream(A), created(A), said(), started(1, "i"), responded(), finished(), at=NOW)
    await frozen.reset_scheduler.run_once()
    for node in (frozen, other):
        pass_time(node, 2 * HOUR)
    await pair.freeze(frozen.reset_scheduler._duty)
    await frozen.reset_scheduler.run_once()
    assert await other.events(ChapterOpened) == []
    await other.reset_scheduler.run_once()
    assert len(await other.events(ChapterOpened)) == 1


async def test_promise_2_a_frozen_retention_deletes_nothing(pair: Pair) -> None:
    frozen, other = pair.frozen, pair.other
    await make_session(other)
    for node in (frozen, other):
        pass_time(node, 3 * DAY)
    await pair.freeze(frozen.retention._duty)
    with pytest.raises(LostDuty):
        await frozen.retention._apply_all()
    assert await other.events(SessionArchived) == []
    await other.retention._apply_all()
    assert len(await other.events(SessionArchived)) == 1


async def test_promise_2_a_frozen_node_sends_nothing(pair: Pair) -> None:
    """Neither plans nor sends: that somebody was told is written before and after it."""
    frozen, other = pair.frozen, pair.other
    await frozen.store.outbox.begin()
    duty = frozen.notify._duty
    await pair.freeze(duty)
    row = delivery()
    await other.store.outbox.add(row)
    outbox = frozen.store.outbox
    writes: list[Callable[[], Awaitable[object]]] = [
        lambda: outbox.plan(OutboxPlan(99)),
        lambda: outbox.add(delivery(2)),
        lambda: outbox.mark(structs.replace(row, state="sent")),
        lambda: outbox.collapse(delivery(3), reason="many"),
        lambda: outbox.prune(before=NOW * 2),
        outbox.begin,
    ]
    with duty.at_work():
        for one in writes:
            with pytest.raises(LostDuty):
                await one()
    assert await other.store.outbox.history(limit=10) == [row]
    assert await other.store.outbox.begin() < 99
    await outbox.add(delivery(4))  # not part of the duty: the answer to a command, which every node may give


async def test_a_node_that_lost_the_notification_duty_polls_no_chats(pair: Pair) -> None:
    """Two nodes that ask Telegram for messages at once would each get an error."""

    async def hears() -> bool:
        return any(task.get_name() == "Telegram" for task in asyncio.all_tasks())

    async def is_over() -> bool:
        return not await hears()

    duty, lost = pair.frozen.notify._duty, asyncio.Event()
    duty.wait_until_lost = lost.wait  # type: ignore[method-assign,assignment]
    duty.wait_until_ours = asyncio.Event().wait  # type: ignore[method-assign,assignment]
    await pair.frozen.notify.start()
    assert await hears()
    lost.set()
    await eventually(is_over)
    await pair.frozen.notify.stop()


async def test_a_duty_that_was_lost_and_taken_again_may_write(pair: Pair) -> None:
    frozen = pair.frozen
    duty = Duty(frozen.store, "board")
    await pair.freeze(duty)
    with duty.at_work(), pytest.raises(LostDuty, match="duty/board"):
        await make_session(frozen)
    await pair.other.store.hand_over(keep=[])
    again = Duty(frozen.store, "board")
    assert await again.is_ours()
    with again.at_work():
        await make_session(frozen)
    with duty.at_work(), pytest.raises(LostDuty):  # by the token, not by the node
        await make_session(frozen, "6" * 16)
