"""Cards and runs under everything that can come, by the pure rules alone: people, workers, failures, clocks."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.domain.card import Card, evolve_card
from holdfast.domain.card_rules import decide_card
from holdfast.domain.commands import (
    ArchiveCard,
    BlockCard,
    CardCommand,
    CommentCard,
    CompleteCard,
    EditCard,
    MoveCard,
    RetryCard,
    StopCard,
    UnblockCard,
)
from holdfast.domain.dispatch import (
    COOL_TIMES,
    RunVerdict,
    StartConditions,
    choose_session,
    first_input,
    not_startable_reason,
    resumable,
    run_verdict,
    timed_out,
    unread_comments,
)
from holdfast.domain.errors import Conflict, Rejected
from holdfast.domain.events import Record, card_stream
from holdfast.domain.events.actor import THE_BOARD, RunActor
from holdfast.domain.events.card import (
    CardBlocked,
    CardCompleted,
    CardCreated,
    CardEvent,
    CardStatus,
    ResumePolicy,
    RunFinished,
    RunHeartbeat,
    RunOutcome,
    RunReminded,
    RunStarted,
)
from holdfast.domain.events.parts import EventRef
from holdfast.domain.events.problem import Problem, ProblemCode
from holdfast.domain.why import why_card
from tests.actors import person
from tests.board.history import check_card

ID, LIMIT, HOUR = "c0ffee00", 3, 3_600_000
WORLD = StartConditions(profiles=frozenset({"demo", "other"}))
MOVES: list[CardStatus] = ["triage", "todo", "ready", "review", "done", "running"]
PROBLEMS: list[ProblemCode | None] = [None, "network", "quota", "wrong_key", "step_limit", "demo_failed"]
commands: st.SearchStrategy[CardCommand] = st.one_of(
    st.builds(CommentCard, text=st.sampled_from(["one", "two\nlines", "[three]"])),
    st.builds(BlockCard, reason=st.just("wait")),
    st.builds(UnblockCard, text=st.none() | st.just("go on"), fresh=st.booleans()),
    st.builds(RetryCard, text=st.none() | st.just("again"), fresh=st.booleans()),
    st.builds(MoveCard, status=st.sampled_from(MOVES)),
    st.builds(EditCard, profile=st.sampled_from(["demo", "other"])),
    st.just(StopCard()),
    st.just(CompleteCard()),
    st.just(ArchiveCard()),
)


class CardMachine(RuleBasedStateMachine):
    """See above."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 10 * HOUR
        self.card = Card(ID)
        self.records: list[Record] = []
        self.policy: ResumePolicy = "auto"
        self.progress = False
        self.heard: set[str] = set()
        """What a worker that got anywhere was given or heard, and what the worker of the open run was."""
        self.heard_before: set[str] = set()

    def _write(self, *events: CardEvent) -> None:
        for event in events:
            version = len(self.records) + 1
            record = Record(seq=version, stream=card_stream(ID), version=version, at=self.now, event=event)
            self.records.append(record)
            self.card = evolve_card(self.card, event, EventRef(version, self.now))

    @initialize(policy=st.sampled_from(["auto", "resume", "fresh"]))
    def create(self, policy: ResumePolicy) -> None:
        self.policy = policy
        self._write(
            CardCreated(card=ID, board="b", title="t", body="body", by=person("ann"), status="ready", profile="demo")
        )

    @rule(command=commands)
    def somebody_says(self, command: CardCommand) -> None:
        with suppress(Conflict, Rejected):
            id = f"c{len(self.records)}"
            events = decide_card(self.card, command, id=id, by=person("ann"), now=self.now)
            self._write(*(self._as_it_ended(event) for event in events))

    def _as_it_ended(self, event: CardEvent) -> CardEvent:
        """What `Cards` adds to the end of a run."""
        if not isinstance(event, RunFinished):
            return event
        run = self.card.run
        assert run is not None
        given = [one for one in self.card.comments if one.happened.version > run.at.version]
        missed = [one.comment for one in given if one.comment not in self.heard]
        if not self.progress:
            self.heard = self.heard_before  # whatever it was given is given again
        return RunFinished(
            card=ID,
            run=event.run,
            outcome=event.outcome,
            reason=event.reason,
            failure=event.failure,
            uses_attempt=event.uses_attempt,
            progress=self.progress,
            retry_at=event.retry_at,
            unread_comments=missed,
        )

    # --- the dispatcher -------------------------------------------------------------------------

    @rule(missing=st.sampled_from(["", "", "", "session x was deleted"]))
    def dispatch(self, missing: str) -> None:
        card = self.card
        if card.status != "ready" or not_startable_reason(card, WORLD, now=self.now):
            return
        last = resumable(card)
        choice = choose_session(card, self.policy, missing=missing if last is not None else "")
        if choice.refused:
            assert self.policy == "resume", "only that policy blocks for it"
            self._write(CardBlocked(card=ID, block_kind="capability", reason=choice.refused, by=THE_BOARD))
            return
        if choice.resumes is None and card.runs and self.policy != "fresh" and not card.fresh_next:
            assert choice.fresh_because, "no fall back without its reason"
            if last is not None:
                assert self.policy == "auto"
        said = first_input(card, choice, found="here", hand_over="", now=self.now)
        self.heard_before = set(self.heard)
        if choice.resumes is not None:
            assert choice.resumes is last, "the most recent run with progress"
            assert all(not run.finished.progress for run in card.runs[last.number :] if run.finished is not None)
            new = unread_comments(card, last)
            expected = "\n".join(f"[{one.by} wrote:]\n{one.text}" for one in new)
            assert said.text == expected if new else "You were resumed" in said.text
            self.heard |= {one.comment for one in new}
        else:
            assert all(one.text in said.text for one in card.comments)
            self.heard = {one.comment for one in card.comments}
        number = len(card.runs) + 1
        session = f"s{number}" if choice.resumes is None else choice.resumes.started.session
        if choice.resumes is not None:
            lost = {one.comment for one in card.comments} - self.heard
            assert not lost, "every comment reaches a worker of the session that goes on"
        started = RunStarted(
            card=ID,
            run=number,
            session=session,
            task="t",
            profile=card.profile,
            resumed_run=0 if choice.resumes is None else choice.resumes.number,
            after_turn=0,
            workspace="/",
            workspace_state="here",
            fresh_reason=choice.fresh_because,
        )
        self._write(started)
        self.progress = False

    # --- the worker -----------------------------------------------------------------------------

    def _running(self) -> bool:
        return self.card.run is not None

    @precondition(_running)
    @rule()
    def gets_somewhere(self) -> None:
        self.progress = True
        self.heard |= {one.comment for one in self.card.comments}
        self._write(RunHeartbeat(card=ID, run=len(self.card.runs), note="at it"))

    @precondition(_running)
    @rule(done=st.booleans())
    def says_how_it_is(self, done: bool) -> None:
        """With its last call it got somewhere."""
        self.progress = True
        run = len(self.card.runs)
        outcome: RunOutcome = "done" if done else "blocked"
        self._write(self._as_it_ended(RunFinished(card=ID, run=run, outcome=outcome, reason="said so")))
        if done:
            self._write(CardCompleted(card=ID, summary="s", by=RunActor(card=ID, run=run), run=run))
        else:
            self._write(
                CardBlocked(card=ID, block_kind="needs_input", reason="r", by=RunActor(card=ID, run=run), run=run)
            )

    @precondition(_running)
    @rule(outcome=st.sampled_from(["done", "failed", "stopped"]), code=st.sampled_from(PROBLEMS))
    def turn_ends(self, outcome: str, code: ProblemCode | None) -> None:
        problem = Problem(code=code, message="m", after_ms=90_000) if code and outcome == "failed" else None
        before, failures = self.card.attempts, self.card.failures
        found = run_verdict(self.card, outcome=outcome, reason="r", problem=problem, limit=LIMIT, now=self.now)
        run = self.card.run
        assert run is not None
        if found.remind:
            assert not run.reminded, "asked once"
            self._write(RunReminded(card=ID, run=run.number))
            return
        self._end(found.reason, found)
        assert self.card.attempts == before + found.counts
        if found.again_at is not None:
            assert not found.counts, "infrastructure uses up no attempt"
            assert self.card.status == "ready" and failures < COOL_TIMES
            assert not_startable_reason(self.card, WORLD, now=self.now).startswith("It is tried again in")
        assert self.card.attempts < LIMIT or self.card.status == "blocked", "loops are broken"

    @precondition(_running)
    @rule(frozen=st.booleans())
    def takes_too_long(self, frozen: bool) -> None:
        failure = "frozen" if frozen else "timeout"
        found = timed_out(self.card, failure, "too long", limit=LIMIT, now=self.now)  # type: ignore[arg-type]
        assert found.counts == (not frozen)
        self._end(found.reason, found)

    def _end(self, reason: str, found: RunVerdict) -> None:
        run = self.card.run
        assert run is not None
        self._write(
            self._as_it_ended(
                RunFinished(
                    card=ID,
                    run=run.number,
                    outcome="failed",
                    reason=reason,
                    failure=found.failure,
                    uses_attempt=found.counts,
                    retry_at=found.again_at,
                )
            )
        )
        if found.block is not None:
            self._write(CardBlocked(card=ID, block_kind=found.block, reason=reason, by=THE_BOARD, run=run.number))

    @rule(
        early=st.integers(0, 2),
        progress=st.booleans(),
        late=st.integers(0, 2),
        end=st.sampled_from(["", "done", "blocked", "frozen", *PROBLEMS]),
    )
    def a_whole_run(self, early: int, progress: bool, late: int, end: str) -> None:
        """What happens most: somebody lets it go on, people talk to its worker, and it ends in one way or another."""
        if self.card.run is None:
            self.somebody_says(RetryCard(text="go on"))
            self.now = max(self.now, self.card.again_at or 0)
            self.dispatch("")
        for _ in range(early):
            self.somebody_says(CommentCard(text="early"))
        if self.card.run is None:
            return
        if progress:
            self.gets_somewhere()
        for _ in range(late):
            self.somebody_says(CommentCard(text="late"))
        match end:
            case "":
                pass
            case "done" | "blocked":
                self.says_how_it_is(end == "done")
            case "frozen":
                self.takes_too_long(True)
            case code:
                self.turn_ends("failed", code)

    @rule(by=st.integers(-3 * HOUR, 30 * HOUR))
    def clock_jumps(self, by: int) -> None:
        running = self.card.run
        self.now = max(0, self.now + by)
        assert self.card.run is running

    # --- what must always be true ---------------------------------------------------------------

    @invariant()
    def the_log_may_have_happened(self) -> None:
        if self.records:
            assert check_card(self.records) == self.card

    @invariant()
    def everybody_can_be_told_why(self) -> None:
        if self.records:
            reason = not_startable_reason(self.card, WORLD, now=self.now)
            assert reason or self.card.status in ("ready", "todo")
            assert why_card(self.card, reason, None, now=self.now)[0].text


TestCard = CardMachine.TestCase
TestCard.settings = settings(
    max_examples=40,  # more: tests/test_machines_at_length.py
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
