"""What every store must keep of notifications: which were sent, and which wait. See `conformance.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from holdfast.store.contract import Store
from holdfast.store.outbox_store import (
    DeliveryKind,
    DeliveryRow,
    DeliveryState,
    OutboxPlan,
    SettledMatter,
    delivery_id,
)
from tests.store.conformance import AT, A, B, Engine, finished, said, write

TO = "webhooks.mine"


def delivery(seq: int = 1, *, matter: str = f"wait/{A}", kind: DeliveryKind = "question", to: str = TO) -> DeliveryRow:
    return DeliveryRow(
        id=delivery_id(to, matter, seq, kind),
        destination=to,
        matter=matter,
        kind=kind,
        seq=seq,
        at=AT,
        stream=f"session/{A}",
        title="a session",
        summary="asks a question",
        detail="which one?",
        link=f"/s/{A}",
        when_absent=True,
        due_at=AT,
        changed_at=AT,
    )


def settled(seq: int, matter: str = f"wait/{A}") -> SettledMatter:
    return SettledMatter(matter=matter, seq=seq, at=AT + seq, how="answered")


async def states(store: Store) -> list[tuple[str, DeliveryState]]:
    return [(row.kind, row.state) for row in reversed(await store.outbox.history(limit=100))]


class OutboxContract:
    """Deliveries, and how far the log was looked through for them."""

    @pytest.fixture
    async def store(self, engine: Engine) -> AsyncIterator[Store]:
        store = await engine.open()
        yield store
        await store.close()

    async def test_it_begins_at_the_end_of_the_log_and_then_where_it_was(self, engine: Engine) -> None:
        store = await engine.open()
        await write(store, f"session/{A}", said())
        end = (await store.counts()).seq
        assert await store.outbox.begin() == end > 0
        await write(store, f"session/{A}", finished())
        assert await store.outbox.begin() == end
        await store.outbox.plan(OutboxPlan(end + 1, (delivery(end + 1),)))
        await store.close()
        store = await engine.open()
        assert await store.outbox.begin() == end + 1
        assert await states(store) == [("question", "pending")]
        await store.close()

    async def test_what_was_planned_before_is_not_planned_again(self, store: Store) -> None:
        row = replace(delivery(), wait="w1", choices=["allow", "deny"])
        for _ in range(2):
            await store.outbox.plan(OutboxPlan(1, (row,)))
        assert await store.outbox.pending(TO) == [row]
        await store.outbox.mark(replace(row, state="sent"))
        await store.outbox.plan(OutboxPlan(1, (row,)))
        assert await states(store) == [("question", "sent")]

    async def test_a_newer_notice_about_the_same_matter_replaces_one_that_was_not_sent(self, store: Store) -> None:
        other, elsewhere = delivery(1, matter=f"wait/{B}"), delivery(1, to="webhooks.other")
        await store.outbox.plan(OutboxPlan(2, (delivery(1), other, elsewhere, delivery(2))))
        assert {row.id for row in await store.outbox.pending(TO)} == {other.id, delivery(2).id}
        assert len(await store.outbox.pending("webhooks.other")) == 1

    async def test_a_settled_matter_is_dropped_or_where_it_was_sent_reported_as_settled(self, store: Store) -> None:
        waiting, told = delivery(1), delivery(1, to="webhooks.other")
        await store.outbox.plan(OutboxPlan(1, (waiting, told)))
        await store.outbox.mark(replace(told, state="sent", receipt="42"))
        await store.outbox.plan(OutboxPlan(2, (settled(2),)))
        assert await store.outbox.pending(TO) == []
        (again,) = await store.outbox.pending("webhooks.other")
        assert (again.kind, again.seq, again.summary) == ("settled", 2, "answered")
        before = await store.outbox.last_sent("webhooks.other", waiting.matter)
        assert before is not None
        assert (before.receipt, before.settled) == ("42", "answered")
        await store.outbox.plan(OutboxPlan(3, (settled(3),)))  # once is enough
        assert len(await store.outbox.pending("webhooks.other")) == 1

    async def test_a_notice_that_asks_for_nothing_gets_no_settled_message(self, store: Store) -> None:
        row = delivery(kind="done")
        await store.outbox.plan(OutboxPlan(1, (row,)))
        await store.outbox.mark(replace(row, state="sent"))
        await store.outbox.plan(OutboxPlan(2, (settled(2),)))
        assert await states(store) == [("done", "sent")]

    async def test_a_matter_that_comes_up_again_after_it_was_settled_is_sent(self, store: Store) -> None:
        await store.outbox.plan(OutboxPlan(3, (delivery(1), settled(2), delivery(3))))
        assert await states(store) == [("question", "dropped"), ("question", "pending")]

    async def test_one_that_failed_is_not_tried_again_once_its_matter_is_settled(self, store: Store) -> None:
        row = delivery()
        await store.outbox.plan(OutboxPlan(1, (row,)))
        await store.outbox.mark(replace(row, state="sending", attempts=1))
        await store.outbox.plan(OutboxPlan(2, (settled(2),)))
        await store.outbox.mark(replace(row, state="pending", attempts=1, error="it answered 500"))
        (dropped,) = [one for one in await store.outbox.history(limit=9) if one.id == row.id]
        assert (dropped.state, dropped.error) == ("dropped", "settled before it was sent: answered")

    async def test_a_delivery_without_an_event_is_added_once_at_the_end_of_the_log(self, store: Store) -> None:
        await write(store, f"session/{A}", said())
        end = (await store.counts()).seq
        row = delivery(0, kind="reply")
        for _ in range(2):
            await store.outbox.add(row)
            await write(store, f"session/{A}", finished())
        assert await store.outbox.pending(TO) == [replace(row, seq=end)]

    async def test_what_was_being_sent_at_a_crash_is_found_again(self, engine: Engine) -> None:
        store = await engine.open()
        await store.outbox.begin()
        await store.outbox.plan(OutboxPlan(1, (delivery(),)))
        await store.outbox.mark(replace(delivery(), state="sending", attempts=1))
        assert await store.outbox.pending(TO) == []
        await store.close()
        store = await engine.open()
        (row,) = await store.outbox.interrupted()
        assert (row.id, row.attempts) == (delivery().id, 1)
        await store.close()

    async def test_due_is_what_is_due_and_what_a_wrong_clock_put_too_far_ahead(self, store: Store) -> None:
        rows = [replace(delivery(seq, matter=str(seq)), due_at=due) for seq, due in ((1, 50), (2, 150), (3, 10_000))]
        await store.outbox.plan(OutboxPlan(3, tuple(rows)))
        assert await store.outbox.due_destinations(at=100, horizon=5_000) == [TO]
        assert await store.outbox.due_destinations(at=10, horizon=20_000) == []
        assert await store.outbox.due_destinations(at=10, horizon=5_000) == [TO]
        assert await store.outbox.next_due(after=100) == 150
        assert await store.outbox.next_due(after=10_000) is None

    async def test_how_each_destination_is_doing(self, store: Store) -> None:
        rows = [delivery(seq, matter=str(seq)) for seq in (1, 2, 3, 4)]
        await store.outbox.plan(OutboxPlan(4, (*rows, delivery(5, to="webhooks.other"))))
        ends: list[tuple[DeliveryState, int]] = [("sent", AT + 7), ("sent", AT + 9), ("failed", AT + 11)]
        for row, (state, at) in zip(rows, ends, strict=False):
            await store.outbox.mark(replace(row, state=state, changed_at=at))
        assert await store.outbox.summaries() == {TO: (AT + 9, 1), "webhooks.other": (0, 0)}

    async def test_many_become_one(self, store: Store) -> None:
        await store.outbox.plan(OutboxPlan(4, tuple(delivery(seq, matter=str(seq)) for seq in range(1, 4))))
        into = delivery(3, matter="digest", kind="digest")
        await store.outbox.collapse(into, reason="one instead")
        assert await store.outbox.pending(TO) == [into]
        assert [row.seq for row in await store.outbox.collapsed_into(into.id)] == [1, 2, 3]

    async def test_many_that_became_one_become_one_again_with_others(self, store: Store) -> None:
        first, other = delivery(1, matter="1"), delivery(1, matter="1", to="webhooks.other")
        await store.outbox.plan(OutboxPlan(2, (first, other)))
        before = delivery(2, matter="digest", kind="digest")
        await store.outbox.collapse(before, reason="one instead")
        settles = delivery(3, matter="3", kind="settled")
        await store.outbox.plan(OutboxPlan(4, (settles, delivery(4, matter="4"))))
        into = delivery(4, matter="digest", kind="digest")
        await store.outbox.collapse(into, reason="one instead")
        assert {row.id for row in await store.outbox.pending(TO)} == {settles.id, into.id}
        assert [row.seq for row in await store.outbox.collapsed_into(into.id)] == [1, 4]
        assert await store.outbox.collapsed_into(before.id) == []
        assert await store.outbox.pending("webhooks.other") == [other]

    async def test_the_first_of_a_destination_that_is_due_and_what_waits_there(self, store: Store) -> None:
        rows = [replace(delivery(seq, matter=str(seq)), due_at=due) for seq, due in ((1, 150), (2, 50), (3, 40))]
        await store.outbox.plan(OutboxPlan(4, (delivery(1, to="webhooks.other"), *rows, delivery(4, kind="settled"))))
        assert await store.outbox.first_due(TO, at=100, horizon=5_000) == replace(rows[1], changed_at=AT)
        assert await store.outbox.first_due(TO, at=10, horizon=10**15) is None
        assert [row.seq for row in await store.outbox.backlog(TO, limit=2)] == [1, 2]
        assert [row.seq for row in await store.outbox.backlog(TO, limit=9)] == [1, 2, 3]

    async def test_old_deliveries_are_deleted_unless_they_still_wait(self, store: Store) -> None:
        await store.outbox.plan(OutboxPlan(2, (delivery(1), delivery(2, matter="other"))))
        await store.outbox.mark(replace(delivery(1), state="failed"))
        await store.outbox.prune(before=AT)
        assert len(await states(store)) == 2
        await store.outbox.prune(before=AT + 1)
        assert await states(store) == [("question", "pending")]

    async def test_events_of_some_kinds(self, store: Store) -> None:
        await write(store, f"session/{A}", said("one"), finished())
        await write(store, f"session/{B}", said("two"), finished())
        kinds = frozenset({"TurnFinished"})
        records, upto = await store.load_kinds(kinds, after=0, limit=10)
        assert [(record.seq, type(record.event).__name__) for record in records] == [
            (2, "TurnFinished"),
            (4, "TurnFinished"),
        ]
        assert upto == 4
        records, upto = await store.load_kinds(kinds, after=0, limit=1)
        assert [record.seq for record in records] == [upto] == [2]
        assert await store.load_kinds(frozenset({"TurnStarted"}), after=1, limit=10) == ([], 4)
