"""What a command means for a card as it is now: what is refused, and what is not."""

from __future__ import annotations

import pytest

from holdfast.domain.card import Board, Card, fold_card
from holdfast.domain.card_rules import decide_board, decide_card
from holdfast.domain.commands import (
    ArchiveBoard,
    ArchiveCard,
    BlockCard,
    BoardCommand,
    CardCommand,
    CommentCard,
    CompleteCard,
    CreateBoard,
    EditCard,
    FollowCard,
    LinkCard,
    MoveCard,
    PauseBoard,
    ResumeBoard,
    RetryCard,
    StopCard,
    UnblockCard,
    UnlinkCard,
)
from holdfast.domain.errors import Conflict, HoldfastError, NotFound, Rejected
from holdfast.domain.events import Record, card_stream
from holdfast.domain.events.card import CardCreated, CardEvent, RunStarted
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


@pytest.mark.parametrize(
    ("before", "command", "refusal"),
    [
        ([], LinkCard(parent=ID), Rejected("A card cannot wait for itself.")),
        ([LinkCard(parent=OTHER)], LinkCard(parent=OTHER), Conflict("It already waits for that card.")),
        ([], UnlinkCard(parent=OTHER), Conflict("It does not wait for that card.")),
        ([], EditCard(), Rejected("There is nothing to change.")),
        ([], CommentCard(text=" \n"), Rejected("The comment is empty.")),
        ([], UnblockCard(), Conflict("It is not blocked; it has been ready for 0 s.")),
        ([], StopCard(), Conflict("The card is not running, so there is nothing to stop.")),
        ([CompleteCard()], CompleteCard(), Conflict("It is done already.")),
        ([], MoveCard(status="done"), Rejected("A card is not moved to done by hand.")),
        ([], MoveCard(status="ready"), Conflict("It is in ready already.")),
        ([], MoveCard(status="todo", at=NOW + 1), Rejected("`at` is only for the status `scheduled`, which needs it.")),
        ([], MoveCard(status="scheduled"), Rejected("`at` is only for the status `scheduled`, which needs it.")),
        ([], MoveCard(status="scheduled", at=NOW), Rejected("That time has passed.")),
    ],
    ids=lambda value: value.message if isinstance(value, HoldfastError) else "",
)
def test_what_makes_no_sense_is_refused(
    before: list[CardCommand], command: CardCommand, refusal: HoldfastError
) -> None:
    with pytest.raises(type(refusal)) as refused:
        tell(card(*before), command)
    assert refused.value.message == refusal.message


def test_a_card_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(NotFound, match=f"There is no card {ID}"):
        tell(Card(ID), CommentCard(text="hello"))


def test_a_card_waits_for_others_until_it_is_unlinked() -> None:
    waits = card(LinkCard(parent=OTHER), LinkCard(parent="c0ffee03"))
    assert waits.parents == (OTHER, "c0ffee03")
    assert card(LinkCard(parent=OTHER), LinkCard(parent="c0ffee03"), UnlinkCard(parent=OTHER)).parents == ("c0ffee03",)


def test_a_card_can_be_rescheduled() -> None:
    scheduled = card(MoveCard(status="scheduled", at=NOW + 1), MoveCard(status="scheduled", at=NOW + 2))
    assert (scheduled.status, scheduled.scheduled_at) == ("scheduled", NOW + 2)


def running() -> Card:
    started = RunStarted(
        card=ID,
        run=1,
        session="s",
        task="t",
        profile="demo",
        resumed_run=0,
        after_turn=0,
        workspace="",
        workspace_state="",
    )
    return _after(card(), [started])


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (EditCard(title="new"), "its worker has read it"),
        (EditCard(body="new", priority=3), "its worker has read it"),
        (MoveCard(status="ready"), "The card is running."),
        (RetryCard(), "The card is running."),
        (UnblockCard(), "It is not blocked: it has been running for 0 s. A comment reaches its worker."),
    ],
)
def test_changes_that_do_not_reach_a_worker_are_refused_while_it_works(command: CardCommand, words: str) -> None:
    with pytest.raises(Conflict) as refused:
        tell(running(), command)
    assert words in refused.value.message


@pytest.mark.parametrize("command", [EditCard(priority=3), EditCard(max_attempts=2), EditCard(max_runtime_ms=60_000)])
def test_what_the_worker_need_not_know_is_changed_while_it_works(command: EditCard) -> None:
    (edited,) = tell(running(), command)
    assert type(edited).__name__ == "CardEdited"


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (MoveCard(status="todo"), "todo"),
        (MoveCard(status="review"), "review"),
        (BlockCard(reason="wait"), "blocked"),
        (StopCard(reason="too slow"), "blocked"),
        (CompleteCard(summary="by hand"), "done"),
        (ArchiveCard(), "archived"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_promise_2_a_card_that_is_taken_from_its_worker_has_no_open_run(command: CardCommand, status: str) -> None:
    after = _after(running(), tell(running(), command))
    assert (after.status, after.run) == (status, None)
    ended = after.runs[-1].finished
    assert ended is not None and ended.outcome == "stopped" and "ann" in ended.reason


# --- boards -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("board", "command", "runs", "refusal"),
    [
        (Board("b", "B", 1, 1), CreateBoard(board="b"), False, Conflict("Board b exists already.")),
        (None, PauseBoard(), False, NotFound("There is no board 'b'.")),
        (Board("b", "B", 1, 1, paused_by="eve"), PauseBoard(), False, Conflict("It is paused already, by eve.")),
        (Board("b", "B", 1, 1), ResumeBoard(), False, Conflict("It is neither paused nor archived.")),
        (Board("b", "B", 1, 1, archived=True), ArchiveBoard(), False, Conflict("It is archived already.")),
        (Board("b", "B", 1, 1), ArchiveBoard(), True, Conflict("Cards of this board are running.")),
    ],
    ids=lambda value: value.message if isinstance(value, HoldfastError) else "",
)
def test_what_makes_no_sense_for_a_board_is_refused(
    board: Board | None, command: BoardCommand, runs: bool, refusal: HoldfastError
) -> None:
    with pytest.raises(type(refusal)) as refused:
        decide_board("b", board, command, by=person("ann"), runs=runs)
    assert refused.value.message == refusal.message
