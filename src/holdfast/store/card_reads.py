"""Reads of boards, cards and runs, the same for every engine (`reads.py`)."""

from __future__ import annotations

from dataclasses import asdict

from holdfast.domain.card import Board
from holdfast.domain.card_number import card_label, parse_card_number
from holdfast.domain.errors import Conflict, NotFound
from holdfast.store.reads import SHORTEST_PREFIX, CardFilter, Fetch, RowKind, StartQuery, id_range
from holdfast.store.rows import AssignedCard, CardRow, OpenRun, RunRow, RunWithCost, StartableCard

_CARD = RowKind("card", CardRow, "get_card", "find_cards", "`holdfast card list` lists them.")


class CardReads:
    """Reads boards, cards and runs."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def boards(self) -> list[Board]:
        """Every board, oldest first."""
        return await self._fetch.rows("list_boards", Board)

    async def counts(self) -> dict[str, int]:
        """How many cards each board has, without empty boards."""
        return dict(await self._fetch.values("count_cards"))

    async def card(self, name: str) -> CardRow:
        """One card by its number (`HF-118`, or `118` if no id begins so), its id or a unique prefix of its id.

        NotFound, or Conflict if it fits several.
        """
        said = parse_card_number(name)
        if said is None:
            return await _CARD.look_up(self._fetch, name.lower())
        row = await self._fetch.row("get_card_by_number", CardRow, number=said.number)
        if said.has_prefix:
            if row is None:
                raise NotFound(f"There is no card {card_label(said.number, '')}.", hint=_CARD.hint)
            return row
        if row is None:
            return await _CARD.look_up(self._fetch, name)
        ids = [id for id, *_ in await self._fetch.values("find_cards", **id_range(name))]
        others = [id for id in ids if id != row.id] if len(name) >= SHORTEST_PREFIX else []
        if name in others:
            return await _CARD.look_up(self._fetch, name)
        if others:
            what = f"{name} is the number of card {row.label} and the beginning of the id {others[0]}."
            raise Conflict(what, hint=f"Write {row.label}, or more of the id.")
        return row

    async def cards(self, wanted: CardFilter, *, offset: int, limit: int) -> list[CardRow]:
        """A page of cards, most urgent first."""
        return await self._fetch.rows(
            "list_cards",
            CardRow,
            board=wanted.board,
            status=wanted.status,
            profile=wanted.profile,
            text=wanted.text.casefold(),
            archived=wanted.archived or wanted.status == "archived",
            offset=offset,
            limit=limit,
        )

    async def for_people(self, profiles: list[str]) -> list[CardRow]:
        """Cards that only a person can move, longest waiting first. `profiles` are those that there are."""
        return await self._fetch.rows("cards_for_people", CardRow, profiles=profiles)

    async def to_promote(self, now: int) -> list[str]:
        """The cards whose scheduled time has come, and those that no longer wait for another card."""
        return [id for (id,) in await self._fetch.values("cards_to_promote", now=now)]

    async def to_start(self, wanted: StartQuery, *, now: int) -> list[StartableCard]:
        """What may be started, most urgent first."""
        return await self._fetch.rows("cards_to_start", StartableCard, now=now, **asdict(wanted))

    async def assigned(self) -> list[AssignedCard]:
        """The cards that a node is to start."""
        return await self._fetch.rows("assigned_cards", AssignedCard)

    async def for_nodes(self, profiles: list[str], *, hosts: bool) -> list[CardRow]:
        """Cards that may wait for a node: they or these profiles ask for one, or, with `hosts`, they ran before."""
        return await self._fetch.rows("cards_for_nodes", CardRow, profiles=profiles, hosts=hosts)

    async def open_runs(self) -> list[OpenRun]:
        """Every open run, with the board of its card."""
        return await self._fetch.rows("open_runs", OpenRun)

    async def open_run_of(self, session: str) -> RunRow | None:
        """The open run that works in a session."""
        return await self._fetch.row("open_run_of", RunRow, session=session)

    async def runs(self, card: str) -> list[RunWithCost]:
        """The runs of a card, with what they cost."""
        return await self._fetch.rows("list_runs", RunWithCost, card=card)

    async def parents(self, card: str) -> list[CardRow]:
        """What it waits for."""
        return await self._fetch.rows("parents_of", CardRow, card=card)

    async def children(self, card: str) -> list[CardRow]:
        """What waits for it."""
        return await self._fetch.rows("children_of", CardRow, card=card)

    async def links(self) -> list[tuple[str, str]]:
        """The whole graph: parent and child."""
        return [(parent, child) for parent, child in await self._fetch.values("all_links")]
