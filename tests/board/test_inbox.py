"""The inbox: what waits for a person is there, and leaves when it does not wait any more."""

from __future__ import annotations

import pytest

from holdfast.board.inbox import InboxReader
from holdfast.config import Home
from holdfast.domain.commands import (
    ArchiveBoard,
    ArchiveCard,
    ArchiveSession,
    BlockCard,
    DismissFailure,
    ForkSession,
    MoveCard,
    SendMessage,
    UnblockCard,
    UndoTurn,
)
from holdfast.domain.errors import Conflict
from holdfast.domain.events.card import RunStarted
from holdfast.domain.events.session import Purpose, WaitAnswered, WaitOpened
from tests.actors import person
from tests.board.rig import BoardRig, ManualWorker
from tests.store.test_unreadable import spoil

CARD, OTHER, SESSION = "c0ffee01", "c0ffee02", "ab12ab12ab12ab12"


@pytest.fixture
def inbox(rig: BoardRig) -> InboxReader:
    return rig.dispatcher.inbox


async def kinds(inbox: InboxReader) -> list[tuple[str, str]]:
    return [(entry.kind, entry.id) for entry in await inbox.entries()]


async def failed(rig: BoardRig, session: str = SESSION) -> ManualWorker:
    """A session whose turn failed."""
    if not (await rig.sessions.get(session)).exists:
        await rig.new_session(session)
    await rig.say(session, SendMessage(text="say hello"))
    hand = await ManualWorker(rig, a_run(session)).take()
    await hand.begin()
    await hand.end("failed", "network")
    return hand


def a_run(session: str) -> RunStarted:
    return RunStarted(
        card="",
        run=0,
        session=session,
        task="",
        profile="demo",
        resumed_run=0,
        after_turn=0,
        workspace="",
        workspace_state="",
    )


async def test_a_blocked_card_is_there_until_it_is_unblocked(rig: BoardRig, inbox: InboxReader) -> None:
    await rig.create(CARD)
    await rig.tell(CARD, BlockCard(reason="Which one?"))
    (entry,) = await inbox.entries()
    assert (entry.kind, entry.id, entry.title, entry.what) == ("blocked_card", CARD, f"card {CARD}", "Which one?")
    assert entry.commands == ["holdfast card unblock HF-1 -m TEXT"]
    assert (entry.link, entry.number) == ("/board/default/HF-1", 1)
    assert entry.since == rig.clock.now()
    await rig.tell(CARD, UnblockCard(text="This one."))
    assert await inbox.entries() == []


async def test_a_session_that_cannot_be_read_does_not_hide_the_others(rig: BoardRig, inbox: InboxReader) -> None:
    await rig.create(CARD)
    await rig.tell(CARD, BlockCard(reason="Which one?"))
    await rig.new_session(SESSION)
    await rig.say(SESSION, SendMessage(text="zebra"))  # nobody has claimed it
    spoil(Home(rig.home).database, text="zebra", checksum=False)
    rig.sessions.drop(SESSION)
    assert await kinds(inbox) == [("blocked_card", CARD)]


async def test_a_block_that_only_a_fresh_session_can_end_says_so(rig: BoardRig, inbox: InboxReader) -> None:
    """Unblocking a card of policy `resume` whose session is gone would only block it again."""
    await rig.create(CARD, resume="resume")
    await rig.look()
    hand = await rig.worker(CARD)
    await hand.begin()
    await hand.calls("kanban_block", reason="Which one?")
    await hand.end()
    run = (await rig.card(CARD)).runs[-1].started
    await rig.sessions.delete(run.session, rig.caller())
    (entry,) = await inbox.entries()
    assert entry.commands == ["holdfast card unblock HF-1 --fresh", "holdfast card edit HF-1 --resume auto"]
    why = await rig.dispatcher.startable.why_not(await rig.card(CARD))
    assert "holdfast card unblock HF-1 --fresh" in why and "was deleted" in why


async def test_cards_that_never_start_as_they_are(rig: BoardRig, inbox: InboxReader) -> None:
    await rig.create(CARD, profile="nobody")
    await rig.create(OTHER)
    await rig.create("c0ffee03", parents=[OTHER])
    assert await kinds(inbox) == [("card_not_startable", CARD)]
    await rig.tell(OTHER, ArchiveCard())
    first, second = await inbox.entries()
    assert first.what == "There is no profile 'nobody'."
    assert first.commands == ["holdfast card assign HF-1 PROFILE"]
    assert second.what == f"It waits for card HF-2 “card {OTHER}”, which was archived before it was done."
    assert second.commands == ["holdfast card unlink HF-3 HF-2"]


