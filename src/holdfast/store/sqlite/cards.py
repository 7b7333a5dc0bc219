"""The board as SQLite knows it: what is read of boards, cards and runs."""

from __future__ import annotations

import json

from holdfast.domain.card import Board
from holdfast.store.card_contract import CardFilter, StartQuery
from holdfast.store.rows import CardRow, OpenRun, RunRow, RunWithCost, StartableCard
from holdfast.store.sqlite.fetch import CARD, Fetch


class SqliteCards:
    """Reads the projections."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def boards(self) -> list[Board]:
        """Every board, oldest first."""
        return await self._fetch.rows("list_boards", {}, Board)

    async def counts(self) -> dict[str, int]:
        """How many cards stand on each board that has any."""
        return dict(await self._fetch.values("count_cards", {}))

    async def cards(self, wanted: CardFilter, *, offset: int, limit: int) -> list[CardRow]:
        """A page of cards, most urgent first."""
        where: dict[str, object] = {
            "board": wanted.board,
            "status": wanted.status,
            "profile": wanted.profile,
            "text": wanted.text.lower(),
            "archived": wanted.archived or wanted.status == "archived",
        }
        return await self._fetch.rows("list_cards", where | {"offset": offset, "limit": limit}, CardRow)

    async def card(self, prefix: str) -> CardRow:
        """One card by id or unique prefix."""
        return await self._fetch.by_prefix(CARD, prefix)

    async def for_people(self, profiles: list[str]) -> list[CardRow]:
        """Cards that only a person can move, longest waiting first."""
        return await self._fetch.rows("cards_for_people", {"profiles": json.dumps(profiles)}, CardRow)

    async def to_promote(self, now: int) -> list[str]:
        """Whose time has come, and what waits for nothing any more."""
        return [id for (id,) in await self._fetch.values("cards_to_promote", {"now": now})]

    async def to_start(self, wanted: StartQuery, *, now: int) -> list[StartableCard]:
        """What may be started, most urgent first."""
        where: dict[str, object] = {
            "boards": json.dumps(wanted.boards),
            "profiles": json.dumps(wanted.profiles),
            "but": json.dumps(wanted.but),
            "limit": wanted.limit,
        }
        return await self._fetch.rows("cards_to_start", where | {"now": now}, StartableCard)

    async def running(self) -> list[OpenRun]:
        """Every open run, with the board of its card."""
        return await self._fetch.rows("open_runs", {}, OpenRun)

    async def run_of(self, session: str) -> RunRow | None:
        """The open run that works in a session."""
        return self._fetch.one("run_of_session", {"session": session}, RunRow)

    async def runs(self, card: str) -> list[RunWithCost]:
        """The runs of a card, with what they cost."""
        return await self._fetch.rows("list_runs", {"card": card}, RunWithCost)

    async def parents(self, card: str) -> list[CardRow]:
        """What it waits for."""
        return await self._fetch.rows("parents_of", {"card": card}, CardRow)

    async def children(self, card: str) -> list[CardRow]:
        """What waits for it."""
        return await self._fetch.rows("children_of", {"card": card}, CardRow)

    async def links(self) -> list[tuple[str, str]]:
        """The whole graph: parent and child."""
        return [(parent, child) for parent, child in await self._fetch.values("all_links", {})]
