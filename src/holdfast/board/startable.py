"""Which cards can be started now, and why others cannot.

`not_startable_reason` decides; the query before it only skips cards that their row already excludes.
"""

from __future__ import annotations

from collections import Counter

from holdfast.board.cards import CardChange, Cards
from holdfast.board.run import Runs
from holdfast.clock import Clock
from holdfast.domain.card import Board, Card
from holdfast.domain.dispatch import Advice, Parent, StartConditions, advice, not_startable_reason
from holdfast.domain.events.actor import THE_BOARD
from holdfast.domain.events.card import CardMoved, ResumePolicy
from holdfast.profiles import Profiles
from holdfast.store.contract import Store
from holdfast.store.reads import StartQuery
from holdfast.store.rows import CardRow, OpenRun, StartableCard


class Capacity:
    """How many cards are running and how many more may; computed once per round."""

    def __init__(self, running: list[OpenRun], boards: list[Board], profiles: Profiles) -> None:
        self._rules = profiles.settings.board
        self._boards = {board.id: board for board in boards}
        self._profiles = frozenset(profiles.names)
        self._running = len(running)
        self._on_board = Counter(row.board for row in running)
        self._with_profile = Counter(row.profile for row in running)

    def conditions_for(
        self, card: Card, *, waits_for: list[str], previous_worker: str, policy: ResumePolicy, refused: str
    ) -> StartConditions:
        """Return the conditions, besides the card itself, that decide whether it is started."""
        board = self._boards.get(card.board)
        return StartConditions(
            paused_by="" if board is None else board.paused_by,
            board_gone=board is not None and board.archived,
            profiles=self._profiles,
            waits_for=waits_for,
            running=self._running,
            max_running=self._rules.max_running,
            on_board=self._on_board[card.board],
            max_per_board=self._rules.max_per_board,
            with_profile=self._with_profile[card.profile],
            max_per_profile=self._rules.max_per_profile,
            previous_worker=previous_worker,
            policy=policy,
            refused=refused,
        )

    def wanted(self, *, exclude: list[str]) -> StartQuery | None:
        """Return the query for cards that the limits allow; None when they allow none."""
        on_board, with_profile = self._rules.max_per_board, self._rules.max_per_profile
        boards = [
            id
            for id, board in self._boards.items()
            if not (board.archived or board.paused_by) and not 0 < on_board <= self._on_board[id]
        ]
        profiles = [name for name in self._profiles if not 0 < with_profile <= self._with_profile[name]]
        left = self._rules.max_running - self._running
        if left <= 0 or not boards or not profiles:
            return None
        return StartQuery(boards=boards, profiles=profiles, limit=left, exclude=exclude)

    def that_fit(self, found: list[StartableCard]) -> list[str]:
        """Return the cards that can be started together; always the first one."""
        on_board, with_profile = self._on_board.copy(), self._with_profile.copy()
        fit: list[str] = []
        for row in found:
            board, profile = row.board, row.profile
            on_board[board] += 1
            with_profile[profile] += 1
            if not 0 < self._rules.max_per_board < on_board[board] and not (
                0 < self._rules.max_per_profile < with_profile[profile]
            ):
                fit.append(row.id)
        return fit


class StartableCards:
    """Finds cards that can be started, and explains why others cannot."""

    def __init__(self, store: Store, *, cards: Cards, runs: Runs, profiles: Profiles, clock: Clock) -> None:
        self._store = store
        self._cards = cards
        self._runs = runs
        self._profiles = profiles
        self._clock = clock

    async def capacity(self) -> Capacity:
        """Return the current capacity."""
        return Capacity(await self._store.cards.open_runs(), await self._store.cards.boards(), self._profiles)

    async def most_urgent(self, capacity: Capacity, *, exclude: list[str]) -> list[str]:
        """Return the most urgent cards that can be started together."""
        wanted = capacity.wanted(exclude=exclude)
        return (
            [] if wanted is None else capacity.that_fit(await self._store.cards.to_start(wanted, now=self._clock.now()))
        )

    async def why_not_with(self, card: Card, capacity: Capacity) -> str:
        """Return why a card is not started with this capacity; empty when it can be."""
        waits, previous_worker = await self._waits_for(card), await self._cards.processes.previous_worker(card)
        refused = await self._runs.why_resume_is_refused(card)
        conditions = capacity.conditions_for(
            card,
            waits_for=waits,
            previous_worker=previous_worker,
            policy=self._runs.resume_policy(card),
            refused=refused,
        )
        return not_startable_reason(card, conditions, now=self._clock.now())

    async def advice(self, card: Card) -> Advice | None:
        """Return what a person can do about a card; None if it needs no person."""
        parents = await self._parents(card)
        dead = [Parent(row.label, row.title) for row in parents if row.status == "archived" and not row.done]
        return advice(
            card,
            profiles=frozenset(self._profiles.names),
            dead_parents=dead,
            refused=await self._runs.why_resume_is_refused(card),
        )

    async def _parents(self, card: Card) -> list[CardRow]:
        # most cards have none, and a query for each of a thousand costs the inbox 0.1 s
        return await self._store.cards.parents(card.id) if card.parents else []

    async def _waits_for(self, card: Card) -> list[str]:
        return [_named(row, card) for row in await self._parents(card) if not row.done]

    async def why_not(self, card: Card) -> str:
        """Return why a card is not started; empty when it is about to be."""
        return await self.why_not_with(card, await self.capacity())

    async def why_not_started(self, cards: list[Card]) -> dict[str, str]:
        """Return `why_not` for many cards, by their ids."""
        capacity = await self.capacity() if cards else None
        return {card.id: await self.why_not_with(card, capacity) for card in cards if capacity is not None}

    async def promote(self, id: str) -> None:
        """Make a card ready when its parents are done or its scheduled time has come."""
        card, now = await self._cards.get(id), self._clock.now()
        if card.scheduled_at is not None and card.scheduled_at <= now:
            reason = "its scheduled time has come"
        elif card.status == "todo" and not await self._waits_for(card):
            reason = "all cards that it waited for are done"
        else:
            return  # it has just changed
        moved = CardMoved(card=id, status="ready", reason=reason, by=THE_BOARD)
        await self._cards.write(CardChange(card, [moved], THE_BOARD))


def _named(parent: CardRow, card: Card) -> str:
    """Return the name of a parent card, with what to do if it will never be done."""
    named = f"card {parent.label} “{parent.title}”"
    if parent.status == "archived":
        unlink = f"`holdfast card unlink {card.label} {parent.label}`"
        return f"{named} (archived before it was done; {unlink} removes the link)"
    return f"{named} ({parent.status})"
