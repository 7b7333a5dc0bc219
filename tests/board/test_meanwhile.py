"""The dispatcher looks, reads something more, and writes. What people did to the card in between is what counts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from holdfast.domain.commands import (
    ArchiveCard,
    BlockCard,
    CardCommand,
    CompleteCard,
    MoveCard,
    SendMessage,
    StopCard,
    UnblockCard,
)
from holdfast.domain.events import session_stream
from holdfast.domain.events.actor import TaskActor
from holdfast.domain.events.card import CardBlocked, CardStatus, RunFinished, RunReminded
from holdfast.domain.events.session import InputReceived
from holdfast.store.contract import Append, Write
from tests.board.history import check_card
from tests.board.rig import BoardRig

CARD, PARENT, OTHER = "c0ffee01", "c0ffee02", "c0ffee03"
P = ParamSpec("P")
T = TypeVar("T")


def then(read: Callable[P, Awaitable[T]], act: Callable[[], Awaitable[object]]) -> Callable[P, Awaitable[T]]:
    """The same, but something happens before it answers; once."""
    left = [act]

    async def answer(*words: P.args, **named: P.kwargs) -> T:
        found = await read(*words, **named)
        if left:
            await left.pop()()
        return found

    return answer


async def begun(rig: BoardRig) -> None:
    await rig.create(CARD)
    await rig.look()
    hand = await rig.worker(CARD)
    await hand.begin()
    await hand.calls("kanban_heartbeat")
    await rig.look()


async def test_a_run_that_a_person_ended_is_not_ended_by_its_time_as_well(
    rig: BoardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second end of one run could not even be read any more."""
    (rig.home / "config.toml").write_text('[board]\nmax_runtime = "30s"\n')
    await begun(rig)
    rig.awake_seconds += 60
    monkeypatch.setattr(rig.store, "partial", then(rig.store.partial, lambda: rig.tell(CARD, StopCard())))
    await rig.look()
    card = check_card(await rig.records(CARD))
    (end,) = [event for event in await rig.events(CARD) if isinstance(event, RunFinished)]
    assert (card.status, end.outcome, end.failure) == ("blocked", "stopped", "")


