"""Cards and runs on a real store, with the real dispatcher and the real tools; workers are played by hand.

People, workers, frozen ones that wake up, clocks that jump, and a gateway that is killed and started again.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.domain.commands import (
    ArchiveCard,
    BlockCard,
    CardCommand,
    CommentCard,
    CompleteCard,
    FollowCard,
    MoveCard,
    RetryCard,
    StopCard,
    UnblockCard,
)
from holdfast.domain.errors import Conflict, Fenced, Rejected
from holdfast.domain.events import session_stream
from holdfast.domain.events.card import CardBlocked, CardCompleted, CardEvent, RunFinished
from holdfast.domain.events.parts import Call
from holdfast.domain.events.problem import ProblemCode
from holdfast.domain.events.session import NoteReceived, ToolCallFinished, WaitOpened
from holdfast.domain.next_step import Partial, TurnLimits
from holdfast.domain.resume import pick_up
from tests.board.history import check_card
from tests.board.rig import BoardRig, ManualWorker
from tests.engines import EngineName, engines
from tests.memory import MEMORY
from tests.rig import StoppedClock
from tests.store.rebuilt import check_projections

CARDS = ["c0ffee01", "c0ffee02"]
FOLLOWER = "f" * 16
HOUR = 3_600_000
CONFIG = "[board]\nmax_running = 1\n"
T = TypeVar("T")
commands: st.SearchStrategy[CardCommand] = st.one_of(
    st.builds(CommentCard, text=st.sampled_from(["one", "two"])),
    st.builds(UnblockCard, text=st.none() | st.just("go on"), fresh=st.booleans()),
    st.builds(RetryCard, text=st.none() | st.just("again")),
    st.builds(BlockCard, reason=st.just("wait")),
    st.builds(MoveCard, status=st.sampled_from(["triage", "ready", "review"])),
    st.just(StopCard()),
    st.just(CompleteCard(summary="by hand")),
    st.just(ArchiveCard()),
)
cards = st.sampled_from(CARDS)


class BoardMachine(RuleBasedStateMachine):
    """See above."""

    rig: BoardRig
    engine: EngineName = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        engines.name = self.engine
        self.home = tempfile.TemporaryDirectory(dir=MEMORY)
        self.loop = asyncio.Runner()
        self.clock = StoppedClock(1_800_000_000_000)
        self.zombies: list[ManualWorker] = []
        self.hand: ManualWorker | None = None

    def do(self, work: Coroutine[None, None, T]) -> T:
        return self.loop.run(work)

    @initialize()
    def create(self) -> None:
        self.do(self._open())
        self.do(self.rig.new_session(FOLLOWER))
        for card in CARDS:
            self.do(self.rig.create(card, "say hello"))
            self.do(self.rig.tell(card, FollowCard(session=FOLLOWER)))

    async def _open(self) -> None:
        self.rig = BoardRig(Path(self.home.name) / "home", clock=self.clock, config=CONFIG)

    # --- people ---------------------------------------------------------------------------------

    @rule(card=cards, command=commands, twice=st.booleans())
    def somebody_says(self, card: str, command: CardCommand, twice: bool) -> None:
        """Perhaps the answer got lost, and the client tries again under the same id."""
        id = f"told-{len(self.do(self.rig.records(CARDS[0])))}-{len(self.do(self.rig.records(CARDS[1])))}"
        first = None
        with suppress(Conflict, Rejected):
            first = self.do(self.rig.tell(card, command, id=id))
        if first is not None and twice:
            again = self.do(self.rig.tell(card, command, id=id))
            assert (again.version, again.duplicate) == (first.version, True)
        if self.hand is not None and not self._is_at_work():
            self._leave()

    def _is_at_work(self) -> bool:
        assert self.hand is not None
        return self.do(self.rig.card(self.hand.run.card)).run is not None

    def _leave(self) -> None:
        """Its run is over. It ends its turn as it would when it is told to; as a zombie it comes back."""
        assert self.hand is not None
        state = self.do(self.hand.state())
        if state.turn is not None:
            self.do(self.hand.end("stopped"))
        self.zombies.append(self.hand)
        self.hand = None

    # --- the dispatcher and its worker ----------------------------------------------------------

    @rule()
    def look(self) -> None:
        self.do(self.rig.look())
        running = self.do(self.rig.store.cards.open_runs())
        assert len(running) <= 1, "max_running"
        if running and self.hand is None:
            self.hand = self.do(self.rig.worker(running[0].card))
        elif self.hand is not None and not self._is_at_work():
            self._leave()

    @precondition(lambda self: self.hand is not None)
    @rule(ends=st.sampled_from(["", "", "complete", "block", "turn", "network", "step_limit"]), hears=st.booleans())
    def work(self, ends: str, hears: bool) -> None:
        assert self.hand is not None
        state = self.do(self.hand.state())
        if state.turn is None:
            if not state.queue:
                return
            self.do(self.hand.begin())
        if hears:
            self.do(self.hand.join())
        match ends:
            case "":
                assert self.do(self.hand.calls("kanban_heartbeat", note="at it")).outcome == "done"
            case "complete":
                assert self.do(self.hand.calls("kanban_complete", summary="done")).outcome == "done"
                self._leave()
            case "block":
                assert self.do(self.hand.calls("kanban_block", reason="a question")).outcome == "done"
                self._leave()
            case "turn":
                self.do(self.hand.end())
            case code:
                self.do(self.hand.end("failed", msgspec.convert(code, ProblemCode)))

    @precondition(lambda self: self.hand is not None and self.hand.rig is self.rig)
    @rule()
    def freezes(self) -> None:
        """Nothing moves for long; then its run is ended, and the turn is closed by whoever takes the session."""
        assert self.hand is not None
        state = self.do(self.hand.state())
        if state.turn is None or state.turn.open_calls:
            return
        self.do(self.hand.wants("kanban_complete", summary="from the grave"))
        call = self.hand.called
        assert call is not None
        other = self.do(ManualWorker(self.rig, self.hand.run).take())
        self.do(other.write(_cut(call)))
        for _ in range(40):
            self.rig.awake_seconds += 60
            self.do(self.rig.look())
        assert not self._is_at_work() or self.do(self.rig.card(self.hand.run.card)).run.number != self.hand.run.run  # type: ignore[union-attr]
        if self.do(other.state()).turn is not None:
            self.do(other.end("stopped"))
        self.zombies.append(self.hand)
        self.hand = None

    @precondition(lambda self: self.zombies)
    @rule(data=st.data())
    def a_zombie_wakes_up(self, data: st.DataObject) -> None:
        """It was frozen with a call in its hands, or its run was taken away."""
        self._wake(data.draw(st.sampled_from(self.zombies)))

    def _wake(self, zombie: ManualWorker) -> None:
        zombie.rig = self.rig
        before = {card: len(self.do(self.rig.records(card))) for card in CARDS}
        if zombie.called is not None:
            self.do(zombie.carry_out(zombie.called))
        with suppress(Fenced):
            if self.do(zombie.state()).turn is not None:
                self.do(zombie.calls("kanban_complete", summary="late"))
                raise AssertionError("an earlier worker could still write")
        assert before == {card: len(self.do(self.rig.records(card))) for card in CARDS}

    @rule(
        card=cards,
        early=st.booleans(),
        late=st.booleans(),
        ends=st.sampled_from(["complete", "block", "network", "freeze"]),
    )
    def a_whole_run(self, card: str, early: bool, late: bool, ends: str) -> None:
        """What happens most: somebody lets it go on, people talk to its worker, and it ends in one way or another."""
        if self.hand is None:
            self.somebody_says(card, RetryCard(text="go on"), False)
            self.clock.move(HOUR)
            self.look()
        if self.hand is None:
            return
        card = self.hand.run.card
        if early:
            self.somebody_says(card, CommentCard(text="early"), False)
        self.work("", True)
        if late and self.hand is not None:
            self.somebody_says(card, CommentCard(text="late"), True)
        for zombie in self.zombies[-5:]:
            self._wake(zombie)
        if ends == "freeze":
            self.freezes()
        else:
            self.work(ends, False)
            self.look()

    # --- the gateway and the clock --------------------------------------------------------------

    @rule(hours=st.sampled_from([0, 1, 10]))
    def the_gateway_is_killed(self, hours: int) -> None:
        """And started again some time later: it is the same run that goes on."""
        open_runs = self.do(self.rig.store.cards.open_runs())
        self.do(self.rig.close())
        self.clock.move(hours * HOUR)
        self.do(self._open())
        assert self.do(self.rig.store.cards.open_runs()) == open_runs
        if self.hand is not None:
            self.hand.rig = self.rig
            self.zombies.append(self.hand)
            self.hand = self.do(ManualWorker(self.rig, self.hand.run).take())
            found = pick_up(self.do(self.hand.state()), Partial(), now=self.clock.now(), limits=TurnLimits())
            if found:
                self.do(self.hand.write(*found))
            if any(isinstance(event, WaitOpened) for event in found):
                self.do(self.rig.look())  # old work waits for a person: the card is blocked, nothing is used up
                card = self.do(self.rig.card(self.hand.run.card))
                ended = card.runs[-1].finished
                assert ended is not None
                assert (card.status, ended.uses_attempt) == ("blocked", False)
                self._leave()

    @rule(hours=st.integers(-5, 5))
    def the_clock_jumps(self, hours: int) -> None:
        open_runs = self.do(self.rig.store.cards.open_runs())
        self.clock.move(hours * HOUR)
        if self.hand is not None and self.do(self.hand.state()).turn is not None:
            self.do(self.rig.look())
            now = self.do(self.rig.store.cards.open_runs())
            assert [row.run for row in now] == [row.run for row in open_runs], "nothing is reclaimed"

    # --- what must always be true ---------------------------------------------------------------

    @invariant()
    def the_log_may_have_happened(self) -> None:
        if not hasattr(self, "rig"):
            return
        news = 0
        for id in CARDS:
            records = self.do(self.rig.records(id))
            card = check_card(records)
            assert card == self.do(self.rig.card(id))
            news += _follower_note([record.event for record in records])  # type: ignore[misc]
            for run in card.runs:
                session = self.do(self.rig.sessions.get(run.started.session))
                open_run = card.run is not None and card.run.started.session == session.id
                assert session.run == (card.run.number if open_run and card.run is not None else 0)
        told = self.do(self.rig.store.load(session_stream(FOLLOWER), after=0))
        lines = [
            line for record in told if isinstance(record.event, NoteReceived) for line in record.event.text.split("\n")
        ]
        assert len(lines) == news, "told of each block, failure and end, once"

    def teardown(self) -> None:
        if not hasattr(self, "rig"):
            return
        check_projections(Path(self.home.name) / "home" / "holdfast.db")
        self.do(self.rig.close())
        self.loop.close()
        engines.forget(Path(self.home.name) / "home")
        engines.name = "sqlite"
        self.home.cleanup()


class PostgresBoardMachine(BoardMachine):
    """The same on PostgreSQL."""

    engine: EngineName = "postgres"


def _cut(call: Call) -> ToolCallFinished:
    turn = int(call.call.partition(".")[0])
    return ToolCallFinished(turn=turn, call=call.call, tool=call.tool, outcome="unknown", output="cut", duration_ms=0)


def _follower_note(events: list[CardEvent]) -> int:
    return sum(
        isinstance(event, CardBlocked | CardCompleted)
        or (isinstance(event, RunFinished) and event.outcome in ("failed", "lost"))
        for event in events
    )


TestBoard, TestPostgresBoard = BoardMachine.TestCase, PostgresBoardMachine.TestCase
TestBoard.settings = settings(
    max_examples=8,  # more: tests/test_machines_at_length.py
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=set(Phase) - {Phase.shrink, Phase.explain},
    print_blob=True,
)
TestPostgresBoard.settings = settings(TestBoard.settings, max_examples=3)
