"""One session under everything that can come: people, a worker step by step, crashes, zombies, clocks.

The machine drives the rules of the domain against a `Log`. `tests/domain/test_machine.py` runs it in
memory, where it is quick; `tests/store/test_machine.py` runs the very same on a real store, restarts
included.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Literal, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.domain.chapter import INTERRUPTED
from holdfast.domain.command import InputMode
from holdfast.domain.commands import (
    AnswerWait,
    ArchiveSession,
    ChooseAgent,
    CompactSession,
    RenameSession,
    SendMessage,
    SessionCommand,
    SetResetPolicy,
    StopTurn,
    UndoReset,
    UndoTurn,
)
from holdfast.domain.compaction import Compact, Trim, retry_at
from holdfast.domain.context_limits import CompactionRules
from holdfast.domain.errors import Conflict, Fenced
from holdfast.domain.events import AnyEvent, Record, session_stream
from holdfast.domain.events.actor import THE_CLOCK, THE_RESET_CLOCK, TaskActor
from holdfast.domain.events.chapter import (
    Blocker,
    ResetPolicy,
    ResetPostponed,
    ResetRule,
    SummaryStarted,
    SummaryWritten,
)
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import (
    CallOutcome,
    Effect,
    InputReceived,
    InputsJoined,
    ModelFailed,
    ModelRequested,
    NoteReceived,
    SessionCreated,
    ToolCallFinished,
    ToolCallStarted,
    TurnStarted,
    WaitAnswered,
)
from holdfast.domain.next_step import (
    Ask,
    Begin,
    CallModel,
    Finish,
    Join,
    Partial,
    Rest,
    RunTool,
    Sleep,
    TurnLimits,
    closing_events,
    stop_reason,
)
from holdfast.domain.reset import Reset, open_chapter
from holdfast.domain.resume import pick_up
from holdfast.domain.session import Session
from holdfast.domain.session_fold import fold
from holdfast.domain.session_rules import decide
from holdfast.domain.summary import failed_summary
from tests.actors import person
from tests.domain.book import ID, PROBLEM, answer
from tests.domain.chapters import check_context, freshness
from tests.domain.history import check, check_ended
from tests.domain.steps import next_step

HOUR = 3_600_000
RULES = CompactionRules(threshold=6, limit=12, keep_recent=1)
LIMITS = TurnLimits(steps=4, resume_attempts=2, resume_age_ms=6 * HOUR, compaction=RULES)

Reply = list[str] | None
"""What the model says: the tools that it wants, or None when it fails."""
tools = st.lists(st.sampled_from(["t", "no such tool"]), min_size=1, max_size=3)
replies: st.SearchStrategy[Reply] = tools | st.just([]) | tools | st.none()
effects: st.SearchStrategy[Effect] = st.sampled_from(["pure", "idempotent", "keyed", "unsafe"])


class Log(Protocol):
    """Where the machine writes: a fence, command ids, one stream."""

    def claim(self) -> int:
        """Take the lease; whoever held it is fenced."""

    def append(self, events: list[AnyEvent], *, at: int, token: int | None = None, command: str | None = None) -> None:
        """Fenced if the token is not the latest; a command id that is known already changes nothing."""

    def records(self) -> list[Record]:
        """All of it."""

    def close(self) -> None:
        """The example is over."""


class MemoryLog:
    """The promises of a store in a few lines."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._commands: set[str] = set()
        self._token = 0

    def claim(self) -> int:
        self._token += 1
        return self._token

    def append(self, events: list[AnyEvent], *, at: int, token: int | None = None, command: str | None = None) -> None:
        if command in self._commands:
            return
        if token not in (None, self._token):
            raise Fenced("an earlier holder")
        if command is not None:
            self._commands.add(command)
        for event in events:
            version = len(self._records) + 1
            self._records.append(Record(seq=version, stream=session_stream(ID), version=version, at=at, event=event))

    def records(self) -> list[Record]:
        return list(self._records)

    def close(self) -> None:
        pass


