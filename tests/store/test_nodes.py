"""Several nodes on one PostgreSQL: their lives, their leases, and what happens to those of a node that is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.domain.errors import Fenced, HeldElsewhere, NodeAway
from holdfast.domain.events import SYSTEM, session_stream
from holdfast.domain.events.system import NodeEnded
from holdfast.store.contract import Append, Lease, Write
from holdfast.store.duties import Duty
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.migrate import prepare
from holdfast.store.postgres.node_life import NodeLife
from holdfast.store.postgres.queries import statement
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.postgres.wire import ConnectionEnded, ResultRows, SqlStatement, Wire
from holdfast.store.tables import KEPT_LIVES
from holdfast.timings import StoreTimings
from tests.eventually import PATIENCE, eventually
from tests.postgres_server import own_server, schemas, shared_server
from tests.store.conformance import AT, OTHER, STREAM, A, B, asked, session, started, versions, write
from tests.store.postgres_proxy import proxy_of

QUICK = StoreTimings(lock=PATIENCE, probe=0.05, look=0.05, lease=0.4)
C = "cccccccccccccccc"
REQUEST = {"id": "", "node": "", "asked_by": "", "body": b"", "within": 0}
CALM = StoreTimings(lock=PATIENCE, probe=0.05, look=0.05, lease=PATIENCE)


@pytest.fixture
def database() -> Iterator[Database]:
    database = schemas.take()
    yield database
    schemas.give_back(database)


@asynccontextmanager
async def opened(database: Database, node: str, timings: StoreTimings = CALM) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(database, Path("/nowhere"), timings, node)
    try:
        await store.announce()
        yield store
    finally:
        await store.close()


async def stop_renewing(store: PostgresStore, *, cut: bool = False) -> None:
    """As if its process were frozen; or killed, which closes its connections, too."""
    life = store._life
    assert life._beating is not None
    life._beating.cancel()
    await asyncio.gather(life._beating, return_exceptions=True)
    life._beating = None
    store._lost_nodes._task.cancel()
    if cut:
        assert life._wire is not None
        life._wire.close()


async def ended(store: PostgresStore) -> list[NodeEnded]:
    records = await store.load(SYSTEM, after=0)
    return [record.event for record in records if isinstance(record.event, NodeEnded)]


async def test_each_node_has_a_life_and_only_one_holds_a_lease(database: Database) -> None:
    async with opened(database, "one") as one, opened(database, "two") as two:
        await session(one, A)
        lease = await one.claim(STREAM, holder="t")
        with pytest.raises(HeldElsewhere, match="Another node works on"):
            await two.claim(STREAM, holder="t")
        with pytest.raises(HeldElsewhere):
            await two.append(Append((Write(STREAM, (asked(),)),), AT, claim="t"))
        assert (one.holds(lease), one.holds_stream(STREAM)) == (True, True)
        assert (two.holds(lease), two.holds_stream(STREAM)) == (False, False)
        assert {(row.name, row.life) for row in await one.nodes()} == {("one", one.life), ("two", two.life)}
        holder = await two.lease_holder(STREAM)
        assert holder is not None and (holder.name, holder.life, holder.ended_at) == ("one", one.life, None)


async def test_lease_that_says_where_a_directory_is_outlives_many_lives_of_its_node(database: Database) -> None:
    async with opened(database, "gpu") as gpu, opened(database, "away") as away:
        await session(gpu, A)
        await session(gpu, B, node="gpu")  # its first event says it
        await gpu.claim(STREAM, holder="t")
        await gpu.claim(OTHER, holder="t")
        await session(away, C)
        await away.claim(session_stream(C), holder="t")
    async with opened(database, "laptop") as laptop:
        for _ in range(KEPT_LIVES + 3):
            async with opened(database, "gpu"):
                pass
        async with opened(database, "away"):
            for _ in range(KEPT_LIVES + 3):
                async with opened(database, "gpu"):
                    pass
        names = [row and row.name for row in [await laptop.lease_holder(session_stream(id)) for id in (A, B, C)]]
        assert names == ["gpu", None, "away"]
        assert len(await laptop.nodes()) < KEPT_LIVES + 5


async def test_unclaimed_sessions_are_those_that_no_other_node_works_on(database: Database) -> None:
    async with opened(database, "one") as one, opened(database, "two") as two:
        await session(one, A, "hello")
        for store in (one, two):
            assert [row.id for row in await store.unclaimed_sessions(node=store.node)] == [A]
        await one.claim(STREAM, holder="t")
        assert [row.id for row in await one.unclaimed_sessions(node="one")] == [A]
        assert await two.unclaimed_sessions(node="two") == []


async def test_a_node_knows_its_own_life_although_the_answer_to_its_begin_was_lost() -> None:
    with own_server({"fsync": "off"}) as server:
        async with proxy_of(server) as proxy:
            database = Database(proxy.url())
            await prepare(database)
            life = NodeLife(database, "gpu", CALM)
            try:
                await life.announce()
                for _ in range(2):
                    server.sql("UPDATE holdfast.nodes SET ended_at = 1, ended_reason = 'lost' WHERE ended_at IS NULL")
                    proxy.swallow_commit = True
                    with pytest.raises(ConnectionEnded):
                        await life._renew()
                    assert not proxy.swallow_commit and not life.life
                    await life._renew()
                    alive = await life._run("list_nodes")
                    assert [row[0] for row in alive.rows if row[5] is None] == [await life.current()]
            finally:
                await life.close()


@pytest.mark.parametrize("cut", [True, False])
async def test_promise_2_the_work_of_a_lost_node_is_free_and_its_writes_are_refused(
    database: Database, cut: bool
) -> None:
    """A killed node is lost as soon as it has missed a renewal, a frozen one after a whole lease."""
    async with opened(database, "lost", QUICK) as lost, opened(database, "other", QUICK) as other:
        await session(lost, A)
        lease = await lost.claim(STREAM, holder="t")
        await write(lost, STREAM, started(), lease=lease)
        life = lost.life
        await stop_renewing(lost, cut=cut)

        async def is_ended() -> bool:
            return bool(await ended(other))

        await eventually(is_ended)
        (event,) = await ended(other)
        assert (event.node, event.heard_at > 0) == ("lost", True)
        assert cut or "connection" not in event.reason  # a slow machine may find a whole lease of silence instead
        newer = await other.claim(STREAM, holder="t")
        assert newer.token > lease.token
        for attempt in (
            write(lost, STREAM, asked(), lease=lease),
            write(lost, STREAM, asked(), lease=Lease(STREAM, newer.token)),
        ):
            with pytest.raises((Fenced, HeldElsewhere)):
                await attempt
        assert not lost.holds(lease) and not lost.holds_stream(STREAM)
        assert lost.life > life, "it is back, with another life"
        assert await versions(other, STREAM) == [1, 2]


async def test_a_node_that_cannot_renew_starts_nothing_and_says_so(database: Database) -> None:
    async with opened(database, "alone", QUICK) as alone:
        await session(alone, A)
        lease = await alone.claim(STREAM, holder="t")
        assert alone.holds(lease)
        await stop_renewing(alone)

        async def is_overdue() -> bool:
            return not alone.holds(lease)

        await eventually(is_overdue)
        assert not alone.health.writable
        assert "could not renew its leases" in alone.health.problem
        assert alone.health.since
        await alone._life._renew()
        assert alone.holds(lease), "nobody has taken it meanwhile"
        assert alone.health.writable


async def test_a_node_that_is_shut_down_leaves_its_leases_at_once(database: Database) -> None:
    async with opened(database, "stays") as stays:
        async with opened(database, "leaves") as leaves:
            await session(leaves, A)
            await leaves.claim(STREAM, holder="t")
        await stays.claim(STREAM, holder="t")
        assert [(event.node, event.heard_at) for event in await ended(stays)] == [("leaves", 0)]


async def test_a_single_node_leaves_without_an_event(database: Database) -> None:
    async with opened(database, "alone") as store:
        await session(store, A)
    async with opened(database, "alone") as store:
        assert await store.load(SYSTEM, after=0) == []
        assert [row.ended_at is None for row in await store.nodes()] == [True, False]


async def test_a_killed_node_is_back_under_its_name_before_its_lease_is_over(database: Database) -> None:
    killed = PostgresStore(database, Path("/nowhere"), CALM, "gpu")
    await killed.announce()
    await session(killed, A)
    await killed.claim(STREAM, holder="t")
    await stop_renewing(killed, cut=True)
    async with opened(database, "gpu") as back:
        await back.claim(STREAM, holder="t")
    await killed.close()


async def test_the_clocks_of_nodes_do_not_decide(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lives are measured by the clock of the database."""
    monkeypatch.setattr("holdfast.store.postgres.lost_nodes.time.time", lambda: 0.0)
    async with opened(database, "one") as one, opened(database, "two") as two:
        await session(one, A)
        await one._lost_nodes.look()
        await two._lost_nodes.look()
        assert [row.ended_at for row in await one.nodes()] == [None, None]


