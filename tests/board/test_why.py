"""Promise 5: every card that is not started has a reason."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.domain.commands import (
    ArchiveBoard,
    ArchiveCard,
    BlockCard,
    CommentCard,
    CompleteCard,
    CreateBoard,
    EditCard,
    LinkCard,
    MoveCard,
    PauseBoard,
    ResumeBoard,
    RetryCard,
    StopCard,
)
from holdfast.domain.dispatch import run_verdict
from holdfast.domain.errors import Conflict, Rejected
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import NoteReceived, WaitOpened
from holdfast.domain.why import why_card
from tests.board.rig import BoardRig
from tests.eventually import PATIENCE

CARD, OTHER = "c0ffee01", "c0ffee02"
HOUR = 3_600_000


async def why(rig: BoardRig, card: str = CARD) -> str:
    await rig.look()
    state = await rig.card(card)
    assert state.run is None
    return why_card(state, await rig.dispatcher.startable.why_not(state), None, now=rig.clock.now())[0].text


async def one_that_runs(rig: BoardRig, card: str = OTHER, **more: Any) -> None:
    await rig.create(card, **more)
    await rig.look()
    assert (await rig.card(card)).run is not None


async def test_no_profile_and_an_unknown_one(rig: BoardRig) -> None:
    await rig.create(CARD, profile=None)
    assert "It has no profile" in await why(rig)
    await rig.create(OTHER, profile="nobody")
    assert "There is no profile 'nobody'; there is: demo" in await why(rig, OTHER)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("max_running = 1", "1 card is running, which is the limit (max_running = 1)"),
        ("max_per_board = 1", "1 card of its board is running, which is the limit (max_per_board)"),
        ("max_per_profile = 1", "1 card with profile demo is running, which is the limit (max_per_profile)"),
    ],
)
async def test_every_limit(rig: BoardRig, config: str, words: str) -> None:
    (rig.home / "config.toml").write_text(f"[board]\n{config}\n")
    await one_that_runs(rig)
    await rig.create(CARD)
    assert words in await why(rig)


async def test_priority_decides_who_is_first(rig: BoardRig) -> None:
    (rig.home / "config.toml").write_text("[board]\nmax_running = 1\n")
    await rig.create(OTHER)
    await rig.create(CARD, priority=5)
    await rig.look()
    assert (await rig.card(CARD)).run is not None
    assert "max_running" in await why(rig, OTHER)


async def test_a_paused_board(rig: BoardRig) -> None:
    await rig.cards.execute_board("", CreateBoard(board="work"), rig.caller())
    await rig.cards.execute_board("work", PauseBoard(), rig.caller())
    await rig.create(CARD, board="work")
    assert "Its board work is paused by ann" in await why(rig)


async def test_an_archived_board_and_the_way_back(rig: BoardRig) -> None:
    await rig.create(CARD, triage=True)
    await rig.cards.execute_board("default", ArchiveBoard(), rig.caller())
    await rig.tell(CARD, MoveCard(status="ready"))
    assert "Its board default is archived (`holdfast board resume default`)" in await why(rig)
    with pytest.raises(Conflict, match="archived already"):
        await rig.cards.execute_board("default", ArchiveBoard(), rig.caller())
    with pytest.raises(Conflict, match="The board default is archived") as refused:
        await rig.create(OTHER)
    assert "holdfast board resume default" in refused.value.hint
    await rig.cards.execute_board("default", ResumeBoard(), rig.caller())
    await rig.look()
    assert (await rig.card(CARD)).run is not None
    with pytest.raises(Conflict, match="neither paused nor archived"):
        await rig.cards.execute_board("default", ResumeBoard(), rig.caller())


async def test_triage_scheduled_blocked_and_in_review(rig: BoardRig) -> None:
    await rig.create(CARD, triage=True)
    assert "It is in triage" in await why(rig)
    await rig.tell(CARD, MoveCard(status="scheduled", at=rig.clock.now() + HOUR))
    assert "It is scheduled: it becomes ready in 1 h" in await why(rig)
    await rig.tell(CARD, BlockCard(reason="the key is missing", kind="capability"))
    assert "It is blocked (capability): the key is missing" in await why(rig)
    await rig.tell(CARD, RetryCard())
    await rig.tell(CARD, MoveCard(status="review"))
    assert "It is in review" in await why(rig)


async def test_a_scheduled_card_starts_when_its_time_has_come(rig: BoardRig) -> None:
    await rig.create(CARD, at=rig.clock.now() + HOUR)
    await rig.look()
    assert (await rig.card(CARD)).status == "scheduled"
    rig.move_clock(HOUR)
    await rig.look()
    assert (await rig.card(CARD)).run is not None


async def test_a_card_waits_for_its_parents_and_is_promoted_when_all_are_done(rig: BoardRig) -> None:
    third = "c0ffee03"
    for parent in (OTHER, third):
        await rig.create(parent, profile=None)
    await rig.create(CARD, parents=[OTHER, third])
    assert (await rig.card(CARD)).status == "todo"
    text = await why(rig)
    assert f"It waits for card HF-1 “card {OTHER}” (ready), card HF-2" in text
    await rig.tell(OTHER, CompleteCard())
    assert "It waits for card HF-2" in await why(rig)
    await rig.tell(third, CompleteCard())
    await rig.look()
    assert (await rig.card(CARD)).run is not None


async def test_a_parent_that_was_done_is_done_in_the_archive_too(rig: BoardRig) -> None:
    (rig.home / "config.toml").write_text("[board]\nmax_running = 0\n")
    await rig.create(OTHER, profile=None)
    await rig.create(CARD, parents=[OTHER])
    await rig.tell(OTHER, CompleteCard())
    assert "max_running" in await why(rig)
    await rig.tell(OTHER, ArchiveCard())
    assert "max_running" in await why(rig)
    await rig.create("c0ffee03", parents=[OTHER])
    assert (await rig.card("c0ffee03")).status == "ready"
    (rig.home / "config.toml").write_text("[board]\nmax_running = 1\n")
    await rig.look()
    assert (await rig.card(CARD)).run is not None
    await rig.tell(OTHER, MoveCard(status="triage"))
    assert f"It waits for card HF-1 “card {OTHER}” (triage)" in await why(rig, "c0ffee03"), "taken up again"


async def test_a_parent_that_was_never_done_says_how_to_continue_without_it(rig: BoardRig) -> None:
    await rig.create(OTHER, profile=None)
    await rig.create(CARD, parents=[OTHER])
    await rig.tell(OTHER, ArchiveCard())
    assert "(archived before it was done; `holdfast card unlink HF-2 HF-1` removes the link)" in await why(rig)


async def test_a_card_that_waits_for_nothing_cannot_be_moved_to_todo(rig: BoardRig) -> None:
    """The board would make it ready again at once; one that runs would even be stopped and started again."""
    await rig.create(OTHER, profile=None)
    await rig.create(CARD, parents=[OTHER], profile=None)
    await rig.tell(CARD, MoveCard(status="ready"))
    await rig.tell(CARD, MoveCard(status="todo"))
    await rig.tell(OTHER, CompleteCard())
    await rig.look()
    for status in ("ready", "triage"):
        assert (await rig.card(CARD)).status == status
        with pytest.raises(Conflict, match="HF-2 does not wait for another card, so the board would move it from todo"):
            await rig.tell(CARD, MoveCard(status="todo"))
        if status == "ready":
            await rig.tell(CARD, MoveCard(status="triage"))


async def test_a_circle_is_refused_with_its_path(rig: BoardRig) -> None:
    ids = ["aaaa0001", "aaaa0002", "aaaa0003"]
    for id in ids:
        await rig.create(id, profile=None)
    await rig.tell(ids[1], LinkCard(parent=ids[0]))
    await rig.tell(ids[2], LinkCard(parent=ids[1]))
    with pytest.raises(Conflict, match="HF-1 → HF-3 → HF-2 → HF-1"):
        await rig.tell(ids[0], LinkCard(parent=ids[2]))
    with pytest.raises(Conflict, match="HF-1 → HF-1"):
        await rig.tell(ids[0], LinkCard(parent=ids[0]))
    for number in range(20):
        one, two = f"b{number:07x}", f"d{number:07x}"
        await rig.create(one, profile=None)
        await rig.create(two, profile=None)
        links = rig.tell(one, LinkCard(parent=two)), rig.tell(two, LinkCard(parent=one))
        both = await asyncio.gather(*links, return_exceptions=True)
        assert sum(isinstance(told, Conflict) for told in both) == 1, (
            "of two that make a circle together, one is refused"
        )


async def test_cooling_down_and_a_clock_that_is_set_back(rig: BoardRig) -> None:
    await one_that_runs(rig, CARD)
    hand = await rig.worker(CARD)
    await hand.begin()
    await hand.calls("kanban_heartbeat")
    await hand.end("failed", "network")
    text = await why(rig)
    assert "It is tried again in 1 min 0 s, after: It was network" in text
    card = await rig.card(CARD)
    assert (card.attempts, card.failures) == (0, 1)
    for status in ("triage", "ready"):
        await rig.tell(CARD, MoveCard(status=status))
    assert "It is tried again in 1 min 0 s, after: It was network" in await why(rig), "not after having been moved"
    rig.move_clock(-1000 * HOUR)
    await rig.look()
    assert (await rig.card(CARD)).run is not None, "it does not wait for weeks"


async def test_loops_are_broken_and_explained(rig: BoardRig) -> None:
    await rig.create(CARD)
    for _ in range(3):
        await rig.look()
        hand = await rig.worker(CARD)
        await hand.begin()
        await hand.calls("kanban_heartbeat")
        await hand.end("failed", "step_limit")
        await rig.look()
    assert "3 of 3 attempts were used" in await why(rig)


async def test_infrastructure_is_tried_again_ten_times_and_costs_nothing(rig: BoardRig) -> None:
    await rig.create(CARD, resume="fresh")
    for _ in range(10):
        await rig.look()
        hand = await rig.worker(CARD)
        await hand.begin()
        await hand.end("failed", "network")
        await rig.look()
        rig.move_clock(HOUR)
    card = await rig.card(CARD)
    assert card.attempts == 0
    assert "10 times in a row" in await why(rig)
    assert card.block is not None and card.block.block_kind == "transient"


async def test_a_quota_waits_until_it_is_reset(rig: BoardRig) -> None:
    await one_that_runs(rig, CARD)
    card = await rig.card(CARD)
    problem = Problem(code="quota", message="used up", after_ms=5 * HOUR)
    found = run_verdict(card, outcome="failed", reason="used up", problem=problem, limit=3, now=0)
    assert (found.failure, found.again_at, found.counts) == ("quota", 5 * HOUR, False)


async def test_a_permanent_error_of_the_provider_blocks(rig: BoardRig) -> None:
    await one_that_runs(rig, CARD)
    hand = await rig.worker(CARD)
    await hand.begin()
    await hand.end("failed", "wrong_key")
    assert "It is blocked (capability): It was wrong_key" in await why(rig)


async def test_a_worker_that_ends_without_result_is_asked_once(rig: BoardRig) -> None:
    await one_that_runs(rig, CARD)
    hand = await rig.worker(CARD)
    await hand.begin()
    await hand.end()
    await rig.look()
    assert "the card is still open" in await hand.begin()
    await hand.end()
    await rig.look()
    card = await rig.card(CARD)
    finished = card.runs[0].finished
    assert finished is not None and (finished.failure, finished.uses_attempt) == ("left_without_a_word", True)


async def test_old_work_waits_for_a_person_as_a_blocked_card(rig: BoardRig) -> None:
    """A gateway that was down for long: the turn does not wake up by itself; the card says so and can be unblocked."""
    await one_that_runs(rig, CARD)
    hand = await rig.worker(CARD)
    await hand.begin()
    await hand.calls("kanban_heartbeat")
    reason = "it was interrupted 10 h 0 min ago, too long to be resumed automatically"
    await hand.write(WaitOpened(turn=1, wait="w", purpose="resume", reason=reason))
    await rig.look()
    card = await rig.card(CARD)
    assert (card.status, card.reason, card.attempts) == ("blocked", reason, 0)
    await hand.end("stopped")
    await rig.tell(CARD, RetryCard())
    await rig.look()
    card = await rig.card(CARD)
    assert card.run is not None and card.run.started.resumed_run == 1


async def test_a_running_card_cannot_be_edited_nor_retried_nor_promoted(rig: BoardRig) -> None:
    await one_that_runs(rig, CARD)
    for command in (EditCard(body="else"), RetryCard(), MoveCard(status="ready")):
        with pytest.raises(Conflict, match="The card is running"):
            await rig.tell(CARD, command)
    with pytest.raises(Rejected):
        await rig.tell(CARD, CommentCard(text="  "))
    await rig.tell(CARD, EditCard(priority=3))
    await rig.tell(CARD, StopCard(reason="enough"))
    with pytest.raises(Conflict):
        await rig.tell(CARD, StopCard())


async def test_time_is_what_was_seen_and_not_what_a_clock_says(rig: BoardRig) -> None:
    await one_that_runs(rig, CARD)
    hand = await rig.worker(CARD)
    await hand.begin()
    await rig.look()
    rig.move_clock(100 * HOUR)
    rig.awake_seconds += 100 * 3600  # stopped with SIGSTOP: at most a minute of it counts
    await rig.look()
    await rig.look()
    assert (await rig.card(CARD)).run is not None
    for _ in range(5 * 60):
        rig.awake_seconds += 60
        await hand.write(NoteReceived(text="a sign of life", task=""))
        await rig.look()
    finished = (await rig.card(CARD)).runs[0].finished
    assert finished is not None and (finished.failure, finished.uses_attempt) == ("timeout", True)


async def test_a_card_names_the_end_of_its_run_once(rig: BoardRig) -> None:
    await one_that_runs(rig, CARD)
    hand = await rig.worker(CARD)
    await hand.begin()
    await hand.calls("kanban_block", reason="which colour?")
    await hand.end()
    told = [one.text for one in why_card(await rig.card(CARD), "", None, now=rig.clock.now())]
    assert told[-1].startswith("Run 1 ended ")
    assert told[-1].endswith(" ago and used up no attempt: blocked (needs input): which colour?")


async def test_a_dispatcher_that_is_stopped_in_the_moment_of_an_event_stops(rig: BoardRig) -> None:
    await rig.dispatcher.start()
    for _ in range(20):
        await asyncio.sleep(0)
    rig.dispatcher._rounds.wake()
    async with asyncio.timeout(PATIENCE):
        await rig.dispatcher.stop()
