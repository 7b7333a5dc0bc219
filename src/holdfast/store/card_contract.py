"""The contract of a store, as far as the board is concerned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from holdfast.domain.card import Board
from holdfast.store.rows import CardRow, OpenRun, RunRow, RunWithCost, StartableCard


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFilter:
    """Which cards; what is empty fits everything."""

    board: str = ""
    status: str = ""
    profile: str = ""
    text: str = ""
    archived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StartQuery:
    """Where there is room for a run."""

    boards: list[str]
    profiles: list[str]
    limit: int
    but: list[str]
    """Cards that were tried already."""


class CardReads(Protocol):
    """The projections of boards, cards and runs."""

    async def boards(self) -> list[Board]:
        """Every board, oldest first."""
        ...

    async def counts(self) -> dict[str, int]:
        """How many cards stand on each board that has any."""
        ...

    async def cards(self, wanted: CardFilter, *, offset: int, limit: int) -> list[CardRow]:
        """A page of cards, most urgent first."""
        ...

    async def card(self, prefix: str) -> CardRow:
        """One card by id or unique prefix. NotFound, or Conflict if it fits several."""
        ...

    async def for_people(self, profiles: list[str]) -> list[CardRow]:
        """Cards that only a person can move, longest waiting first: blocked, in review, or never started as they are.

        `profiles` are those that there are.
        """
        ...

    async def to_promote(self, now: int) -> list[str]:
        """Whose time has come, and what waits for nothing any more."""
        ...

    async def to_start(self, wanted: StartQuery, *, now: int) -> list[StartableCard]:
        """What may be started, most urgent first."""
        ...

    async def running(self) -> list[OpenRun]:
        """Every open run, with the board of its card."""
        ...

    async def run_of(self, session: str) -> RunRow | None:
        """The open run that works in a session."""
        ...

    async def runs(self, card: str) -> list[RunWithCost]:
        """The runs of a card, with what they cost."""
        ...

    async def parents(self, card: str) -> list[CardRow]:
        """What it waits for."""
        ...

    async def children(self, card: str) -> list[CardRow]:
        """What waits for it."""
        ...

    async def links(self) -> list[tuple[str, str]]:
        """The whole graph: parent and child."""
        ...