class MachineWorker:
    """A worker of the state machine: its token, and the session as far as it has read the log."""

    def __init__(self, token: int) -> None:
        self.token = token
        self.session = Session(ID)

    def look(self, log: Log) -> None:
        self.session = fold(self.session, log.records()[self.session.version :])

    def next_events(self, reply: Reply, effect: Effect) -> list[AnyEvent]:
        """The next append of the loop in `runtime/turn.py`; none when there is rest."""
        session, turn = self.session, self.session.turn
        if session.chapter.in_progress is not None:
            return [end_of_summary(session, reply, helps=effect != "unsafe")]
        if turn is not None and turn.asked and stop_reason(session) is None:
            asked = CallModel(turn.number, turn.step, turn.attempts)
            if reply is None:
                return [ModelFailed(turn=turn.number, step=turn.step, problem=PROBLEM)]
            return [answer(asked, "" if reply else "done", *reply)]
        match next_step(session, LIMITS, now=session.updated_at):
            case Begin(number, inputs, person):
                return [TurnStarted(turn=number, inputs=inputs, profile="demo", by_person=person)]
            case Join(number, inputs, person):
                return [InputsJoined(turn=number, inputs=inputs, by_person=person)]
            case CallModel(number, step, attempt):
                version = session.version
                return [ModelRequested(turn=number, step=step, attempt=attempt, model="m", context_version=version)]
            case RunTool(number, call):
                if call.tool == "t" and session.turn is not None and session.turn.open_calls[call.call].effect is None:
                    return [ToolCallStarted(turn=number, call=call.call, tool=call.tool, effect=effect)]
                outcome: CallOutcome = "done" if call.tool == "t" else "failed"
                return [
                    ToolCallFinished(
                        turn=number, call=call.call, tool=call.tool, outcome=outcome, output="", duration_ms=0
                    )
                ]
            case Finish() as step:
                return closing_events(session, step, Partial("so far"), now=session.updated_at)
            case Sleep(number, wait, _, default):
                return [WaitAnswered(turn=number, wait=wait, answer=default, by=THE_CLOCK)]
            case Trim(event):
                return [event]
            case Compact(covers, digest=True, covers_step=covers_step):
                return [compacted(session, covers, covers_step, "digest")]
            case Compact(covers, reason, covers_step=covers_step):
                return [
                    SummaryStarted(
                        covers_turn=covers,
                        covers_step=covers_step,
                        attempt=1,
                        model="m",
                        tokens=session.size,
                        reason=reason,
                    )
                ]
            case Ask(wait):
                return [wait]
            case Rest():
                return []


def end_of_summary(session: Session, reply: Reply, *, helps: bool) -> AnyEvent:
    """It is cut at rest by a message and in a turn by a stop; else it fails or comes, and may be of little help."""
    trying = session.chapter.in_progress
    assert trying is not None
    if (session.turn is None and session.queue) or stop_reason(session) is not None:
        cut = Problem(code=INTERRUPTED, message="cut")
        return failed_summary(trying, cut, retry_at=session.updated_at)
    if reply is None:
        again = retry_at(session.chapter, now=session.updated_at)
        return failed_summary(trying, PROBLEM, retry_at=again)
    return compacted(session, trying.covers_turn, trying.covers_step, "model", helps=helps)


def compacted(
    session: Session, covers: int, step: int, source: Literal["model", "digest"], *, helps: bool = True
) -> SummaryWritten:
    return SummaryWritten(
        covers_turn=covers,
        covers_step=step,
        summary="so far",
        source=source,
        model="m",
        tokens_before=session.size,
        tokens_after=session.size // 2 if helps else session.size,
        reason="long",
    )


