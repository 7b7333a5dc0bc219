"""The dispatcher looks, reads something more, and writes. What people did to the card in between is what counts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from holdfast.domain.card_commands import ArchiveCard, CompleteCard, StopCard, UnblockCard
from holdfast.domain.commands import SendMessage
from holdfast.domain.events.card import CardBlocked, RunFinished
from tests.board.history import check_card
from tests.board.rig import BoardRig

CARD, PARENT = "c0ffee01", "c0ffee02"
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
    rig.seconds += 60
    monkeypatch.setattr(rig.store, "partial", then(rig.store.partial, lambda: rig.tell(CARD, StopCard())))
    await rig.look()
    card = check_card(await rig.records(CARD))
    (end,) = [event for event in await rig.events(CARD) if isinstance(event, RunFinished)]
    assert (card.status, end.outcome, end.failure) == ("blocked", "stopped", "")


async def test_a_worker_that_just_blocked_is_not_told_to_have_left(
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


async def test_a_card_that_was_completed_is_not_blocked_by_its_workspace(
    rig: BoardRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = tmp_path / "place"
    context.mkdir()
    await rig.create(CARD, workspace=f"dir:{context}")
    context.rmdir()
    ending = then(rig.cards.end_processes, lambda: rig.tell(CARD, CompleteCard(summary="by hand")))
    monkeypatch.setattr(rig.cards, "end_processes", ending)
    await rig.look()
    assert (await rig.card(CARD)).status == "done"
    assert not any(isinstance(event, CardBlocked) for event in await rig.events(CARD))


async def test_a_person_who_speaks_in_its_session_is_answered_before_the_run_begins(
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
