"""The outbox in SQLite: rows beside the log, written by the one writer in its group commit."""

from __future__ import annotations

import msgspec
from msgspec.structs import asdict

from holdfast.store.outbox_store import ASKING, DeliveryRow, OutboxPlan, OutboxStore, SettledMatter, settled_delivery
from holdfast.store.reads import Fetch
from holdfast.store.sqlite.operations import Transaction
from holdfast.store.sqlite.writer import Writer
from holdfast.store.tables import decode_rows

SENT = frozenset({"sending", "sent", "unsure"})


class SqliteOutbox(OutboxStore):
    """The outbox beside a SQLite log. Each method is one operation, in one transaction."""

    def __init__(self, writer: Writer, fetch: Fetch) -> None:
        super().__init__(fetch)
        self._writer = writer

    async def begin(self) -> int:
        def begin(tx: Transaction) -> int:
            found = tx.run("outbox_position").fetchone()
            if found is not None:
                return int(found[0])
            tx.run("set_outbox_position", {"position": tx.last_seq})
            return tx.last_seq

        return await self._writer.do(begin)

    async def plan(self, plan: OutboxPlan) -> None:
        def write(tx: Transaction) -> None:
            for step in plan.steps:
                if isinstance(step, SettledMatter):
                    _settle(tx, step)
                else:
                    tx.run("replace_older_deliveries", _values(step))
                    tx.run("add_delivery", _values(step))
            tx.run("set_outbox_position", {"position": plan.position})

        await self._writer.do(write)

    async def add(self, delivery: DeliveryRow) -> None:
        await self._writer.do(lambda tx: tx.run("add_delivery", _values(delivery) | {"seq": tx.last_seq}))

    async def mark(self, delivery: DeliveryRow) -> None:
        await self._writer.do(lambda tx: tx.run("mark_delivery", _values(delivery)))

    async def collapse(self, into: DeliveryRow, *, reason: str) -> None:
        def write(tx: Transaction) -> None:
            tx.run("collapse_deliveries", _values(into) | {"reason": reason})
            tx.run("collapse_further", {"id": into.id})
            tx.run("add_delivery", _values(into))

        await self._writer.do(write)

    async def prune(self, *, before: int) -> None:
        await self._writer.do(lambda tx: tx.run("prune_deliveries", {"before": before}))


def _values(row: DeliveryRow) -> dict[str, object]:
    return asdict(row) | {"choices": msgspec.json.encode(row.choices).decode()}


def _settle(tx: Transaction, settled: SettledMatter) -> None:
    """Drop what was not sent; notify the destinations that were asked for something."""
    cursor = tx.run("settle_deliveries", asdict(settled))
    rows = decode_rows(DeliveryRow, [column[0] for column in cursor.description], cursor.fetchall())
    earlier = {row.destination: row for row in rows if row.state in SENT and row.kind in ASKING}
    for row in earlier.values():
        tx.run("add_delivery", _values(settled_delivery(settled, row)))