class SessionMachine(RuleBasedStateMachine):
    """See above."""

    log: Log
    worker: MachineWorker | None = None

    def __init__(self) -> None:
        super().__init__()
        self.now = 10 * HOUR
        self.zombies: list[MachineWorker] = []
        self.commands: dict[str, SessionCommand] = {}
        self.said: list[str] = []

    def open_log(self) -> Log:
        return MemoryLog()

    @initialize()
    def create(self) -> None:
        self.log = self.open_log()
        created = SessionCreated(session=ID, profile="demo", cwd="/", title="", by=person("ann"))
        self.log.append([created], at=self.now)

    # --- people ---------------------------------------------------------------------------------

    def _tell(self, id: str, command: SessionCommand) -> None:
        events = decide(fold(Session(ID), self.log.records()), command, id=id, by=person("ann"))
        self.log.append(events, at=self.now, command=id)

    @rule(mode=st.sampled_from(["queue", "steer", "interrupt"]))
    def say(self, mode: InputMode) -> None:
        id = f"c{len(self.commands)}"
        self.commands[id] = SendMessage(text=f"{id} and eight more", mode=mode)
        self._tell(id, self.commands[id])
        self.said.append(id)

    @rule()
    def stop(self) -> None:
        with suppress(Conflict):
            self._tell(f"stop{len(self.log.records())}", StopTurn())

    @precondition(lambda self: self.commands)
    @rule(data=st.data())
    def say_again(self, data: st.DataObject) -> None:
        """The acknowledgement got lost on its way, so the client tries again."""
        id = data.draw(st.sampled_from(sorted(self.commands)))
        before = len(self.log.records())
        self._tell(id, self.commands[id])
        assert len(self.log.records()) == before

    @rule(
        command=st.sampled_from(
            [
                UndoReset(),
                SetResetPolicy(policy=ResetPolicy(mode="idle", idle_minutes=5)),
                CompactSession(instructions="briefly"),
                UndoTurn(),
                ChooseAgent(profile="other"),
                RenameSession(title="a title"),
                ArchiveSession(),
            ]
        )
    )
    def act(self, command: SessionCommand) -> None:
        with suppress(Conflict):
            self._tell(f"act{len(self.log.records())}", command)

    @rule(keep=st.booleans())
    def answer(self, keep: bool) -> None:
        """What a summary that failed has asked."""
        turn = fold(Session(ID), self.log.records()).turn
        if turn is not None and turn.wait is not None and turn.wait.purpose == "compaction":
            answer = turn.wait.choices[0] if keep else turn.wait.choices[1]
            self._tell(f"answer{len(self.log.records())}", AnswerWait(wait=turn.wait.wait, answer=answer))

    @rule(rule=st.sampled_from(["person", "idle", "daily"]))
    def reset(self, rule: ResetRule) -> None:
        with suppress(Conflict):
            by = person("ann") if rule == "person" else THE_RESET_CLOCK
            reset = Reset(rule, None, "it is time", [], [])
            opened = open_chapter(fold(Session(ID), self.log.records()), reset, by=by, now=self.now)
            self.log.append([opened], at=self.now)

    # --- what is no person's act ----------------------------------------------------------------

    @rule(wakes=st.booleans())
    def task_ends(self, wakes: bool) -> None:
        number = len(self.log.records())
        note: AnyEvent = NoteReceived(text="it ended", task=f"t{number}")
        if wakes:
            note = InputReceived(
                input=f"t{number}", text="it ended", mode="queue", by=TaskActor(task=f"t{number}"), source="task"
            )
            self.said.append(f"t{number}")
        self.log.append([note], at=self.now)

    @rule()
    def reset_is_postponed(self) -> None:
        blocker = Blocker(by="process", reason="at work", task="t")
        late = ResetPostponed(rule="idle", due_at=self.now, until=self.now, next_check=self.now, blockers=[blocker])
        self.log.append([late], at=self.now)

    # --- the worker -----------------------------------------------------------------------------

    @rule()
    def take_over(self) -> None:
        """A new worker, whatever became of the old one: dead, frozen, or about to wake up."""
        if self.worker is not None:
            self.zombies.append(self.worker)
        self.worker = MachineWorker(self.log.claim())
        self.worker.look(self.log)
        found = pick_up(self.worker.session, Partial("so far"), now=self.now, limits=LIMITS)
        self.log.append(found, at=self.now, token=self.worker.token)

    @precondition(lambda self: self.worker is not None)
    @rule(steps=st.lists(st.tuples(replies, effects), min_size=2, max_size=10))
    def work(self, steps: list[tuple[Reply, Effect]]) -> None:
        """A few appends; the worker may die after any of them."""
        assert self.worker is not None
        for reply, effect in steps:
            self.worker.look(self.log)
            if events := self.worker.next_events(reply, effect):
                self.log.append(events, at=self.now, token=self.worker.token)

    @precondition(lambda self: self.zombies)
    @rule(data=st.data(), looks=st.booleans(), reply=replies, effect=effects)
    def zombie_writes(self, data: st.DataObject, looks: bool, reply: Reply, effect: Effect) -> None:
        """It wakes up, goes on as if nothing had been, and is refused."""
        zombie = data.draw(st.sampled_from(self.zombies))
        if looks:
            zombie.look(self.log)
        events = zombie.next_events(reply, effect)
        before = len(self.log.records())
        try:
            self.log.append(events, at=self.now, token=zombie.token)
        except Fenced:
            pass
        else:
            raise AssertionError("promise 2: an earlier worker could still write")
        assert len(self.log.records()) == before

    @rule(by=st.integers(-10 * HOUR, 10 * HOUR))
    def clock_jumps(self, by: int) -> None:
        self.now = max(1, self.now + by)  # the rows call the time 0 "never"

    # --- what must always be true ---------------------------------------------------------------

    @invariant()
    def the_log_is_a_history_that_may_have_happened(self) -> None:
        history = check(self.log.records())
        assert list(history.accepted) == self.said, "accepted once each, in order"

    @invariant()
    def a_fold_bit_by_bit_equals_a_fold_in_one_go(self) -> None:
        if self.worker is not None:
            self.worker.look(self.log)
            assert self.worker.session == fold(Session(ID), self.log.records())

    @invariant()
    def only_people_keep_a_session_fresh(self) -> None:
        records = self.log.records()
        session = fold(Session(ID), records)
        found = tuple(None if one is None else one.at for one in (session.first_input, session.last_active))
        assert found == freshness(records)

    @invariant()
    def the_model_sees_its_chapter_or_a_summary_of_it(self) -> None:
        check_context(self.log.records())

    def teardown(self) -> None:
        """Stepped far enough, with a model that behaves, everything comes to its end."""
        try:
            self._to_the_end()
        finally:
            self.log.close()

    def _to_the_end(self) -> None:
        self.take_over()
        worker = self.worker
        assert worker is not None
        for _ in range(100 + 20 * len(self.said)):
            worker.look(self.log)
            if worker.session.activity == "waiting":
                self.answer(keep=False)
                self.say("queue")
                worker.look(self.log)
            events = worker.next_events([], "pure")
            if not events:
                break
            self.log.append(events, at=self.now, token=worker.token)
        check_ended(self.log.records())
