"""Decides which cards to check, and when. Starting and ending a run is in `run.py`.

It reacts to events, and checks everything every 15 seconds in case it missed one. No run starts while an earlier worker
may still be active: its turn must have ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from holdfast.board.cards import Cards
from holdfast.board.inbox import InboxReader
from holdfast.board.run import Runs, RunTimer
from holdfast.board.startable import Capacity, StartableCards
from holdfast.clock import Clock
from holdfast.domain.errors import HoldfastError, VersionConflict
from holdfast.periodic import FollowerState, PeriodicTask
from holdfast.profiles import Profiles
from holdfast.sessions import Sessions
from holdfast.store.contract import Store
from holdfast.store.duties import Duty
from holdfast.store.log_follower import LogFollower

SWEEP_SECONDS = 15.0
ENDS = frozenset({"TurnFinished", "TaskFinished", "RunBound", "InputWithdrawn", "NodeDrained", "NodeEnded"})
log = logging.getLogger(__name__)


class Dispatcher:
    """Checks open runs, makes waiting cards ready, and starts ready ones."""

    def __init__(
        self,
        store: Store,
        *,
        cards: Cards,
        sessions: Sessions,
        profiles: Profiles,
        clock: Clock,
        timer: RunTimer | None = None,
    ) -> None:
        self._store = store
        self._cards = cards
        self._sessions = sessions
        self._clock = clock
        self.runs = Runs(
            store, cards=cards, sessions=sessions, profiles=profiles, clock=clock, timer=timer or RunTimer()
        )
        self.startable = StartableCards(store, cards=cards, runs=self.runs, profiles=profiles, clock=clock)
        self.inbox = InboxReader(store, cards=cards, startable=self.startable, profiles=profiles, clock=clock)
        self._rounds = PeriodicTask(self.run_once, name="the dispatcher", every=SWEEP_SECONDS)
        self._cleaning = PeriodicTask(self.clean_workspaces, name="workspaces", every=SWEEP_SECONDS)
        self._duty = Duty(store, "board")
        self._looking = asyncio.Lock()
        self._follower = LogFollower(
            store, self._react, wanted=_concerns, name="the board", sweep=self._wake, sweep_seconds=SWEEP_SECONDS
        )

    async def start(self) -> None:
        """Run a round at once, then whenever something changes."""
        self._rounds.start()
        self._cleaning.start()
        await self._follower.start()

    async def stop(self) -> None:
        """Stop starting and checking runs; the runner stops the workers."""
        await self._rounds.stop()
        await self._cleaning.stop()
        await self._follower.stop()

    @property
    def states(self) -> list[FollowerState]:
        """The health of the log follower and of the rounds."""
        return [self._follower.state, self._rounds.state, self._cleaning.state]

    async def _react(self, stream: str, _kinds: set[str]) -> None:
        if stream.startswith(("card/", "board/")):
            self._rounds.wake()
        else:
            session = stream.removeprefix("session/")
            # a session without a card does not concern the board
            if session == stream or (await self._sessions.get(session)).card:
                self._rounds.wake()

    async def _wake(self) -> None:
        self._rounds.wake()

    async def run_once(self) -> None:
        """Run one round, if the board is ours: check open runs, make cards ready, start those that can be."""
        if not await self._duty.is_ours():
            return
        with self._duty.at_work():
            await self._check_all()
        if self._cards.to_clean:
            self._cleaning.wake()

    async def _check_all(self) -> None:
        async with self._looking:  # the limits count open runs
            running = await self._store.cards.open_runs()
            self.runs.only(running)
            for row in running:
                await self._guarded(row.card, self.runs.check)
            for card in await self._store.cards.to_promote(self._clock.now()):
                await self._guarded(card, self.startable.promote)
            await self._start()

    async def _start(self) -> None:
        """Start as many cards as the limits allow; those that start together share a commit."""
        tried: list[str] = []
        while True:
            capacity = await self.startable.capacity()
            ready = await self.startable.most_urgent(capacity, exclude=tried)
            if not ready:
                return
            tried += ready
            await asyncio.gather(*(self._guarded(card, partial(self._start_one, capacity=capacity)) for card in ready))

    async def _start_one(self, id: str, capacity: Capacity) -> None:
        card = await self._cards.get(id)
        if card.status == "ready" and not await self.startable.why_not_with(card, capacity):
            try:
                await self.runs.start(card)
            except VersionConflict as error:
                log.info("card %s was not started: %s", id, error)
                self._rounds.wake()

    async def clean_workspaces(self) -> None:
        """Remove workspaces that were kept while a worker was active. Not part of a round, since git may be slow."""
        for card in sorted(self._cards.to_clean):
            await self._guarded(card, self._cards.clean_later)

    async def _guarded(self, card: str, check: Callable[[str], Awaitable[None]]) -> None:
        """Log an error about one card, so that the round continues with the others."""
        try:
            await check(card)
        except (HoldfastError, OSError) as error:
            log.warning("card %s could not be checked; it is checked again later: %s", card, error)
        except Exception:
            log.exception("card %s could not be checked because of a bug; it is checked again later", card)


def _concerns(stream: str, kind: str) -> bool:
    """Return whether an event may end a run or allow another to start."""
    return kind in ENDS or stream.startswith(("card/", "board/"))
