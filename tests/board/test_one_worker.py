"""Promise 2 on the board: a worker whose run was ended can no longer change its card."""

from __future__ import annotations

import asyncio
import random
import secrets
from pathlib import Path

import pytest

from holdfast.domain.commands import BlockCard, CommentCard, MoveCard, RetryCard, SendMessage, StopCard, UnblockCard
from holdfast.domain.errors import Conflict, Fenced
from holdfast.domain.events.card import CardCompleted, RunFinished
from holdfast.domain.events.parts import Call
from holdfast.domain.events.session import InputReceived, InputWithdrawn, StopRequested, ToolCallFinished
from holdfast.domain.history import ToolResult
from holdfast.domain.session import Session
from tests.board.history import check_card
from tests.board.rig import BoardRig, ManualWorker
from tests.eventually import eventually
from tests.rig import StoppedClock
from tests.store.rebuilt import check_projections

CARD = "c0ffee01"
NIGHT = 10 * 3_600_000


async def frozen(rig: BoardRig, card: str) -> tuple[ManualWorker, Call]:
    """A worker with a call in its hands that nobody has seen moving for long; its run is over, its turn is closed."""
    await rig.look()
    old = await rig.worker(card)
    await old.begin()
    await old.calls("kanban_heartbeat", note="at it")
    call = await old.wants("kanban_complete", summary="from the old worker")
    other = await ManualWorker(rig, old.run).take()  # the lease is somebody else's from now on
    await other.write(
        ToolCallFinished(
            turn=(await old.state()).turns,
            call=call.call,
            tool=call.tool,
            outcome="unknown",
            output="cut",
            duration_ms=0,
        )
    )
    for _ in range(40):
        rig.awake_seconds += 60
        await rig.look()
    state = await rig.card(card)
    assert state.run is None
    finished = state.runs[-1].finished
    assert finished is not None
    assert (finished.failure, finished.uses_attempt, finished.progress) == ("frozen", False, True)
    await other.end("stopped")
    return old, call


async def freeze_and_wake(home: Path, count: int, seed: int) -> tuple[int, int]:
    """So many cards whose worker freezes and wakes up in the middle of the next run. Completions, and refusals."""
    chance = random.Random(seed)
    clock = StoppedClock(1_800_000_000_000)
    rig = BoardRig(home, clock=clock, config="[board]\nmax_running = 1000\n")
    completions = refusals = 0
    for number in range(count):
        card = await rig.create(f"c{number:07x}", "do it")
        old, call = await frozen(rig, card)
        clock.move(NIGHT)
        if chance.random() < 0.5:
            await rig.tell(card, RetryCard(fresh=True))
        await rig.look()
        new = await rig.worker(card)
        await new.begin()

        async def wakes(old: ManualWorker = old, call: Call = call, pause: int = chance.randrange(4)) -> None:
            for _ in range(pause):
                await asyncio.sleep(0)
            nonlocal refusals
            refusals += (await old.carry_out(call)).outcome == "failed"
            with pytest.raises(Fenced):
                await old.write(
                    ToolCallFinished(turn=1, call="1.9.0", tool="x", outcome="done", output="", duration_ms=0)
                )

        async def works(new: ManualWorker = new, pause: int = chance.randrange(4)) -> None:
            for _ in range(pause):
                await asyncio.sleep(0)
            assert (await new.calls("kanban_complete", summary="from the new worker")).outcome == "done"

        await asyncio.gather(wakes(), works())
        await wakes()
        done = [event for event in await rig.events(card) if isinstance(event, CardCompleted)]
        assert [(event.run, event.summary) for event in done] == [(2, "from the new worker")]
        completions += len(done)
        await new.end()
        check_card(await rig.records(card))
    await rig.close()
    check_projections(home / "holdfast.db")
    return completions, refusals


async def test_promise_2_thirty_frozen_workers_wake_up(home: Path) -> None:
    seed = secrets.randbelow(1 << 32)
    completions, refusals = await freeze_and_wake(home, 30, seed)
    print(f"seed {seed}: 30 freezes, {completions} completions, {refusals} refusals")
    assert (completions, refusals) == (30, 60)


@pytest.mark.proof
async def test_promise_2_a_thousand_frozen_workers_wake_up(home: Path) -> None:
    seed = secrets.randbelow(1 << 32)
    completions, refusals = await freeze_and_wake(home, 1000, seed)
    print(f"seed {seed}: 1000 freezes, {completions} completions, {refusals} refusals")
    assert (completions, refusals) == (1000, 2000)


