"""The resume contract: which session continues, its first message, and the reason for a fresh session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.domain.card import Card
from holdfast.domain.commands import (
    ArchiveSession,
    BlockCard,
    ChooseAgent,
    CommentCard,
    CompleteCard,
    EditCard,
    RetryCard,
    SendMessage,
    StopCard,
    UnblockCard,
)
from holdfast.domain.events import session_stream
from holdfast.domain.events.card import RunFinished
from holdfast.domain.events.chapter import ChapterOpened
from holdfast.domain.events.parts import Usage
from holdfast.domain.events.problem import ProblemCode
from holdfast.domain.events.session import ModelRequested, ModelResponded, NoteReceived
from holdfast.domain.history import Note
from holdfast.domain.reset import Due, NotDue, ResetClockReading, ResetRules, decide_reset, next_reset
from holdfast.tasks.views import view
from tests.actors import person
from tests.board.rig import BoardRig, ManualWorker

pytestmark = pytest.mark.usefixtures("each_engine")
CARD = "c0ffee01"
TWO_PROFILES = '[profiles.other]\nmodel = "demo"\n'


async def blocked(rig: BoardRig, **more: Any) -> ManualWorker:
    """A card whose first run got somewhere and asked a question."""
    await rig.create(CARD, "the body", **more)
    await rig.look()
    hand = await rig.worker(CARD)
    await hand.begin()
    await hand.calls("kanban_heartbeat", note="at it")
    await hand.calls("kanban_block", reason="which colour?")
    await hand.end()
    return hand


async def dies_at_once(rig: BoardRig, code: ProblemCode = "demo_crashed") -> None:
    hand = await rig.worker(CARD)
    await hand.begin()
    await hand.end("failed", code)
    await rig.look()
    rig.move_clock(3_600_000)


async def next_run(rig: BoardRig) -> tuple[Card, str]:
    """The card with its new run, and what its worker is told."""
    await rig.look()
    card = await rig.card(CARD)
    assert card.run is not None
    return card, (await rig.sessions.get(card.run.started.session)).queue[-1].event.text


def why_fresh(card: Card) -> str:
    assert card.run is not None and card.run.started.resumed_run == 0
    return card.run.started.fresh_reason


async def test_the_session_is_stamped_before_the_first_step(rig: BoardRig) -> None:
    await rig.create(CARD, "the body")
    await rig.look()
    (record,) = [r for r in await rig.records(CARD) if type(r.event).__name__ == "RunStarted"]
    session = (await rig.card(CARD)).runs[0].started.session
    records = await rig.store.load(session_stream(session), after=0)
    kinds = [type(one.event).__name__ for one in records]
    assert kinds == ["SessionCreated", "RunBound", "NoteReceived", "InputReceived"]
    assert [one.seq for one in records] == list(range(record.seq + 1, record.seq + 5)), "one append"


async def test_comments_since_the_block_are_the_next_turn_in_order_and_unchanged(rig: BoardRig) -> None:
    hand = await blocked(rig)
    await rig.tell(CARD, CommentCard(text="  blue\n\n[not] red "), by="ann")
    await rig.tell(CARD, CommentCard(text="and quick"), by="bob")
    await rig.tell(CARD, UnblockCard(text="go"), by="eve")
    card, text = await next_run(rig)
    assert card.run is not None and (card.run.started.session, card.run.started.resumed_run) == (hand.session, 1)
    assert text == "[ann wrote:]\n  blue\n\n[not] red \n[bob wrote:]\nand quick\n[eve wrote:]\ngo"
    assert card.attempts == 0


async def test_without_a_comment_the_worker_learns_that_it_was_resumed_why_and_after_how_long(rig: BoardRig) -> None:
    await blocked(rig)
    rig.move_clock(2 * 3_600_000)
    await rig.tell(CARD, UnblockCard())
    _, text = await next_run(rig)
    assert text.startswith("the body\n[You were resumed: run 1 ended 2 h 0 min ago (blocked (needs input): which")


async def test_a_run_that_died_at_once_is_skipped_and_its_comments_are_given_again(rig: BoardRig) -> None:
    hand = await blocked(rig)
    await rig.tell(CARD, UnblockCard(text="blue"))
    await rig.look()
    await dies_at_once(rig)
    await rig.tell(CARD, CommentCard(text="or green"))
    card, text = await next_run(rig)
    assert card.run is not None and (card.run.number, card.run.started.resumed_run) == (3, 1)
    assert card.run.started.session == hand.session
    assert text == "[ann wrote:]\nblue\n[ann wrote:]\nor green"


async def test_a_comment_during_a_run_is_delivered_once(rig: BoardRig) -> None:
    await rig.create(CARD)
    await rig.look()
    hand = await rig.worker(CARD)
    await hand.begin()
    await hand.calls("kanban_heartbeat")
    await rig.tell(CARD, CommentCard(text="faster"), id="c1")
    await rig.tell(CARD, CommentCard(text="faster"), id="c1")
    assert await hand.join() == ["[ann wrote:]\nfaster"]
    await hand.calls("kanban_block", reason="a question")
    await hand.end()
    await rig.tell(CARD, UnblockCard(text="yes"))
    _, text = await next_run(rig)
    assert text == "[ann wrote:]\nyes"


async def test_a_comment_that_its_worker_did_not_read_is_for_the_next_worker(rig: BoardRig) -> None:
    await rig.create(CARD)
    await rig.look()
    hand = await rig.worker(CARD)
    await hand.begin()
    await rig.tell(CARD, CommentCard(text="faster"))
    await hand.calls("kanban_block", reason="a question")
    assert not (await hand.state()).queue, "nobody begins a turn with it"
    await hand.end()
    await rig.tell(CARD, UnblockCard(text="yes"))
    _, text = await next_run(rig)
    assert text == "[ann wrote:]\nfaster\n[ann wrote:]\nyes"


async def test_auto_starts_fresh_with_reason_hand_over_and_warning_when_the_session_is_gone(rig: BoardRig) -> None:
    hand = await blocked(rig)
    await rig.sessions.delete(hand.session, rig.caller())
    await rig.tell(CARD, UnblockCard(text="blue"))
    card, text = await next_run(rig)
    assert f"session {hand.session} of run 1 was deleted" in why_fresh(card)
    assert text == "the body\n[ann wrote:]\nblue"
    row = await rig.store.cards.card(CARD)
    assert "was deleted" in row.warning
    assert card.run is not None
    (note,) = [
        one.event.text
        for one in await rig.store.load(session_stream(card.run.started.session), after=0)
        if isinstance(one.event, NoteReceived)
    ]
    assert f"You start in a new session: session {hand.session} of run 1 was deleted." in note
    assert "Notes from the previous worker:\nRun 1 ended as blocked (needs input): which colour?" in note


async def test_auto_starts_fresh_when_the_profile_is_another(home: Path, rig: BoardRig) -> None:
    (rig.home / "config.toml").write_text(TWO_PROFILES)
    await blocked(rig)
    await rig.tell(CARD, EditCard(profile="other"))
    await rig.tell(CARD, UnblockCard())
    card, _ = await next_run(rig)
    assert "run 1 had the profile demo, and now it is other" in why_fresh(card)


async def test_auto_starts_fresh_when_the_session_was_given_to_another_agent(rig: BoardRig) -> None:
    (rig.home / "config.toml").write_text(TWO_PROFILES)
    hand = await blocked(rig)
    await rig.say(hand.session, ChooseAgent(profile="other"))
    await rig.tell(CARD, UnblockCard())
    card, _ = await next_run(rig)
    assert "now has the profile other" in why_fresh(card)


async def test_retention_keeps_the_session_that_a_card_will_continue(rig: BoardRig) -> None:
    async def unused() -> list[object]:
        rows = await rig.store.unused_sessions(archived=False, before=rig.clock.now() + 1)
        return [row.id for row in rows]

    hand = await blocked(rig)
    await rig.new_session("00000000000000aa")
    assert await unused() == ["00000000000000aa"]
    await rig.tell(CARD, CompleteCard(summary="enough"))
    assert set(await unused()) == {"00000000000000aa", hand.session}


async def test_auto_starts_fresh_when_a_person_reset_the_session(rig: BoardRig) -> None:
    """The model sees nothing of that run any more: to say that it was resumed would be a lie."""
    hand = await blocked(rig)
    await hand.write(ChapterOpened(chapter=2, rule="person", reason="ann wanted it", by=person("ann")))
    await rig.tell(CARD, UnblockCard(text="blue"))
    card, text = await next_run(rig)
    assert why_fresh(card) == f"session {hand.session} was reset since run 1"
    assert text == "the body\n[ann wrote:]\nblue"


async def test_a_session_that_was_put_away_is_back_when_it_is_worked_in(rig: BoardRig) -> None:
    hand = await blocked(rig)
    await rig.say(hand.session, ArchiveSession())
    await rig.tell(CARD, UnblockCard())
    card, _ = await next_run(rig)
    assert card.run is not None and card.run.started.session == hand.session
    assert not (await hand.state()).archived
    assert not (await rig.store.session(hand.session)).archived


async def test_no_run_begins_in_a_session_in_which_a_person_has_a_turn(rig: BoardRig) -> None:
    """Also when that is the session of an old run, since those after it got nowhere."""
    hand = await blocked(rig, resume="fresh")
    for _ in range(3):
        await rig.tell(CARD, RetryCard())
        await rig.look()
        await dies_at_once(rig)
    await rig.tell(CARD, BlockCard(reason="wait"))
    await rig.tell(CARD, EditCard(resume="auto"))
    await rig.say(hand.session, SendMessage(text="what did you find?"))
    await hand.begin()
    await rig.tell(CARD, UnblockCard())
    await rig.look()
    card = await rig.card(CARD)
    assert card.run is None
    assert f"turn 2 of session {hand.session} has not ended" in await rig.dispatcher.startable.why_not(card)
    await hand.end()
    card, _ = await next_run(rig)
    assert card.run is not None and card.run.started.session == hand.session


@pytest.mark.parametrize("code", ["network", "quota"])
async def test_a_session_is_not_poisoned_by_what_is_not_its_fault(rig: BoardRig, code: ProblemCode) -> None:
    await blocked(rig, resume="auto")
    await rig.tell(CARD, UnblockCard())
    for _ in range(4):
        card, _ = await next_run(rig)
        assert card.run is not None and card.run.started.resumed_run == 1
        await dies_at_once(rig, code)
    assert (await rig.card(CARD)).attempts == 0


@pytest.mark.parametrize("policy", ["auto", "resume"])
async def test_a_poisoned_session(rig: BoardRig, policy: str) -> None:
    await blocked(rig, resume=policy)
    await rig.tell(CARD, UnblockCard())
    for _ in range(2):
        card, _ = await next_run(rig)
        assert card.run is not None and card.run.started.resumed_run == 1
        await dies_at_once(rig)
    await rig.look()
    card = await rig.card(CARD)
    if policy == "resume":
        assert (card.status, card.run) == ("blocked", None)
        assert "two runs in a row resumed it and ended the same way (crash)" in card.reason
    else:
        assert "two runs in a row resumed it and ended the same way (crash)" in why_fresh(card)


async def test_the_policy_resume_blocks_instead_of_a_fresh_start(rig: BoardRig) -> None:
    hand = await blocked(rig, resume="resume")
    await rig.sessions.delete(hand.session, rig.caller())
    await rig.tell(CARD, UnblockCard())
    await rig.look()
    card = await rig.card(CARD)
    assert card.status == "blocked"
    assert f"its policy is `resume`, but its session cannot be resumed: session {hand.session}" in card.reason


async def test_the_card_decides_before_its_profile_and_that_before_the_board(rig: BoardRig) -> None:
    profile = 'default_profile = "demo"\n[board]\nresume = "fresh"\n'
    (rig.home / "config.toml").write_text(profile)
    await blocked(rig)
    await rig.tell(CARD, UnblockCard())
    card, _ = await next_run(rig)
    assert why_fresh(card) == ""
    await rig.tell(CARD, StopCard())
    await rig.tell(CARD, EditCard(resume="auto"))
    await rig.tell(CARD, UnblockCard())
    card, _ = await next_run(rig)
    assert card.run is not None and card.run.started.resumed_run == 1, "run 2 got nowhere"
    await rig.tell(CARD, StopCard())
    (rig.home / "config.toml").write_text(profile + '[profiles.demo]\nmodel = "demo"\nresume = "resume"\n')
    assert rig.profiles.resume_policy("demo") == "resume"


async def test_a_fresh_start_that_somebody_asked_for(rig: BoardRig) -> None:
    hand = await blocked(rig)
    await rig.tell(CARD, UnblockCard(text="blue", fresh=True))
    card, text = await next_run(rig)
    assert why_fresh(card) == "", "what was asked for is no warning"
    assert card.run is not None
    state = await rig.sessions.get(card.run.started.session)
    notes = [one.text for one in (*state.notes, *state.messages) if isinstance(one, Note | NoteReceived)]
    assert any("You start in a new session: a new session was asked for." in note for note in notes)
    assert text == "the body\n[ann wrote:]\nblue"
    assert card.run.started.session != hand.session


async def test_no_run_that_got_anywhere_is_said_too(rig: BoardRig) -> None:
    await rig.create(CARD)
    await rig.look()
    await dies_at_once(rig)
    card, _ = await next_run(rig)
    assert why_fresh(card) == "no earlier run made progress"


async def test_a_resumed_session_works_in_the_workspace_of_now(rig: BoardRig, tmp_path: Path) -> None:
    hand = await blocked(rig)
    await rig.tell(CARD, EditCard(workspace=f"dir:{tmp_path}"))
    await rig.tell(CARD, UnblockCard())
    card, _ = await next_run(rig)
    assert card.run is not None and card.run.started.session == hand.session
    assert (await hand.state()).cwd == str(tmp_path)
    assert (await rig.store.session(hand.session)).cwd == str(tmp_path)


async def test_a_crash_of_the_gateway_ends_no_run(rig: BoardRig, home: Path) -> None:
    await rig.create(CARD, "say hello")
    await rig.look()
    hand = await rig.worker(CARD)
    await hand.begin()
    other = BoardRig(home.with_name("unused"), store=rig.store, clock=rig.clock)
    await other.dispatcher.run_once()
    card = await rig.card(CARD)
    assert card.run is not None and card.run.number == 1
    assert not [event for event in await rig.events(CARD) if isinstance(event, RunFinished)]
    await other.agents.close()


async def test_a_done_card_that_is_tried_again_resumes(rig: BoardRig) -> None:
    await rig.create(CARD)
    await rig.look()
    hand = await rig.worker(CARD)
    await hand.begin()
    await hand.calls("kanban_complete", summary="done")
    await hand.end()
    await rig.tell(CARD, RetryCard(text="not quite"))
    card, text = await next_run(rig)
    assert card.run is not None and card.run.started.resumed_run == 1
    assert text == "[ann wrote:]\nnot quite"


async def test_no_rule_resets_the_session_that_the_next_run_continues_with(rig: BoardRig) -> None:
    await rig.create(CARD)
    await rig.look()
    hand = await rig.worker(CARD)
    await hand.begin()
    await rig.tell(CARD, CommentCard(text="faster"))  # a person's word: from now on there is something to reset
    await hand.join()
    await hand.calls("kanban_block", reason="a question")
    await hand.end()
    state, night = await hand.state(), 24 * 3_600_000
    assert state.first_input is not None and state.last_active is not None
    rules = ResetRules(mode="idle", idle_ms=60_000)
    now = rig.clock.now() + night
    moment = ResetClockReading(
        now=now, fresh_at=state.last_active.at, idle_ms=night, boundary=None, since_boundary_ms=0, next_boundary=None
    )
    assert isinstance(next_reset(state.first_input.at, rules, moment), Due)
    assert decide_reset(state, rules, moment, []) == NotDue()


async def test_two_answers_without_a_report_on_the_card_are_no_progress(rig: BoardRig) -> None:
    await rig.create(CARD)
    await rig.look()
    hand = await rig.worker(CARD)
    for _ in range(2):
        await hand.begin()
        state = await hand.state()
        asked = ModelRequested(turn=state.turns, step=1, attempt=1, model="hand", context_version=state.version)
        said = ModelResponded(
            turn=state.turns,
            step=1,
            text="All is well.",
            thinking="",
            calls=[],
            finish_reason="stop",
            usage=Usage(),
            duration_ms=1,
        )
        await hand.write(asked, said)
        await hand.end()
        await rig.look()
    end = (await rig.card(CARD)).runs[0].finished
    assert end is not None
    assert (end.failure, end.progress) == ("left_without_a_word", False)


async def test_a_run_that_blocked_is_blocked_in_the_history(rig: BoardRig) -> None:
    await blocked(rig)
    row = await rig.store.task((await rig.card(CARD)).runs[0].started.task)
    assert view(row, now=rig.clock.now(), output_bytes=None, activity=None).blocked
    await rig.tell(CARD, UnblockCard())
    await rig.look()
    await rig.tell(CARD, StopCard())
    row = await rig.store.task((await rig.card(CARD)).runs[1].started.task)
    assert not view(row, now=rig.clock.now(), output_bytes=None, activity=None).blocked
