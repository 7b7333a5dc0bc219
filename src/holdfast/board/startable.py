"""Which cards can be started now, and why others cannot.

`not_startable_reason` decides; the query before it only skips cards that their row already excludes.
"""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from holdfast.board.cards import CardChange, Cards
from holdfast.board.run import Runs
from holdfast.clock import Clock, elapsed
from holdfast.domain.card import Board, Card
from holdfast.domain.commands import EditCard
from holdfast.domain.dispatch import Advice, Parent, StartConditions, advice, not_startable_reason
from holdfast.domain.errors import Conflict
from holdfast.domain.events.actor import THE_BOARD
from holdfast.domain.events.card import CardMoved, ResumePolicy
from holdfast.domain.placement import KnownNode, Placement
from holdfast.nodes import Nodes
from holdfast.profiles import Profiles
from holdfast.store.contract import Store
from holdfast.store.reads import StartQuery
from holdfast.store.rows import AssignedCard, CardRow, OpenRun, StartableCard


class Capacity:
    """How many cards are running and how many more may; computed once per round."""

    def __init__(
        self,
        running: list[OpenRun],
        assigned: list[AssignedCard],
        boards: list[Board],
        profiles: Profiles,
        nodes: list[KnownNode],
    ) -> None:
        self._rules = profiles.settings.board
        self._boards = {board.id: board for board in boards}
        self._profiles = frozenset(profiles.names)
        self.nodes = nodes
        active: list[OpenRun | AssignedCard] = [*running, *assigned]  # a node prepares those, or is about to
        self._running = len(active)
        self._on_board = Counter(row.board for row in active)
        self._with_profile = Counter(row.profile for row in active)
        self._on_node = Counter(row.node for row in active)

    def conditions_for(
        self,
        card: Card,
        *,
        waits_for: list[str],
        previous_worker: str,
        policy: ResumePolicy,
        refused: str,
        waits_for_node: str,
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
            waits_for_node=waits_for_node,
        )

    def node_for(self, placement: Placement, *, own: str) -> str:
        """Return the node that is to start a card: of those that fit and take work the one with the fewest runs.

        Without any condition it is this node.
        """
        fitting = [node.name for node in self.nodes if node.takes_work and placement.fits(node)]
        if placement.is_free or not fitting:
            return own
        return min(fitting, key=lambda name: (self._on_node[name], name != own, name))

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

    def __init__(
        self, store: Store, *, cards: Cards, runs: Runs, profiles: Profiles, nodes: Nodes, clock: Clock
    ) -> None:
        self._store = store
        self._cards = cards
        self._runs = runs
        self._profiles = profiles
        self._nodes = nodes
        self._clock = clock

    async def capacity(self, *, besides: str = "") -> Capacity:
        """Return the current capacity, without what a card takes that was assigned."""
        cards = self._store.cards
        assigned = [row for row in await cards.assigned() if row.id != besides] if self._store.is_shared else []
        boards, nodes = await cards.boards(), await self._nodes.all()
        return Capacity(await cards.open_runs(), assigned, boards, self._profiles, nodes)

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
            waits_for_node=await self._waits_for_node(card, capacity),
        )
        return not_startable_reason(card, conditions, now=self._clock.now())

    async def _waits_for_node(self, card: Card, capacity: Capacity) -> str:
        if card.status != "ready":
            return ""
        if card.assigned and card.assigned != self._store.node:
            return f"Node {card.assigned} is about to start it."
        return (await self._runs.bound(card)).why_waits(capacity.nodes)

    async def waits_for_node(self, card: Card, nodes: list[KnownNode]) -> str:
        """Return for which node a card has waited for more than a short while; empty if it has not."""
        placement = await self._runs.bound(card)
        return self._nodes.why_waits_long(placement, nodes, waited_ms=elapsed(self._clock, card.moved.at))

    async def advice(self, card: Card, *, waits_for_node: str = "") -> Advice | None:
        """Return what a person can do about a card; None if it needs no person."""
        parents = await self._parents(card)
        dead = [Parent(row.label, row.title) for row in parents if row.status == "archived" and not row.done]
        return advice(
            card,
            profiles=frozenset(self._profiles.names),
            dead_parents=dead,
            refused=await self._runs.why_resume_is_refused(card),
            waits_for_node=waits_for_node,
        )

    async def check_node(self, card: Card, command: EditCard) -> None:
        """Refuse to let a card run on another node than the one that alone has its directory or its agent."""
        if not command.node or command.node == card.node:
            return
        await self._nodes.check(command.node)
        nodes = await self._nodes.all()
        placement = await self._runs.bound(replace(card, node=command.node))
        if placement.bound_to and not any(placement.fits(node) for node in nodes):
            hint = f"`holdfast card retry {card.label} --fresh` starts a new session; then the card can be moved."
            raise Conflict(f"It stays on node {placement.bound_to}: {placement.bound_because}.", hint=hint)
        _, _, path = card.workspace.partition(":")
        of_node = any(node.name == card.node for node in nodes)
        if path and of_node and command.workspace is None and (why := await self._nodes.shared.why_private(path)):
            hint = (
                f"`holdfast card edit {card.label} --node {command.node} --workspace WHERE` says where it works there."
            )
            raise Conflict(f"It stays on node {card.node}: {why}.", hint=hint)

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
