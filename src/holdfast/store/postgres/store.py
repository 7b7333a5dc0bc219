"""The engine on PostgreSQL: one writer per node, one lock for all of them, readers on other connections."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from holdfast.domain.events import Record
from holdfast.periodic import FollowerState
from holdfast.store.contract import (
    LOCAL_NODE,
    PAGE_BYTES,
    Append,
    Appended,
    CommandKey,
    Hit,
    Lease,
    OutputFound,
    Page,
    Store,
    StoreHealth,
    Subscription,
    Wanted,
)
from holdfast.store.decisions import NewEvent, StoredCommand, accepted, encode_writes
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.devices import PostgresDevices
from holdfast.store.postgres.exchange import PostgresExchange
from holdfast.store.postgres.facts import KnownFacts, Needs, needs_of_append
from holdfast.store.postgres.fetch import PostgresFetch
from holdfast.store.postgres.hints import NodeHints
from holdfast.store.postgres.log_reads import LogReads
from holdfast.store.postgres.lost_nodes import LostNodes
from holdfast.store.postgres.migrate import prepare
from holdfast.store.postgres.node_life import NodeLife
from holdfast.store.postgres.outbox import PostgresOutbox
from holdfast.store.postgres.readers import ReadConnections
from holdfast.store.postgres.search import Search
from holdfast.store.postgres.settings import PostgresSettings
from holdfast.store.postgres.transaction import do_append, do_claim, do_save_text
from holdfast.store.postgres.wire import BIGINT, Array
from holdfast.store.postgres.writer import PostgresWriter
from holdfast.store.rows import PartialText, TextPiece
from holdfast.store.subscriptions import Subscriptions
from holdfast.timings import USUAL, StoreTimings

OVERDUE = "This node could not renew its leases, so other nodes may have taken over: it starts nothing until it can."


async def open_store(
    database: Database,
    outputs: Path,
    timings: StoreTimings = USUAL.store,
    *,
    node: str = LOCAL_NODE,
    labels: Sequence[str] = (),
) -> PostgresStore:
    """Connect to a database; its tables are created or migrated first. `outputs` has the outputs of tasks."""
    await prepare(database)
    store = PostgresStore(database, outputs, timings, node, labels)
    try:
        await store.announce()
    except BaseException:
        await store.close()
        raise
    return store


async def open_address(
    address: str, outputs: Path, timings: StoreTimings, node: str, labels: Sequence[str] = ()
) -> PostgresStore:
    """The same for the address of a database, in the usual schema."""
    return await open_store(Database(address), outputs, timings, node=node, labels=labels)


class PostgresStore(Store):
    """The store in one schema of a PostgreSQL database, which is prepared. Made on a running loop, by `open_store`."""

    is_shared = True

    def __init__(
        self,
        database: Database,
        outputs: Path,
        timings: StoreTimings = USUAL.store,
        node: str = LOCAL_NODE,
        labels: Sequence[str] = (),
    ) -> None:
        self.node = node
        self._subscriptions = Subscriptions(sweep_seconds=timings.sweep)
        self._life = NodeLife(database, node, timings, labels)
        self.writer = PostgresWriter(database, self._life, timings, self._committed)
        self.readers = ReadConnections(database, timings, lambda: self.writer.stopped)
        fetch = PostgresFetch(self.readers)
        super().__init__(fetch)
        self._log = LogReads(self.readers)
        self._hints = NodeHints(database, self._subscriptions, timings)
        self.devices = PostgresDevices(self.writer, fetch)
        self.outbox = PostgresOutbox(self.writer, fetch)
        self.settings = PostgresSettings(self.writer, fetch)
        self.exchange = self._exchange = PostgresExchange(database, node, self.readers, timings)
        self._index = Search(database, self.readers, self._subscriptions, outputs, timings)
        self._lost_nodes = LostNodes(database, self._life, self.writer, self.readers, timings)

    async def announce(self) -> None:
        """Say on the server that this node has the store open. Unavailable when another one has its name."""
        await self._life.announce()

    def _committed(self, stored: list[NewEvent], known: KnownFacts) -> None:
        self._subscriptions.committed(stored)
        self._hints.committed(stored, known)

    # --- append, claim --------------------------------------------------------------------------

    async def append(self, append: Append) -> Appended:
        encoded, needs = encode_writes(append), needs_of_append(append)
        repeatable = append.command is not None
        return await self.writer.do(lambda tx: do_append(tx, append, encoded), needs, repeatable=repeatable)

    async def claim(self, stream: str, *, holder: str) -> Lease:
        return await self.writer.do(lambda tx: do_claim(tx, stream, holder), Needs(leases={stream}), repeatable=True)

    async def give_back(self, stream: str) -> None:
        await self.writer.do(lambda tx: tx.free(stream), Needs(leases={stream}), repeatable=True)

    def holds(self, lease: Lease) -> bool:
        return self._life.is_certain and self.writer.token(lease.stream) == lease.token

    def holds_stream(self, stream: str) -> bool:
        return self._life.is_certain and self.writer.token(stream) > 0

    @property
    def life(self) -> int:
        return self._life.life

    @property
    def is_draining(self) -> bool:
        return self._life.is_draining

    async def drain_node(self, name: str) -> None:
        await self.writer.do_alone(lambda steps: steps.run("drain_node", {"name": name}), repeatable=True)

    async def forget_node(self, name: str) -> None:
        await self.writer.do_alone(lambda steps: steps.run("forget_node", {"name": name}), repeatable=True)

    async def hand_over(self, *, keep: list[str]) -> None:
        if self.writer.holds_other_than(keep):
            await self._lost_nodes.hand_over(keep)

    async def save_partial(self, lease: Lease, partial: PartialText) -> None:
        needs = Needs(leases={lease.stream})
        await self.writer.do(lambda tx: do_save_text(tx, lease, partial), needs, repeatable=True)

    async def running_texts(self, known: dict[str, int]) -> list[TextPiece]:
        numbers = Array(BIGINT, [*known.values()])
        found = await self.readers.query("running_texts", streams=[*known], numbers=numbers)
        return [
            TextPiece(*row) if row[2] is not None else TextPiece(stream=row[0], version=row[1]) for row in found.rows
        ]

    async def find_command(self, key: CommandKey) -> Appended | None:
        found = (await self.readers.query("find_command", id=key.id)).rows
        return accepted(StoredCommand(*found[0]) if found else None, key)

    # --- read, follow ---------------------------------------------------------------------------

    async def read(self, stream: str, *, after: int, limit: int, size: int = PAGE_BYTES) -> Page:
        return await self._log.stream(stream, after=after, limit=limit, size=size)

    async def read_all(self, *, after: int, limit: int, size: int = PAGE_BYTES) -> Page:
        return await self._log.log(after=after, limit=limit, size=size)

    async def load_kinds(self, kinds: frozenset[str], *, after: int, limit: int) -> tuple[list[Record], int]:
        return await self._log.kinds(kinds, after=after, limit=limit)

    async def load(self, stream: str, *, after: int) -> list[Record]:
        return await self._log.load(stream, after=after)

    def recent(self, stream: str, *, after: int) -> tuple[bytes, ...] | None:
        recent = self._subscriptions.recent
        return () if recent.is_last(stream, after) else recent.after(stream, after) or None

    def subscribe(
        self, stream: str | None, wanted: Wanted | None = None, *, elsewhere: Wanted | None = None
    ) -> Subscription:
        return self._subscriptions.follow(stream, wanted, elsewhere)

    def hint(self, stream: str) -> None:
        self._subscriptions.hint(stream)

    async def search(self, text: str, *, limit: int) -> list[Hit]:
        return await self._index.search(text, limit)

    async def search_outputs(self, text: str, *, limit: int) -> list[OutputFound]:
        return await self._index.search_outputs(text, limit)

    @property
    def search_state(self) -> FollowerState:
        return self._index.state

    @property
    def health(self) -> StoreHealth:
        health, overdue = self.writer.health, self._life.overdue_ms
        if health.writable and overdue:
            return StoreHealth(writable=False, problem=OVERDUE, since=int(time.time() * 1000) - overdue)
        return health

    @property
    def commit_stats(self) -> tuple[int, float]:
        return self.writer.commits, self.writer.commit_seconds

    async def close(self) -> None:
        self._subscriptions.close()
        await self._index.close()
        await self._exchange.close()
        await self._hints.close()
        await self._lost_nodes.close()
        await self._life.close()
        await self.writer.close()
        await self.readers.close()