async def test_a_frozen_real_worker_is_stopped_and_the_next_run_resumes(home: Path) -> None:
    """The model never answers: its turn must end, or nobody could ever go on."""
    rig = await BoardRig(home).start()
    await rig.create(CARD, "write a.txt one\nhang")
    card = await rig.until(CARD, lambda card: card.run is not None)
    session = card.runs[0].started.session
    with rig.store.subscribe(f"session/{session}") as changes:
        while not _asked_after_a_tool(await rig.sessions.get(session)):
            await changes.wait()
            changes.drain()

    async def is_over() -> bool:
        rig.awake_seconds += 60
        await rig.look()
        return (await rig.card(CARD)).runs[0].finished is not None

    await eventually(is_over)
    finished = (await rig.card(CARD)).runs[0].finished
    assert finished is not None and finished.failure == "frozen"
    state = await rig.rest(session)
    assert state.last_turn is not None and state.last_turn.outcome == "stopped"
    await rig.tell(CARD, RetryCard(text="complete all right"))
    card = await rig.until(CARD, lambda card: card.status == "done")
    assert card.runs[1].started.session == session
    await rig.close()


def _asked_after_a_tool(session: Session) -> bool:
    used = any(isinstance(message, ToolResult) for message in session.messages)
    return used and session.turn is not None and session.turn.asked


async def test_a_message_of_the_board_is_withdrawn_when_the_run_ends_before_it_was_read(rig: BoardRig) -> None:
    await rig.create(CARD, "write a.txt one")
    await rig.look()
    session = (await rig.card(CARD)).runs[0].started.session
    await rig.tell(CARD, StopCard())
    state = await rig.sessions.get(session)
    assert (state.queue, state.turn, state.activity) == ((), None, "idle")
    await rig.look()
    assert (await rig.card(CARD)).status == "blocked"


@pytest.mark.parametrize("command", [StopCard(), BlockCard(reason="wait"), MoveCard(status="triage")], ids=str)
async def test_whatever_takes_a_card_away_stops_its_worker_first(
    rig: BoardRig, command: StopCard | BlockCard | MoveCard
) -> None:
    await rig.create(CARD)
    await rig.look()
    hand = await rig.worker(CARD)
    await hand.begin()
    await rig.tell(CARD, command)
    state = await hand.state()
    assert state.turn is not None and state.turn.stop is not None
    assert isinstance((await rig.events(CARD))[-2], RunFinished)
    await rig.tell(CARD, RetryCard())
    await rig.look()
    card = await rig.card(CARD)
    assert card.run is None
    assert "Its previous worker is still running" in await rig.dispatcher.startable.why_not(card)
    await hand.end("stopped")
    await rig.look()
    assert (await rig.card(CARD)).run is not None


async def test_a_session_with_a_worker_takes_no_messages_and_no_changes(rig: BoardRig) -> None:
    await rig.create(CARD)
    await rig.look()
    session = (await rig.card(CARD)).runs[0].started.session
    with pytest.raises(Conflict, match="Run 1 of card"):
        await rig.say(session, SendMessage(text="hello"))
    with pytest.raises(Conflict):
        await rig.sessions.delete(session, rig.caller())
    hand = await rig.worker(CARD)
    await hand.begin()
    await hand.calls("kanban_block", reason="a question")
    await hand.end()
    await rig.say(session, SendMessage(text="hello"))  # now it is a session like any other


async def test_two_people_unblock_at_once(rig: BoardRig) -> None:
    await rig.create(CARD)
    await rig.tell(CARD, BlockCard(reason="wait"))
    told = (rig.tell(CARD, UnblockCard(text=name), by=name) for name in ("ann", "bob", "eve"))
    results = await asyncio.gather(*told, return_exceptions=True)
    refused = [result for result in results if isinstance(result, Conflict)]
    assert len(refused) == 2 and "It is not blocked" in str(refused[0])
    await rig.look()
    card = await rig.card(CARD)
    assert (len(card.runs), len(card.comments)) == (1, 1)
    with pytest.raises(Conflict, match="A comment reaches its worker"):
        await rig.tell(CARD, UnblockCard())


async def test_an_end_that_is_written_stops_what_was_asked(rig: BoardRig) -> None:
    """The stop and the words taken back stand in the same append as the end."""
    await rig.create(CARD)
    await rig.look()
    hand = await rig.worker(CARD)
    await hand.begin()
    await rig.tell(CARD, CommentCard(text="listen"))
    await rig.tell(CARD, StopCard())
    records = await rig.store.load(f"session/{hand.session}", after=0)
    kinds = [type(record.event) for record in records]
    assert kinds[-4:-1] == [InputReceived, InputWithdrawn, StopRequested]
    finished = (await rig.card(CARD)).runs[0].finished
    assert finished is not None and len(finished.unread_comments) == 1
