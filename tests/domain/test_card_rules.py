"""What a command means for a card as it is now: what is refused, and what is not."""

from __future__ import annotations

import pytest

from holdfast.domain.card import Card, fold_card
from holdfast.domain.card_rules import decide_card
from holdfast.domain.commands import (
    ArchiveCard,
    BlockCard,
    CardCommand,
    CommentCard,
    CompleteCard,
    EditCard,
    FollowCard,
    LinkCard,
    MoveCard,
    RetryCard,
    StopCard,
    UnblockCard,
    UnlinkCard,
)
from holdfast.domain.errors import Conflict
from holdfast.domain.events import Record, card_stream
from holdfast.domain.events.card import CardCreated, CardEvent
from tests.actors import person

ID, OTHER = "c0ffee01", "c0ffee02"
NOW = 1_000


def card(*commands: CardCommand) -> Card:
    """A card that is ready, after these commands."""
    made = CardCreated(card=ID, board="default", title="t", body="", by=person("ann"), status="ready", profile="demo")
    found = _after(Card(ID), [made])
    for command in commands:
        found = _after(found, tell(found, command))
    return found


def _after(card: Card, events: list[CardEvent]) -> Card:
    numbered = enumerate(events, card.version + 1)
    return fold_card(
        card, [Record(seq=n, stream=card_stream(ID), version=n, at=NOW, event=event) for n, event in numbered]
    )


def tell(card: Card, command: CardCommand) -> list[CardEvent]:
    return decide_card(card, command, id="c1", by=person("ann"), now=NOW)


@pytest.mark.parametrize(
    "command",
    [
        EditCard(title="new"),
        LinkCard(parent=OTHER),
        UnlinkCard(parent=OTHER),
        FollowCard(session="s"),
        BlockCard(reason="wait"),
        UnblockCard(),
        StopCard(),
        CompleteCard(),
        ArchiveCard(),
    ],
    ids=lambda command: type(command).__name__,
)
def test_an_archived_card_refuses_what_does_not_bring_it_back(command: CardCommand) -> None:
    with pytest.raises(Conflict, match=r"^It is archived\.$") as refused:
        tell(card(ArchiveCard()), command)
    assert "holdfast card retry" in refused.value.hint


@pytest.mark.parametrize(
    ("command", "status"),
    [(RetryCard(), "ready"), (MoveCard(status="todo"), "todo"), (CommentCard(text="why?"), "archived")],
)
def test_an_archived_card_is_brought_back_by_a_retry_or_a_move_and_takes_comments(
    command: CardCommand, status: str
) -> None:
    assert card(ArchiveCard(), command).status == status


def test_the_first_reason_of_a_block_stays() -> None:
    with pytest.raises(Conflict, match="It is blocked already: which colour"):
        tell(card(BlockCard(reason="which colour?")), BlockCard(reason="something else"))


def test_what_is_done_is_not_blocked() -> None:
    with pytest.raises(Conflict, match="It is done already"):
        tell(card(CompleteCard(summary="all of it")), BlockCard(reason="wait"))


def test_what_is_blocked_can_be_completed_but_not_moved() -> None:
    blocked = card(BlockCard(reason="which colour?"))
    assert card(BlockCard(reason="which colour?"), CompleteCard()).status == "done"
    with pytest.raises(Conflict, match="which colour"):
        tell(blocked, MoveCard(status="todo"))