async def test_a_card_in_review_and_one_on_an_archived_board(rig: BoardRig, inbox: InboxReader) -> None:
    await rig.create(CARD)
    await rig.tell(CARD, MoveCard(status="review"))
    assert await kinds(inbox) == [("card_in_review", CARD)]
    await rig.cards.execute_board("default", ArchiveBoard(), rig.caller())
    assert await kinds(inbox) == []


async def test_a_failed_turn_is_there_until_it_is_dismissed(rig: BoardRig, inbox: InboxReader) -> None:
    await failed(rig)
    (entry,) = await inbox.entries()
    assert (entry.kind, entry.id, entry.what) == ("failed_turn", SESSION, "Turn 1 failed: It was network.")
    assert entry.commands == [f"holdfast send {SESSION} TEXT", f"holdfast inbox --dismiss {SESSION}"]
    await rig.say(SESSION, DismissFailure())
    assert await inbox.entries() == []
    with pytest.raises(Conflict):
        await rig.say(SESSION, DismissFailure())


@pytest.mark.parametrize("command", [UndoTurn(), ArchiveSession()])
async def test_a_failed_turn_leaves_when_a_person_deals_with_it(
    rig: BoardRig, inbox: InboxReader, command: UndoTurn | ArchiveSession
) -> None:
    await failed(rig)
    await rig.say(SESSION, command)
    assert await inbox.entries() == []


async def test_a_failed_turn_leaves_with_the_next_turn(rig: BoardRig, inbox: InboxReader) -> None:
    hand = await failed(rig)
    await rig.say(SESSION, SendMessage(text="say again"))
    assert await kinds(inbox) == [("failed_turn", SESSION)]
    await hand.begin()
    assert await inbox.entries() == []
    await hand.end()
    assert await inbox.entries() == []


async def test_the_failed_turn_of_a_run_is_in_the_inbox_as_its_card(rig: BoardRig, inbox: InboxReader) -> None:
    await rig.create(CARD)
    await rig.look()
    hand = await rig.worker(CARD)
    await hand.begin()
    await hand.end("failed", "wrong_key")
    assert await inbox.entries() == []
    await rig.look()
    assert await kinds(inbox) == [("blocked_card", CARD)]
    await failed(rig, hand.session)  # what a person asks of that session later is no part of the run
    assert ("failed_turn", hand.session) in await kinds(inbox)


@pytest.mark.parametrize(
    ("purpose", "answers"),
    [
        ("approval", ["answer w1 --allow", "answer w1 --deny"]),
        ("question", ["answer w1 TEXT"]),
        ("compaction", ["answer w1 'try again'", "answer w1 digest"]),
        ("resume", ["answer w1 'go on'", f"stop {SESSION}"]),
    ],
)
async def test_a_turn_that_waits_for_a_person_is_there_with_its_answers(
    rig: BoardRig, inbox: InboxReader, purpose: Purpose, answers: list[str]
) -> None:
    await rig.new_session(SESSION)
    await rig.say(SESSION, SendMessage(text="say hello"))
    hand = await ManualWorker(rig, a_run(SESSION)).take()
    await hand.begin()
    await hand.write(WaitOpened(turn=1, wait="w1", purpose=purpose, reason="Shall I?"))
    (entry,) = await inbox.entries()
    assert (entry.kind, entry.id, entry.what, entry.session) == (purpose, "w1", "Shall I?", SESSION)
    assert entry.commands == [f"holdfast {answer}" for answer in answers]
    await hand.write(WaitAnswered(turn=1, wait="w1", answer="yes", by=person("ann")))
    assert await inbox.entries() == []


async def test_an_agent_gets_a_sentence_when_nothing_waits(rig: BoardRig, inbox: InboxReader) -> None:
    await rig.new_session(SESSION)
    state = await rig.sessions.get(SESSION)
    context = (await rig.agents.of(state)).tool_context(state)
    assert (await inbox.tool.call(context, "{}")).output == "Nothing is waiting for a person."


async def test_a_fork_does_not_fail_again(rig: BoardRig, inbox: InboxReader) -> None:
    await failed(rig)
    await rig.sessions.fork(SESSION, ForkSession(), session="cd34cd34cd34cd34", caller=rig.caller())
    assert await kinds(inbox) == [("failed_turn", SESSION)]


async def test_an_agent_reads_the_same_rows(rig: BoardRig, inbox: InboxReader) -> None:
    await failed(rig)
    await rig.create(CARD)
    await rig.tell(CARD, BlockCard(reason="Which one?"))
    context = (await rig.agents.of(await rig.sessions.get(SESSION))).tool_context(await rig.sessions.get(SESSION))
    told = (await inbox.tool.call(context, "{}")).output
    assert told.splitlines()[0] == "2 in all:"
    assert f"Failed turn, waiting for 0 s: session {SESSION}" in told
    assert (
        f"Blocked card, waiting for 0 s: card HF-1 “card {CARD}”: Which one? `holdfast card unblock HF-1 -m TEXT`"
        in told
    )
