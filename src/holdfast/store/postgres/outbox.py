"""The outbox in PostgreSQL: rows beside the log. Each method is one operation, in one transaction.

All of them may be tried again: a delivery has an id, and what became of it is said as a whole.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from msgspec.structs import asdict

from holdfast.store.contract import DUTY_LEASE
from holdfast.store.decisions import check_duty
from holdfast.store.outbox_store import ASKING, DeliveryRow, OutboxPlan, OutboxStore, SettledMatter, settled_delivery
from holdfast.store.postgres.facts import Needs
from holdfast.store.postgres.steps import Steps
from holdfast.store.postgres.writer import PostgresWriter
from holdfast.store.reads import Fetch
from holdfast.store.tables import decode_rows

T = TypeVar("T")
SENT = frozenset({"sending", "sent", "unsure"})


class PostgresOutbox(OutboxStore):
    """The outbox beside a log in PostgreSQL."""

    def __init__(self, writer: PostgresWriter, fetch: Fetch) -> None:
        super().__init__(fetch)
        self._writer = writer

    async def _do(self, work: Callable[[Steps], Awaitable[T]]) -> T:
        duty = DUTY_LEASE.get()

        async def checked(steps: Steps) -> T:
            if duty is not None:
                check_duty(await steps.facts(Needs(leases={duty.stream})), duty)
            return await work(steps)

        return await self._writer.do_alone(checked, repeatable=True)

    async def begin(self) -> int:
        async def begin(steps: Steps) -> int:
            found = (await steps.run("outbox_position")).rows
            if found:
                return int(found[0][0])
            await steps.run("set_outbox_position", {"position": steps.last_seq})
            return steps.last_seq

        return await self._do(begin)

    async def plan(self, plan: OutboxPlan) -> None:
        async def write(steps: Steps) -> None:
            for step in plan.steps:
                if isinstance(step, SettledMatter):
                    await _settle(steps, step)
                else:
                    await steps.run("replace_older_deliveries", _values(step))
                    await steps.run("add_delivery", _values(step))
            await steps.run("set_outbox_position", {"position": plan.position})

        await self._do(write)

    async def add(self, delivery: DeliveryRow) -> None:
        async def write(steps: Steps) -> None:
            await steps.run("add_delivery", _values(delivery) | {"seq": steps.last_seq})

        await self._do(write)

    async def mark(self, delivery: DeliveryRow) -> None:
        await self._do(lambda steps: steps.run("mark_delivery", _values(delivery)))

    async def collapse(self, into: DeliveryRow, *, reason: str) -> None:
        async def write(steps: Steps) -> None:
            await steps.run("collapse_deliveries", _values(into) | {"reason": reason})
            await steps.run("collapse_further", {"id": into.id})
            await steps.run("add_delivery", _values(into))

        await self._do(write)

    async def prune(self, *, before: int) -> None:
        await self._do(lambda steps: steps.run("prune_deliveries", {"before": before}))


def _values(row: DeliveryRow) -> dict[str, object]:
    return asdict(row) | {"choices": msgspec.json.encode(row.choices).decode()}


async def _settle(steps: Steps, settled: SettledMatter) -> None:
    """Drop what was not sent; notify the destinations that were asked for something."""
    answer = await steps.run("settle_deliveries", asdict(settled))
    rows = decode_rows(DeliveryRow, answer.columns, answer.rows)
    earlier = {row.destination: row for row in rows if row.state in SENT and row.kind in ASKING}
    for row in earlier.values():
        await steps.run("add_delivery", _values(settled_delivery(settled, row)))
