"""The outbox: the notifications to send to each destination, and what became of them. An engine adds the writes.

Beside the log and not in it: what happened is in the log, and a delivery only says that a notification was sent.
`position` is how far the log was read; it moves in the transaction that adds the deliveries, so nothing is forgotten
and nothing is added twice.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import msgspec

from holdfast.notify_settings import NoticeName
from holdfast.store.reads import Fetch

DeliveryKind = Literal[NoticeName, "settled", "digest", "test", "answer", "reply", "doubt"]
"""A notice; that its matter is settled; one for many; a test; and the messages of a conversation."""
DeliveryState = Literal["pending", "sending", "sent", "unsure", "failed", "dropped"]
"""`unsure`: it may have arrived, and sending it again could show it twice."""


class DeliveryRow(msgspec.Struct, frozen=True, gc=False):
    """A notice for one destination."""

    id: str
    destination: str
    matter: str
    """What it is about: a newer notice about the same matter replaces an older one that was not sent."""
    kind: DeliveryKind
    seq: int
    """The event in the log that it is about."""
    at: int
    stream: str
    title: str
    summary: str
    detail: str
    link: str
    when_absent: bool
    """Only if nobody looks at it."""
    due_at: int
    state: DeliveryState = "pending"
    attempts: int = 0
    changed_at: int = 0
    error: str = ""
    """Why it failed, was dropped or is tried again."""
    settled: str = ""
    """How its matter was settled meanwhile."""
    receipt: str = ""
    """What the destination calls it, where it can be changed later."""
    wait: str = ""
    """The wait that an answer to the notice answers; empty when it cannot be answered."""
    choices: list[str] = []
    """The answers that may be offered to somebody who sees its detail and nothing more."""
    collapsed_into: str = ""
    """The delivery that took its place and that of others."""


class SettledMatter(msgspec.Struct, frozen=True, gc=False):
    """A matter that needs nobody any longer."""

    matter: str
    seq: int
    at: int
    how: str


@dataclass(frozen=True, slots=True)
class OutboxPlan:
    """What one look at the log comes to, in the order of the log."""

    position: int
    steps: tuple[DeliveryRow | SettledMatter, ...] = ()


ASKING: frozenset[DeliveryKind] = frozenset({"question", "approval", "blocked"})
"""Kinds of notices that ask for something: a destination that got one is also notified when it is settled."""
IN_CONVERSATION: frozenset[DeliveryKind] = frozenset({"answer", "reply", "doubt"})
"""Kinds that are no notices, but sent to the chat in which a session is held."""


def delivery_id(destination: str, matter: str, seq: int, kind: DeliveryKind) -> str:
    """Return the id of a delivery: the same however often it is planned, and no use to anybody who reads it."""
    return hashlib.sha256("\0".join((destination, matter, str(seq), kind)).encode()).hexdigest()[:32]


def settled_delivery(settled: SettledMatter, earlier: DeliveryRow) -> DeliveryRow:
    """Return what a destination gets when a matter is settled of which it was notified."""
    return DeliveryRow(
        id=delivery_id(earlier.destination, settled.matter, settled.seq, "settled"),
        destination=earlier.destination,
        matter=settled.matter,
        kind="settled",
        seq=settled.seq,
        at=settled.at,
        stream=earlier.stream,
        title=earlier.title,
        summary=settled.how,
        detail="",
        link=earlier.link,
        when_absent=False,
        due_at=settled.at,
    )


class OutboxStore(ABC):
    """Deliveries, and how far the log was looked through for them."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    @abstractmethod
    async def begin(self) -> int:
        """Return the position; where there is none, begin at the end of the log."""

    @abstractmethod
    async def plan(self, plan: OutboxPlan) -> None:
        """Settle matters, add deliveries and move the position, in one transaction.

        A pending delivery about a matter that is settled, or that a newer one is about, is dropped. Where a settled
        matter was sent, the destination gets a delivery of kind `settled`.
        """

    @abstractmethod
    async def add(self, delivery: DeliveryRow) -> None:
        """Add a delivery that no event causes, at the end of the log; nothing if there is one with its id."""

    @abstractmethod
    async def mark(self, delivery: DeliveryRow) -> None:
        """Record what became of a delivery. One that would be tried again is dropped if its matter is settled."""

    @abstractmethod
    async def collapse(self, into: DeliveryRow, *, reason: str) -> None:
        """Drop the backlog of a destination up to `into`, which takes its place, and that of what it replaced."""

    @abstractmethod
    async def prune(self, *, before: int) -> None:
        """Delete deliveries that ended before this moment."""

    async def due_destinations(self, *, at: int, horizon: int) -> list[str]:
        """Where a pending delivery is due, or due later than `horizon`: then the clock was set back."""
        return [name for (name,) in await self._fetch.values("due_destinations", at=at, horizon=horizon)]

    async def next_due(self, *, after: int) -> int | None:
        """When the next pending delivery is due, of those that are not due yet."""
        ((at,),) = await self._fetch.values("next_due_delivery", after=after)
        return None if at is None else int(at)

    async def interrupted(self) -> list[DeliveryRow]:
        """Deliveries that were being sent; at a start, those that a crash left."""
        return await self._fetch.rows("interrupted_deliveries", DeliveryRow)

    async def pending(self, destination: str) -> list[DeliveryRow]:
        """What waits to be sent to a destination, oldest first."""
        return await self._fetch.rows("pending_deliveries", DeliveryRow, destination=destination)

    async def count_pending(self, prefix: str) -> int:
        """How much waits to be sent to the destinations whose names begin like this."""
        ((count,),) = await self._fetch.values("count_pending_deliveries", prefix=prefix)
        return int(count)

    async def first_due(self, destination: str, *, at: int, horizon: int) -> DeliveryRow | None:
        """The first delivery of a destination that is due, as in `due_destinations`."""
        given = {"destination": destination, "at": at, "horizon": horizon}
        return await self._fetch.row("first_due_delivery", DeliveryRow, **given)

    async def backlog(self, destination: str, *, limit: int) -> list[DeliveryRow]:
        """The first notices that wait for a destination, without those that something is settled."""
        return await self._fetch.rows("backlog_of_destination", DeliveryRow, destination=destination, limit=limit)

    async def collapsed_into(self, id: str) -> list[DeliveryRow]:
        """The notices whose place a delivery took, in the order of the log."""
        return await self._fetch.rows("collapsed_deliveries", DeliveryRow, id=id)

    async def last_sent(self, destination: str, matter: str) -> DeliveryRow | None:
        """The last delivery about a matter that the destination got, or perhaps got."""
        found = await self._fetch.rows("last_sent_delivery", DeliveryRow, destination=destination, matter=matter)
        return found[0] if found else None

    async def copies(self, delivery: DeliveryRow) -> list[DeliveryRow]:
        """Other deliveries to the same destination that asked for the same answer and can be changed there."""
        given = {
            "matter": delivery.matter,
            "destination": delivery.destination,
            "wait": delivery.wait,
            "id": delivery.id,
        }
        return await self._fetch.rows("copies_of_delivery", DeliveryRow, **given) if delivery.wait else []

    async def summaries(self) -> dict[str, tuple[int, int]]:
        """By destination: when something last arrived there, and how many deliveries were given up."""
        found = await self._fetch.values("summarize_deliveries")
        return {destination: (sent_at or 0, failed) for destination, sent_at, failed in found}

    async def history(self, *, limit: int, destination: str = "") -> list[DeliveryRow]:
        """The latest deliveries, newest first."""
        return await self._fetch.rows("list_deliveries", DeliveryRow, limit=limit, destination=destination)
