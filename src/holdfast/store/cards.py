"""The board as SQLite knows it: what is read of boards, cards and runs."""

from __future__ import annotations

import json
from collections.abc import Callable

from holdfast.domain.errors import Conflict, NotFound
from holdfast.store.card_contract import CardFilter, StartQuery
from holdfast.store.contract import Row
from holdfast.store.devices import Rows


class SqliteCards:
    """Reads the projections."""

    def __init__(self, rows: Rows, one: Callable[[str, dict[str, object]], Row | None]) -> None:
        self._rows = rows
        self._one = one

    async def boards(self) -> list[Row]:
        """Every board, oldest first."""
        return await self._rows("list_boards", {})

    async def counts(self) -> dict[str, int]:
        """How many cards stand on each board that has any."""
        return {str(row["board"]): int(str(row["cards"])) for row in await self._rows("count_cards", {})}

    async def cards(self, wanted: CardFilter, *, offset: int, limit: int) -> list[Row]:
        """A page of cards, most urgent first."""
        where: dict[str, object] = {
            "board": wanted.board,
            "status": wanted.status,
            "profile": wanted.profile,
            "text": wanted.text.lower(),
            "archived": wanted.archived or wanted.status == "archived",
        }
        return await self._rows("list_cards", where | {"offset": offset, "limit": limit})

    async def card(self, prefix: str) -> Row:
        """One card by id or unique prefix."""
        found = await self._rows("find_cards", {"prefix": prefix, "beyond": prefix + "g"})
        exact = [row for row in found if row["id"] == prefix] or found
        if not exact:
            raise NotFound(f"There is no card {prefix}.", hint="`holdfast card list` lists them.")
        if len(exact) > 1:
            listed = ", ".join(str(row["id"]) for row in exact)
            raise Conflict(f"{prefix} fits several cards: {listed}.", hint="Give more characters.")
        return exact[0]

    async def for_people(self, profiles: list[str]) -> list[Row]:
        """Cards that only a person can move, longest waiting first."""
        return await self._rows("cards_for_people", {"profiles": json.dumps(profiles)})

    async def to_promote(self, now: int) -> list[str]:
        """Whose time has come, and what waits for nothing any more."""
        return [str(row["id"]) for row in await self._rows("cards_to_promote", {"now": now})]

    async def to_start(self, wanted: StartQuery, *, now: int) -> list[Row]:
        """What may be started, most urgent first."""
        where: dict[str, object] = {
            "boards": json.dumps(wanted.boards),
            "profiles": json.dumps(wanted.profiles),
            "but": json.dumps(wanted.but),
            "limit": wanted.limit,
        }
        return await self._rows("cards_to_start", where | {"now": now})

    async def running(self) -> list[Row]:
        """Every open run, with the board of its card."""
        return await self._rows("cards_running", {})

    async def run_of(self, session: str) -> Row | None:
        """The open run that works in a session."""
        return self._one("run_of_session", {"session": session})

    async def runs(self, card: str) -> list[Row]:
        """The runs of a card, with what they cost."""
        return await self._rows("list_runs", {"card": card})

    async def parents(self, card: str) -> list[Row]:
        """What it waits for."""
        return await self._rows("parents_of", {"card": card})

    async def children(self, card: str) -> list[Row]:
        """What waits for it."""
        return await self._rows("children_of", {"card": card})

    async def links(self) -> list[tuple[str, str]]:
        """The whole graph: parent and child."""
        return [(str(row["parent"]), str(row["child"])) for row in await self._rows("all_links", {})]