async def test_a_life_of_a_version_without_heartbeats_is_ended(database: Database) -> None:
    async with opened(database, "one", replace(CALM, lease=0.4)) as one:
        await session(one, A)
        shared_server().sql(f"INSERT INTO {database.schema}.nodes (name, version) VALUES ('local', '0')")

        async def is_ended() -> bool:
            return [event.node for event in await ended(one)] == ["local"]

        await eventually(is_ended)


async def test_a_node_that_is_drained_gives_back_its_leases_and_takes_no_others(database: Database) -> None:
    async with opened(database, "leaves") as leaves, opened(database, "stays") as stays:
        await session(leaves, A, node="leaves")
        await session(leaves, B, node="leaves")
        lease, kept = await leaves.claim(STREAM, holder="t"), await leaves.claim(OTHER, holder="t")
        await stays.drain_node("leaves")
        assert [row.draining for row in await stays.nodes() if row.name == "leaves"] == [True]
        await leaves._life._renew()
        assert leaves.is_draining and not stays.is_draining
        await leaves.hand_over(keep=[OTHER])
        assert (leaves.holds(lease), leaves.holds(kept)) == (False, True)
        with pytest.raises(HeldElsewhere, match="is being drained"):
            await leaves.claim(STREAM, holder="t")
        await leaves.claim(OTHER, holder="t")  # it works on that to its end
        await stays.claim(STREAM, holder="t")
        with pytest.raises(HeldElsewhere):
            await stays.claim(OTHER, holder="t")
        kinds = [type(record.event).__name__ for record in await stays.load(SYSTEM, after=0)]
        assert kinds == ["NodeDrained"]


