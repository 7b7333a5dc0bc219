"""The dispatcher: starts cards that are ready, and settles the runs whose turns have ended.

Woken by events, with a slow sweep as a belt. It keeps nothing in memory that the log does not say: a run that was
open when the gateway died is open, its session's turn goes on by itself, and it is the same run.
No run starts while an old worker may still be there: its turn must have ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from holdfast.board.cards import CardChange, Cards
from holdfast.board.inbox import InboxReader
from holdfast.board.run_timer import RunTimer
from holdfast.board.starter import Starter
from holdfast.clock import Clock
from holdfast.domain.card import Card, Run
from holdfast.domain.dispatch import REMINDER, RunVerdict, run_verdict, timed_out
from holdfast.domain.errors import HoldfastError
from holdfast.domain.events import session_stream
from holdfast.domain.events.actor import THE_BOARD
from holdfast.domain.events.card import CardBlocked, CardEvent, RunFinished, RunOutcome, RunReminded
from holdfast.domain.events.session import InputReceived
from holdfast.domain.session import Session
from holdfast.domain.text import duration
from holdfast.follower_state import FollowerState
from holdfast.periodic import PeriodicTask
from holdfast.profiles import Profiles
from holdfast.sessions import Sessions
from holdfast.settings import span_ms
from holdfast.store.contract import Store, Write
from holdfast.store.log_follower import LogFollower

SWEEP_SECONDS = 15.0
ENDS = frozenset({"TurnFinished", "TaskFinished", "RunBound", "InputWithdrawn"})
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Open:
    """A card with its open run."""

    card: Card
    run: Run


class Dispatcher:
    """Starts and settles runs."""

    def __init__(
        self,
        store: Store,
        *,
        cards: Cards,
        sessions: Sessions,
        profiles: Profiles,
        clock: Clock,
        watch: RunTimer | None = None,
    ) -> None:
        self._store = store
        self._cards = cards
        self._sessions = sessions
        self._profiles = profiles
        self._clock = clock
        self._watch = watch or RunTimer()
        self._rounds = PeriodicTask(self.run_once, name="the dispatcher", every=SWEEP_SECONDS)
        self.starter = Starter(
            store, cards=cards, sessions=sessions, profiles=profiles, clock=clock, wake=self._rounds.wake
        )
        self.inbox = InboxReader(store, cards=cards, starter=self.starter, profiles=profiles, clock=clock)
        self._looking = asyncio.Lock()
        self._follower = LogFollower(
            store, self._react, wanted=_concerns, name="the board", sweep=self._wake, sweep_seconds=SWEEP_SECONDS
        )

    async def start(self) -> None:
        """Run a round at once, then whenever something changes."""
        self._rounds.start()
        await self._follower.start()

    async def stop(self) -> None:
        """Stop starting and settling runs; the runner stops the workers."""
        await self._rounds.stop()
        await self._follower.stop()

    @property
    def states(self) -> list[FollowerState]:
        """The health of the log follower and of the rounds."""
        return [self._follower.state, self._rounds.state]

    async def _react(self, stream: str, _kinds: set[str]) -> None:
        if stream.startswith(("card/", "board/")):
            self._rounds.wake()
        else:
            session = stream.removeprefix("session/")
            if (
                session == stream or (await self._sessions.get(session)).card
            ):  # a session without a card does not concern the board
                self._rounds.wake()

    async def _wake(self) -> None:
        self._rounds.wake()

    async def run_once(self) -> None:
        """One round: settle what has ended, promote what became ready, start what can be started."""
        async with self._looking:  # the limits count the runs that are open
            running = await self._store.cards.open_runs()
            self._watch.only({(row.card, row.run) for row in running})
            for row in running:
                await self._one(row.card, self._settle)
            for card in await self._store.cards.to_promote(self._clock.now()):
                await self._one(card, self.starter.promote)
            await self._start()
            for card in sorted(self._cards.to_clean):
                await self._one(card, self._cards.clean_later)

    async def _start(self) -> None:
        """Start as many cards as the limits allow; those that start together share a commit."""
        tried: list[str] = []
        while True:
            capacity = await self.starter.capacity()
            ready = await self.starter.ready(capacity, exclude=tried)
            if not ready:
                return
            tried += ready
            await asyncio.gather(
                *(self._one(card, partial(self.starter.start_if_possible, capacity=capacity)) for card in ready)
            )

    async def _one(self, card: str, look: Callable[[str], Awaitable[None]]) -> None:
        """Log an error about one card, so that the round goes on with the others."""
        try:
            await look(card)
        except (HoldfastError, OSError) as error:
            log.warning("card %s is looked at again later: %s", card, error)
        except Exception:
            log.exception("a bug about card %s; it is looked at again later", card)

    # --- settling -------------------------------------------------------------------------------

    async def _settle(self, id: str) -> None:
        card, now = await self._cards.get(id), self._clock.now()
        run = card.run
        if run is None:
            return
        seen = _Open(card, run)
        session = await self._sessions.get(run.started.session)
        if not session.exists:
            lost = f"its session {session.id} was deleted"
            await self._end(seen, RunVerdict("lost", lost, counts=False), outcome="lost")
            return
        if session.turn is not None or session.queue:
            await self._check_limits(seen, session, now)
            return
        last = session.last_turn
        if last is None or session.turns <= run.started.after_turn:
            return  # its first turn is about to begin
        limit = card.max_attempts or self._profiles.settings.board.max_attempts
        found = run_verdict(card, outcome=last.outcome, reason=last.reason, problem=last.problem, limit=limit, now=now)
        if found.remind:
            await self._remind(seen, session)
        else:
            await self._end(seen, found, outcome="stopped" if last.outcome == "stopped" else "failed")

    async def _check_limits(self, seen: _Open, session: Session, now: int) -> None:
        """End a run that takes too long, makes no progress, or waits for a person to resume it."""
        card, rules = seen.card, self._profiles.settings.board
        turn = session.turn
        wait = None if turn is None else turn.wait
        if wait is not None and wait.purpose == "resume":
            await self._end(seen, RunVerdict("", wait.reason, block="needs_input"), outcome="stopped")
            return
        limit = card.max_attempts or rules.max_attempts
        partial = await self._store.partial(session_stream(session.id))
        sign = (session.version, 0 if partial is None else partial.at)
        waits = turn is None or wait is not None or bool(turn.suspended)
        worked, still = self._watch.look((card.id, seen.run.number), sign, waits=waits)
        most = card.max_runtime_ms or span_ms(rules.max_runtime) or 0
        if most and worked > most:
            reason = f"it worked for {duration(worked)}, longer than max_runtime ({duration(most)})"
            await self._end(seen, timed_out(card, "timeout", reason, limit=limit, now=now), outcome="failed")
            return
        frozen = span_ms(rules.frozen_after) or 0
        if frozen and still > frozen and turn is not None and not turn.open_calls:
            reason = f"nothing moved for {duration(still)} (frozen_after)"
            await self._end(seen, timed_out(card, "frozen", reason, limit=limit, now=now), outcome="failed")

    async def _remind(self, seen: _Open, session: Session) -> None:
        """Ask the worker once to report on the card, in a turn of its own."""
        card, run = seen.card.id, seen.run.number
        asked = InputReceived(
            input=f"nudge-{card}-{run}", text=REMINDER, mode="queue", by=THE_BOARD, source="reminder", ref=card
        )
        also = Write(session_stream(session.id), (asked,), expect=session.version)
        nudged = RunReminded(card=card, run=run)
        await self._cards.write(CardChange(seen.card, [nudged], THE_BOARD), also)

    async def _end(self, seen: _Open, found: RunVerdict, *, outcome: RunOutcome) -> None:
        card, run = seen.card.id, seen.run.number
        events: list[CardEvent] = [
            RunFinished(
                card=card,
                run=run,
                outcome=outcome,
                reason=found.reason,
                failure=found.failure,
                uses_attempt=found.counts,
                retry_at=found.again_at,
            )
        ]
        if found.block is not None:
            events.append(CardBlocked(card=card, block_kind=found.block, reason=found.reason, by=THE_BOARD, run=run))
        if await self._cards.write(CardChange(seen.card, events, THE_BOARD)):
            log.info("card %s: run %d ended as %s: %s", card, run, outcome, found.reason)


def _concerns(stream: str, kind: str) -> bool:
    """Return whether an event may have ended a run, or made another one possible."""
    return kind in ENDS or stream.startswith(("card/", "board/"))