async def test_a_worker_that_just_blocked_is_not_reported_as_left(
    rig: BoardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begun(rig)
    hand = await rig.worker(CARD)
    get = rig.sessions.get

    async def blocks() -> None:
        monkeypatch.setattr(rig.sessions, "get", get)
        await hand.calls("kanban_block", reason="which colour?")
        await hand.end()
        await hand.state()

    monkeypatch.setattr(rig.sessions, "get", then(get, blocks))
    await rig.look()
    card = check_card(await rig.records(CARD))
    assert (card.status, card.reason) == ("blocked", "which colour?")
    assert sum(isinstance(event, RunFinished) for event in await rig.events(CARD)) == 1


async def test_a_card_that_was_archived_is_not_promoted(rig: BoardRig, monkeypatch: pytest.MonkeyPatch) -> None:
    await rig.create(PARENT, profile=None)
    await rig.create(CARD, parents=[PARENT])
    await rig.tell(PARENT, CompleteCard())
    parents = then(rig.store.cards.parents, lambda: rig.tell(CARD, ArchiveCard()))
    monkeypatch.setattr(rig.store.cards, "parents", parents)
    await rig.look()
    assert (await rig.card(CARD)).status == "archived"


TAKEN_AWAY: list[tuple[CardCommand, CardStatus]] = [
    (ArchiveCard(), "archived"),
    (BlockCard(reason="which colour?"), "blocked"),
    (CompleteCard(), "done"),
    (MoveCard(status="triage"), "triage"),
]


@pytest.mark.parametrize(("command", "status"), TAKEN_AWAY)
async def test_a_card_that_is_taken_away_while_the_round_reads_what_it_may_promote_stays_away(
    rig: BoardRig, monkeypatch: pytest.MonkeyPatch, command: CardCommand, status: CardStatus
) -> None:
    await rig.create(PARENT, profile=None)
    await rig.create(CARD, parents=[PARENT])
    await rig.tell(PARENT, CompleteCard())
    monkeypatch.setattr(
        rig.store.cards, "to_promote", then(rig.store.cards.to_promote, lambda: rig.tell(CARD, command))
    )
    await rig.look()
    card = await rig.card(CARD)
    assert (card.status, card.runs) == (status, ())


async def test_a_card_whose_time_has_come_is_not_promoted_after_it_was_blocked(
    rig: BoardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.create(CARD, at=rig.clock.now() + 1_000)
    rig.move_clock(2_000)
    block = then(rig.store.cards.to_promote, lambda: rig.tell(CARD, BlockCard(reason="which colour?")))
    monkeypatch.setattr(rig.store.cards, "to_promote", block)
    await rig.look()
    card = await rig.card(CARD)
    assert (card.status, card.reason, card.runs) == ("blocked", "which colour?", ())


@pytest.mark.parametrize(("command", "status"), [*TAKEN_AWAY, (MoveCard(status="triage"), "triage")])
async def test_a_card_that_is_taken_away_while_the_round_reads_what_it_may_start_is_not_started(
    rig: BoardRig, monkeypatch: pytest.MonkeyPatch, command: CardCommand, status: CardStatus
) -> None:
    await rig.create(CARD)
    await rig.create(OTHER)
    monkeypatch.setattr(rig.store.cards, "to_start", then(rig.store.cards.to_start, lambda: rig.tell(CARD, command)))
    await rig.look()
    card = await rig.card(CARD)
    assert (card.status, card.runs) == (status, ())
    assert (await rig.card(OTHER)).status == "running"


async def test_a_worker_is_not_reminded_when_a_command_of_its_has_just_ended(
    rig: BoardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is about to read of that, and may report on the card then."""
    await begun(rig)
    hand = await rig.worker(CARD)
    await hand.end()
    get = rig.sessions.get
    ended = InputReceived(input="task-1", text="it ended", mode="queue", by=TaskActor(task="1"), source="task")

    async def ends() -> None:
        monkeypatch.setattr(rig.sessions, "get", get)
        await rig.store.append(Append((Write(session_stream(hand.session), (ended,)),), rig.clock.now()))

    monkeypatch.setattr(rig.sessions, "get", then(get, ends))
    await rig.look()
    assert [queued.event for queued in (await hand.state()).queue] == [ended]
    assert not any(isinstance(event, RunReminded) for event in await rig.events(CARD))


async def test_a_card_that_was_completed_is_not_blocked_by_its_workspace(
    rig: BoardRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = tmp_path / "place"
    context.mkdir()
    await rig.create(CARD, workspace=f"dir:{context}")
    context.rmdir()
    ending = then(rig.cards.processes.end_all, lambda: rig.tell(CARD, CompleteCard(summary="by hand")))
    monkeypatch.setattr(rig.cards.processes, "end_all", ending)
    await rig.look()
    assert (await rig.card(CARD)).status == "done"
    assert not any(isinstance(event, CardBlocked) for event in await rig.events(CARD))


async def test_a_message_in_its_session_is_answered_before_the_run_begins(
    rig: BoardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begun(rig)
    hand = await rig.worker(CARD)
    await hand.calls("kanban_block", reason="which colour?")
    await hand.end()
    await rig.tell(CARD, UnblockCard(text="blue"))

    async def speaks() -> None:
        await rig.say(hand.session, SendMessage(text="what did you find?"))
        await hand.begin()
        await hand.state()

    monkeypatch.setattr(rig.store, "running_tasks", then(rig.store.running_tasks, speaks))
    await rig.look()
    assert (await rig.card(CARD)).run is None
    await hand.end()
    await rig.look()
    run = (await rig.card(CARD)).run
    assert run is not None and (run.started.session, run.started.after_turn) == (hand.session, 2)
