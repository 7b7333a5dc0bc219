"""Delivers what is in the outbox: at least once, in order, and to no place twice unless a crash left it in doubt.

Each destination is served by itself, one delivery after the other. What fails is tried again with growing pauses, and
after three days it is given up, visibly. Where many deliveries have waited for long, one takes their place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from msgspec.structs import replace

from holdfast.clock import Clock
from holdfast.notify.channel import GiveUp, NoticeMessage, Result, Sent, TryAgain, Unsure
from holdfast.notify.conversation import doubt_about
from holdfast.notify.destinations import Destination, Destinations
from holdfast.notify.digest import digest_of, still_waiting
from holdfast.notify.notices import OF_THE_GATEWAY
from holdfast.notify.presence import Presence
from holdfast.periodic import PeriodicTask
from holdfast.secrets import Mask
from holdfast.store.outbox_store import (
    ASKING,
    IN_CONVERSATION,
    DeliveryKind,
    DeliveryRow,
    DeliveryState,
    OutboxStore,
    delivery_id,
)
from holdfast.tasks.plain_text import plain

FIRST_PAUSE_MS = 5_000
LONGEST_PAUSE_MS = 3_600_000
SET_BACK_MS = 2 * LONGEST_PAUSE_MS
"""What is due later than this was planned by a clock that has been set back since, unless its destination said so."""
GIVE_UP_MS = 3 * 86_400_000
LEAST_TRIES = 20
"""The least number of tries: the machine may have slept for days, or its clock was wrong."""
KEPT_MS = 30 * 86_400_000
COLLAPSE_ABOVE = 5
COLLAPSE_AGE_MS = 600_000
MOST_IN_ONE = 100_000
LOOK_SECONDS = 30.0
FINISH_SECONDS = 1.5
"""How long a shutdown waits for a message that must not be sent twice."""
log = logging.getLogger(__name__)


class OutboxSender(PeriodicTask):
    """Sends what is due, at intervals and when it is woken."""

    def __init__(
        self,
        outbox: OutboxStore,
        destinations: Destinations,
        *,
        presence: Presence,
        clock: Clock,
        mask: Mask,
        address: Callable[[], str],
    ) -> None:
        """`address` is where people reach the dashboard from elsewhere; empty when they cannot."""
        super().__init__(self._look_for_due, name="the delivery of notifications", every=LOOK_SECONDS)
        self._outbox = outbox
        self._destinations = destinations
        self._presence = presence
        self._clock = clock
        self._mask = mask
        self._address = address
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._pauses: dict[str, float] = {}
        """Until when a destination that failed is left alone."""
        self._alarm: asyncio.TimerHandle | None = None
        self._pruned_at = 0
        self._resumed = self._stopping = False
        self._unrepeatable: set[str] = set()
        """The destinations to which something is being sent now that must not be sent twice."""

    async def stop(self) -> None:
        """Until the next start. A delivery in progress is cut, and tried again then; one that cannot be repeated is
        given a moment.
        """
        await super().stop()
        if self._alarm is not None:
            self._alarm.cancel()
        self._stopping, self._resumed = True, False
        if ending := [self._busy[name] for name in self._unrepeatable]:
            await asyncio.wait(ending, timeout=FINISH_SECONDS)
        for task in self._busy.values():
            task.cancel()
        await asyncio.gather(*self._busy.values(), return_exceptions=True)

    async def _look_for_due(self) -> None:
        now, self._stopping = self._clock.now(), False
        if not self._resumed:
            await self._resume(now)
            self._resumed = True
        self._pauses = {name: until for name, until in self._pauses.items() if until > _monotonic()}
        for name in await self._outbox.due_destinations(at=now, horizon=now + SET_BACK_MS):
            if name not in self._busy and name not in self._pauses:
                self._busy[name] = asyncio.create_task(self._serve(name), name=f"notify {name}")
        if now - self._pruned_at > 86_400_000:
            self._pruned_at = now
            await self._outbox.prune(before=now - KEPT_MS)
        await self._set_alarm(now)

    async def _resume(self, now: int) -> None:
        """Take up what the last gateway was sending when it ended."""
        for row in await self._outbox.interrupted():
            destination = self._destinations.find(row.destination)
            again = destination is None or destination.channel.repeatable or row.kind == "settled"
            state: DeliveryState = "pending" if again else "unsure"
            problem = "the gateway ended while it was being sent"
            if state == "unsure":
                await self._report_doubt(row, now)
            await self._outbox.mark(replace(row, state=state, changed_at=now, error=problem))

    async def _set_alarm(self, now: int) -> None:
        """Wake up when the next delivery is due or a pause is over, if that is before the next look."""
        if self._alarm is not None:
            self._alarm.cancel()
        waits = [until - _monotonic() for until in self._pauses.values()]
        if (at := await self._outbox.next_due(after=now)) is not None:
            waits.append((at - now) / 1000)
        if waits and min(waits) < LOOK_SECONDS:
            self._alarm = asyncio.get_running_loop().call_later(max(0.01, min(waits)), self.wake)

    # --- one destination --------------------------------------------------------------------------

    async def _serve(self, name: str) -> None:
        """Send what is due to a destination, until something fails or nothing is left."""
        try:
            while not self._stopping and (row := await self._next(name)) is not None:
                if not await self._deliver(row):
                    break
        except Exception:
            log.exception("the delivery of notifications to %s failed unexpectedly and is tried again", name)
        finally:
            del self._busy[name]
            self.wake()

    async def _next(self, name: str) -> DeliveryRow | None:
        """The first delivery that is due; many that have waited for long become one."""
        now, destination = self._clock.now(), self._destinations.find(name)
        if destination is None or not destination.is_conversation:
            first = await self._outbox.backlog(name, limit=COLLAPSE_ABOVE + 1)
            if len(first) > COLLAPSE_ABOVE and now - first[0].at > COLLAPSE_AGE_MS:
                return await self._collapse(name, now)
        return await self._outbox.first_due(name, at=now, horizon=now + SET_BACK_MS)

    async def _collapse(self, name: str, now: int) -> DeliveryRow:
        """Replace all deliveries that wait by one; an earlier one of this kind counts as those that it replaced."""
        rows: list[DeliveryRow] = []
        for row in await self._outbox.backlog(name, limit=MOST_IN_ONE):
            rows += await self._outbox.collapsed_into(row.id) if row.kind == "digest" else [row]
        into = digest_of(rows, now=now)
        await self._outbox.collapse(into, reason=f"one notice about {len(rows)} was sent instead")
        return into

    async def _deliver(self, row: DeliveryRow) -> bool:
        """Send one delivery; return whether the next one may be sent now."""
        destination, now = self._destinations.find(row.destination), self._clock.now()
        if destination is None:
            await self._drop(row, "its destination is gone")
            return True
        if row.when_absent:
            await self._presence.refresh(row.stream)
        if row.when_absent and (looked := self._presence.last_look(row.stream)):
            if row.kind not in ASKING and looked >= row.at:
                await self._drop(row, "somebody looked at it")
                return True
            if now < (until := self._presence.until(row.stream)):
                await self._outbox.mark(replace(row, due_at=until, changed_at=now, error="somebody looks at it"))
                return True
        earlier: DeliveryRow | None = None
        if row.kind == "settled":
            earlier = await self._outbox.last_sent(row.destination, row.matter)
            if earlier is None or earlier.state == "unsure" or not destination.channel.reports_settled:
                unsure = earlier is not None and earlier.state == "unsure"
                known = (
                    "this destination is not notified of settled matters" if earlier is not None else "it was not sent"
                )
                await self._drop(row, "whether it was sent is not known" if unsure else known)
                return True
        if destination.pace is not None:
            await destination.pace.wait()
            if all(one.id != row.id for one in await self._outbox.pending(row.destination)):  # settled meanwhile
                return True
        sending = replace(row, state="sending", attempts=row.attempts + 1, changed_at=now, error="")
        await self._outbox.mark(sending)
        if row.kind == "digest":
            waiting, link = still_waiting(await self._outbox.collapsed_into(row.id))
            row = replace(row, summary=f"{row.summary}; {waiting}", link=link)
        if not destination.channel.repeatable:
            self._unrepeatable.add(destination.name)
        try:
            result = await self._send(row, destination, earlier)
            if earlier is not None and not isinstance(result, TryAgain):
                result = await self._settle_copies(row, destination, earlier) or result
            return await self._record(sending, result)
        finally:
            self._unrepeatable.discard(destination.name)

    async def _settle_copies(self, row: DeliveryRow, destination: Destination, earlier: DeliveryRow) -> TryAgain | None:
        """Settle the copies of an earlier notice; return why that has to be tried again, if it has."""
        for copy in await self._outbox.copies(earlier):
            if destination.pace is not None:
                await destination.pace.wait()
            if isinstance(result := await self._send(row, destination, copy), TryAgain):
                return result
        return None

    async def _send(self, row: DeliveryRow, destination: Destination, earlier: DeliveryRow | None) -> Result:
        try:
            return await destination.channel.send(self._message(row, destination, earlier))
        except Exception as error:
            log.exception("the channel to %s failed unexpectedly", row.destination)
            problem = f"It failed unexpectedly ({type(error).__name__}); the log of the gateway says more."
            return TryAgain(problem) if destination.channel.repeatable else Unsure(problem)

    async def _record(self, row: DeliveryRow, result: Result) -> bool:
        now = self._clock.now()
        row = replace(row, changed_at=now)
        if isinstance(result, Sent):
            await self._outbox.mark(replace(row, state="sent", receipt=result.receipt))
            return True
        if isinstance(result, Unsure):
            await self._report_doubt(row, now)
            await self._outbox.mark(replace(row, state="unsure", error=result.problem))
            log.warning("whether a notification to %s arrived is not known: %s", row.destination, result.problem)
            return True
        if isinstance(result, TryAgain) and (now - row.at < GIVE_UP_MS or row.attempts < LEAST_TRIES):
            growing = min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** min(row.attempts - 1, 20))
            pause = min(max(result.after_ms, growing), SET_BACK_MS)
            self._pauses[row.destination] = _monotonic() + pause / 1000
            await self._outbox.mark(replace(row, state="pending", due_at=now + pause, error=result.problem))
            log.info("a notification to %s is tried again: %s", row.destination, result.problem)
            return False
        if isinstance(result, GiveUp):
            problem = " ".join(filter(None, (result.problem, result.hint)))
        else:
            problem = f"given up after 3 days; the last problem: {result.problem}"
        state: DeliveryState = "dropped" if row.kind == "settled" else "failed"  # nobody misses that one
        await self._outbox.mark(replace(row, state=state, error=problem))
        log.warning("a notification to %s was given up: %s", row.destination, problem)
        return True

    async def _report_doubt(self, row: DeliveryRow, now: int) -> None:
        """In a conversation somebody waits for the answer: add a message that it may be missing.

        First, and then it is marked: after a crash in between this is done again, and adds nothing.
        """
        if row.kind == "answer":
            await self._outbox.add(doubt_about(row, now=now))

    async def _drop(self, row: DeliveryRow, reason: str) -> None:
        await self._outbox.mark(replace(row, state="dropped", changed_at=self._clock.now(), error=reason))

    def _message(self, row: DeliveryRow, destination: Destination, earlier: DeliveryRow | None) -> NoticeMessage:
        """The message; for a matter that is settled, with the receipt of the earlier notice."""
        detail = self._mask(_readable(row.detail, row.kind)) if destination.details else ""
        summary = self._mask(_readable(row.summary, row.kind))
        joint = ":\n" if row.kind in OF_THE_GATEWAY else ": "  # what the gateway reports is a list
        address = self._address()
        return NoticeMessage(
            id=row.id,
            matter=row.matter,
            kind=row.kind,
            title=self._mask(_readable(row.title, row.kind)),
            text=f"{summary}{joint}{detail}" if detail else summary,
            link=row.link,
            url=f"{address}{row.link}" if address else "",
            at=row.at,
            receipt="" if earlier is None else earlier.receipt,
            detail=detail,
            wait=row.wait if earlier is None else earlier.wait,
            choices=row.choices if row.detail == detail else [choice for choice in row.choices if choice == "deny"],
        )

    async def send_now(self, destination: Destination, kind: DeliveryKind, text: str) -> Result:
        """Send a message of the gateway itself at once, without the outbox: a test, or that the disk is full."""
        now = self._clock.now()
        message = NoticeMessage(
            id=delivery_id(destination.name, kind, now, kind),
            matter=f"gateway/{kind}",
            kind=kind,
            title="Holdfast",
            text=self._mask(text),
            link="/",
            url=self._address(),
            at=now,
        )
        return await destination.channel.send(message)


def _readable(text: str, kind: DeliveryKind) -> str:
    """Return what an agent wrote without signs that are not seen or that turn the text round.

    Before keys are masked, so that none is hidden between such signs. In a conversation it is sent as it was written.
    """
    return text if kind in IN_CONVERSATION else plain(text.encode("utf-8", "replace"))


def _monotonic() -> float:
    return asyncio.get_running_loop().time()
