"""Decides which cards to check, and when. Starting and ending a run is in `run.py`.

It reacts to events, and checks everything every 15 seconds in case it missed one. No run starts while an earlier worker
may still be active: its turn must have ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from holdfast.board.cards import CardChange, Cards
from holdfast.board.cleanup import WorkspaceCleanup
from holdfast.board.inbox import InboxReader
from holdfast.board.run import Runs, RunTimer
from holdfast.board.startable import Capacity, StartableCards
from holdfast.clock import Clock
from holdfast.domain.card import Card
from holdfast.domain.errors import HoldfastError, VersionConflict
from holdfast.domain.events.actor import THE_BOARD
from holdfast.domain.events.card import RunAssigned
from holdfast.periodic import FollowerState, PeriodicTask
from holdfast.profiles import Profiles
from holdfast.sessions import Sessions
from holdfast.store.contract import Store
from holdfast.store.duties import Duty
from holdfast.store.log_follower import LogFollower

SWEEP_SECONDS = 15.0
ENDS = frozenset(
    {"TurnFinished", "TaskFinished", "RunBound", "InputWithdrawn", "GatewayStarted", "NodeDrained", "NodeEnded"}
)
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
        nodes = cards.nodes
        self.runs = Runs(
            store,
            cards=cards,
            sessions=sessions,
            profiles=profiles,
            nodes=nodes,
            clock=clock,
            timer=timer or RunTimer(),
        )
        self.startable = StartableCards(store, cards=cards, runs=self.runs, profiles=profiles, nodes=nodes, clock=clock)
        self.inbox = InboxReader(
            store,
            cards=cards,
            startable=self.startable,
            sessions=sessions,
            profiles=profiles,
            nodes=nodes,
            clock=clock,
        )
        self.cleanup = WorkspaceCleanup(store, cards=cards, nodes=nodes)
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

    async def _react(self, stream: str, kinds: set[str]) -> None:
        if "CardMoved" in kinds:
            self.cleanup.note_moved(stream.removeprefix("card/"))
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
        """Start the cards that are for this node; if the board is ours, check runs and cards, and start what can be."""
        if self._store.is_shared and not self._store.is_draining:
            await self._start_assigned()
        if await self._duty.is_ours():
            with self._duty.at_work():
                await self._check_all()
        if self.cleanup.pending:
            self._cleaning.wake()

    async def _check_all(self) -> None:
        async with self._looking:  # the limits count open runs
            running = await self._store.cards.open_runs()
            self.runs.keep_only(running)
            for row in running:
                await self._guarded(row.card, self.runs.check)
            for card in await self._store.cards.to_promote(self._clock.now()):
                await self._guarded(card, self.startable.promote)
            if self._store.is_shared:
                for assigned in await self._store.cards.assigned():
                    await self._guarded(assigned.id, self._take_back)
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
            chosen = capacity.node_for(await self.runs.bound(card), own=self._store.node)
            if chosen == self._store.node:
                await self._start_here(card)
            else:
                await self._assign(card, chosen)

    async def _start_here(self, card: Card) -> None:
        try:
            await self.runs.start(card)
        except VersionConflict as error:
            log.info("card %s was not started: %s", card.id, error)
            self._rounds.wake()

    # --- cards for other nodes ------------------------------------------------------------------

    async def _assign(self, card: Card, node: str) -> None:
        """Leave the start of a run to another node, which has its workspace. Until then it counts as running."""
        if await self._cards.write(CardChange(card, [RunAssigned(card=card.id, node=node)], THE_BOARD)):
            log.info("card %s: node %s is to start it", card.label, node)

    async def _take_back(self, id: str) -> None:
        """Take a card back from a node that is away, is being drained or does not fit any more."""
        card = await self._cards.get(id)
        capacity = await self.startable.capacity(besides=id)
        placement = await self.runs.bound(card)
        if card.assigned and not any(
            node.name == card.assigned and node.takes_work and placement.fits(node) for node in capacity.nodes
        ):
            await self._assign(card, "")

    async def _start_assigned(self) -> None:
        """Start the cards that the board has assigned to this node."""
        for row in await self._store.cards.assigned():
            if row.node == self._store.node:
                await self._guarded(row.id, self._start_one_assigned)

    async def _start_one_assigned(self, id: str) -> None:
        card = await self._cards.get(id)
        capacity = await self.startable.capacity(besides=id)
        if card.assigned == self._store.node and not await self.startable.why_not_with(card, capacity):
            await self._start_here(card)

    async def clean_workspaces(self) -> None:
        """Remove workspaces that were kept while a worker was active. Not part of a round, since git may be slow."""
        for card in sorted(self.cleanup.pending):
            await self._guarded(card, self.cleanup.clean_later)

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