async def test_a_node_gives_back_its_own_lease_only(database: Database) -> None:
    async with opened(database, "one") as one, opened(database, "two") as two:
        await session(one, A)
        lease = await one.claim(STREAM, holder="t")
        await two.give_back(STREAM)
        with pytest.raises(HeldElsewhere):
            await two.claim(STREAM, holder="t")
        await one.give_back(STREAM)
        await two.claim(STREAM, holder="t")
        with pytest.raises(Fenced):
            await one.append(Append((Write(STREAM, (asked(),)),), AT, lease=lease))
        await one.give_back(STREAM)
        assert (await two.lease_holder(STREAM)).name == "two"  # type: ignore[union-attr]


async def test_only_a_node_that_has_ended_is_forgotten(database: Database) -> None:
    async with opened(database, "one") as one:
        async with opened(database, "two") as two:
            await session(two, A)
            await two.claim(STREAM, holder="t")
            await one.forget_node("two")
            assert {row.name for row in await one.nodes()} == {"one", "two"}
        await one.forget_node("two")
        assert {row.name for row in await one.nodes()} == {"one"}
        assert await one.lease_holder(STREAM) is None


async def test_a_duty_belongs_to_one_node_and_moves_when_that_ends(database: Database) -> None:
    async with opened(database, "stays") as stays:
        here = Duty(stays, "board")
        async with opened(database, "leaves") as leaves:
            there = Duty(leaves, "board")
            assert await there.is_ours()
            assert not await here.is_ours()
            assert not here.is_held
            taking_over = asyncio.create_task(here.wait_until_ours())
            work = await stays.work_of_nodes()
            assert [(one.node, one.stream) for one in work] == [("leaves", "duty/board")]
        async with asyncio.timeout(PATIENCE):
            await taking_over
        assert (here.is_held, there.is_held) == (True, False)


async def test_a_request_whose_sending_is_in_doubt_is_not_called_undone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stored before the connection was cut: the other node carries it out, and a second try would repeat it."""
    carried_out = asyncio.Event()

    async def carry_out(_: bytes) -> bytes:
        carried_out.set()
        return b""

    real_run = Wire.run

    async def run_and_lose_the_answer(
        wire: Wire, statements: Sequence[SqlStatement], *, within: float
    ) -> list[ResultRows]:
        found = await real_run(wire, statements, within=within)
        if any(one.sql == statement("ask_node", REQUEST).sql for one in statements):
            wire.close("cut by the test")
            raise ConnectionEnded("cut by the test")
        return found

    async with opened(database, "one") as one, opened(database, "two") as two:
        assert one.exchange is not None and two.exchange is not None
        two.exchange.answer_with(carry_out)
        monkeypatch.setattr(Wire, "run", run_and_lose_the_answer)
        with pytest.raises(NodeAway, match="not known whether"):
            await one.exchange.ask("two", b"write", within=PATIENCE)
        async with asyncio.timeout(PATIENCE):
            await carried_out.wait()
