"""The reset policy under a simulated clock: whatever happens, what may postpone a reset, how long, and how often."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from holdfast.domain.commands import CompactSession, SetResetPolicy, UndoReset
from holdfast.domain.errors import Conflict
from holdfast.domain.events import Record
from holdfast.domain.events.actor import (
    THE_RESET_CLOCK,
    Actor,
    AgentActor,
    RunActor,
    ServiceActor,
    TaskActor,
    is_person,
)
from holdfast.domain.events.chapter import ResetMode, ResetPolicy, ResetPostponed, SummaryStarted
from holdfast.domain.events.session import InputReceived, NoteReceived, TurnResumed, TurnStarted, WaitOpened
from holdfast.domain.next_step import Begin
from holdfast.domain.reset import (
    NotDue,
    Reset,
    ResetClockReading,
    ResetRules,
    RunningTask,
    decide_reset,
    open_chapter,
    same_reason,
    split_running,
    still_postponed,
)
from holdfast.domain.session import Session
from holdfast.domain.session_fold import fold
from holdfast.domain.session_fork import fork
from tests.actors import person
from tests.domain.book import Book

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
START = 1_000 * DAY


@dataclass
class Process:
    """A command of the session, as the look sees it."""

    since: int
    activity: str
    agent: bool = False
    name: str = "t0"

    def seen(self, now: int) -> RunningTask:
        return RunningTask(
            task=self.name,
            title="make",
            command="make",
            pid=1,
            process=not self.agent,
            lifetime="session",
            age_ms=now - self.since,
            activity=self.activity,
            detail="",
            evidence="cpu 90%",
        )


@dataclass
class Situation:
    """One session, its commands, a person, and a clock that looks every few seconds."""

    rules: ResetRules
    look_ms: int
    book: Book = field(default_factory=Book)
    processes: list[Process] = field(default_factory=list)
    reset_service: list[tuple[int, Reset]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    started: int = 0

    def __post_init__(self) -> None:
        self.book.now = START

    @property
    def now(self) -> int:
        return self.book.now

    def moment(self) -> ResetClockReading:
        """The daily hour is midnight of day 0, 1, 2 …"""
        session = self.book.session
        fresh = session.last_active.at if session.last_active is not None else 0
        boundary = self.now // DAY * DAY
        return ResetClockReading(
            now=self.now,
            fresh_at=fresh,
            idle_ms=self.now - fresh,
            boundary=boundary,
            since_boundary_ms=self.now - boundary,
            next_boundary=boundary + DAY,
        )

    def look(self) -> None:
        """What the reset clock does, and what must be true of it."""
        session, rules, moment = self.book.session, self.rules, self.moment()
        running = [one.seen(self.now) for one in self.processes]
        decision = decide_reset(session, rules, moment, running)
        dues = self._dues()
        open_now = session.turn is not None or bool(session.queue)
        match decision:
            case NotDue():
                assert not dues, "it fell due, and nothing was said of it"
                self.seen.add("not due")
            case Reset():
                assert dues and not open_now, "a reset that was not due, or that cut something"
                assert decision.due_at == min(dues)
                self.reset_service.append((self.now, decision))
                self.book.write(open_chapter(session, decision, by=THE_RESET_CLOCK, now=self.now))
                self.seen.add(f"reset {decision.rule}")
            case ResetPostponed():
                assert dues, "postponed what is not due"
                self._check_postponed(decision, min(dues), open_now)
                if session.postponed is None or not same_reason(session.postponed[0], decision):
                    self.book.write(decision)

    def _dues(self) -> list[int]:
        """When a reset fell due that has not happened, by the words of the policy."""
        session, found = self.book.session, []
        if session.first_input is None or session.last_active is None or session.archived:
            return []
        if self.rules.mode in ("idle", "both") and self.now >= session.last_active.at + self.rules.idle_ms:
            found.append(session.last_active.at + self.rules.idle_ms)
        if self.rules.mode in ("daily", "both") and session.first_input.at < self.now // DAY * DAY:
            found.append(self.now // DAY * DAY)
        return found

    def _check_postponed(self, postponed: ResetPostponed, due: int, open_now: bool) -> None:
        assert postponed.due_at == due
        if open_now:
            assert all(blocker.by in ("turn", "question", "queue") for blocker in postponed.blockers)
            assert postponed.until is None, "what is open is never cut"
            self.seen.add("postponed by a turn")
            return
        assert self.now - due < self.rules.max_postpone_ms, "beyond the hard maximum"
        assert postponed.until == due + self.rules.max_postpone_ms
        for blocker in postponed.blockers:
            assert blocker.by == "process"
            assert blocker.age_ms is not None and blocker.age_ms < self.rules.process_max_age_ms, "older than believed"
            [process] = [one for one in self.processes if one.name == blocker.task]
            assert process.activity == "working" and not process.agent, "only work at hand"
        self.seen.add("postponed by a process")

    # --- what happens ---------------------------------------------------------------------------

    def do(self, what: str, length: int) -> None:
        session = self.book.session
        match what:
            case "wait":
                self._pass(length)
            case "say":
                self.book.say("hello")
                self._turn(length)
            case "queue":
                self.book.say("hello")
            case "take up":
                self._turn(length)
            case "question":
                self.book.say("hello")
                self._turn(length, asks=True)
            case "note":
                self.book.write(NoteReceived(text="it ended", task="t"))
            case "woken":
                self.book.write(
                    InputReceived(input=f"t{self.now}", text="it ended", mode="queue", by=TaskActor(task="t"))
                )
                self._turn(length)
            case "undo" if len(session.chapters) > 1 and session.turn is None:
                self.book.tell(UndoReset())
            case "policy":
                self.book.tell(SetResetPolicy(policy=session.policy))
            case "down":
                self.book.now += length  # nobody looks
            case "working" | "serving" | "idle" | "waiting" | "unknown":
                self._start(Process(self.now, what))
            case "agent":
                self._start(Process(self.now, "working", agent=True))
            case "ends":
                self.processes = self.processes[1:]
            case _:
                pass

    def _start(self, process: Process) -> None:
        self.started += 1
        process.name = f"t{self.started}"
        self.processes.append(process)

    def _turn(self, length: int, *, asks: bool = False) -> None:
        step = self.book.next()
        if self.book.session.turn is not None or not isinstance(step, Begin):
            return
        self.book.write(TurnStarted(turn=step.turn, inputs=step.inputs, profile="demo", by_person=step.by_person))
        self.book.ask()
        self.book.write(
            TurnResumed(turn=step.turn, attempt=0, interruption="crash", reason="the gateway was shut down", away_ms=1)
        )
        if asks:
            self.book.write(WaitOpened(turn=step.turn, wait=f"w{self.now}", purpose="resume", reason="old"))
        self._pass(length)
        if asks:
            self.book.say("go on")
        self.book.answer("done")
        self.book.finish()

    def _pass(self, length: int) -> None:
        end, step = self.now + length, max(self.look_ms, length // 100)
        while self.now < end:
            self.book.now = min(end, self.now + step)
            self.look()


ACTS = ["wait"] * 4 + ["say", "say", "queue", "take up", "question", "note", "woken", "undo", "policy", "down"]
ACTS += ["working", "working", "serving", "idle", "waiting", "unknown", "agent", "ends"]
lengths = st.one_of(st.integers(1, 5 * MINUTE), st.integers(1, 3 * HOUR), st.sampled_from([DAY, 30 * HOUR, 3 * DAY]))
acts = st.lists(st.tuples(st.sampled_from(ACTS), lengths), min_size=3, max_size=25)
rules = st.builds(
    ResetRules,
    mode=st.sampled_from(["none", "idle", "daily", "both"]),
    idle_ms=st.sampled_from([MINUTE, 10 * MINUTE, HOUR, DAY]),
    max_postpone_ms=st.sampled_from([1, 10 * MINUTE, 2 * HOUR]),
    process_max_age_ms=st.sampled_from([1, 30 * MINUTE, DAY]),
)


@pytest.mark.parametrize("mode", ["none", "idle", "daily", "both"])
@settings(max_examples=50, deadline=None, phases=set(Phase) - {Phase.explain})
@given(chosen=rules, script=acts, look=st.sampled_from([MINUTE, 7 * MINUTE, HOUR]))
def test_promise_5_a_reset_comes_once_on_time_and_is_postponed_only_by_what_may(
    mode: ResetMode, chosen: ResetRules, script: list[tuple[str, int]], look: int
) -> None:
    world = Situation(_with(chosen, mode=mode), look)
    for what, length in script:
        note(f"{world.now - START:>12} {what} {length}")
        world.do(what, length)
    world.do("wait", 8 * DAY)
    session = world.book.session
    if mode == "none":
        assert world.reset_service == [] and session.postponed is None
        return
    for (earlier, _), (later, reset) in zip(world.reset_service, world.reset_service[1:], strict=False):
        assert _people_acted(world, earlier, later), "two resets, and nobody was there in between"
        if reset.rule == "daily":
            assert later // DAY > earlier // DAY or _begun_anew(world, earlier, later)
    if not session.queue and session.turn is None and any(is_person(by) for by in _speakers(world)):
        assert session.first_input is None, "it fell due long ago, and nothing is open"


def _with(chosen: ResetRules, *, mode: ResetMode) -> ResetRules:
    return ResetRules(
        mode=mode,
        idle_ms=chosen.idle_ms,
        max_postpone_ms=chosen.max_postpone_ms,
        process_max_age_ms=chosen.process_max_age_ms,
    )


def _speakers(world: Situation) -> list[Actor]:
    return [record.event.by for record in world.book.records if isinstance(record.event, InputReceived)]


def _people_acted(world: Situation, after: int, until: int) -> bool:
    """Somebody said something, or undid the reset, between two moments."""
    return any(
        after <= record.at <= until and is_person(getattr(record.event, "by", THE_RESET_CLOCK))
        for record in world.book.records
    )


def _begun_anew(world: Situation, after: int, until: int) -> bool:
    return any(after <= record.at <= until for record in world.book.records if isinstance(record.event, InputReceived))


def test_the_script_reaches_all_of_it() -> None:
    """A property that never meets its case proves nothing."""
    world = Situation(ResetRules(mode="both", idle_ms=HOUR, max_postpone_ms=HOUR), MINUTE)
    for what, length in [("say", 2 * HOUR), ("working", 0), ("wait", 5 * HOUR), ("queue", 0), ("wait", 2 * DAY)]:
        world.do(what, length)
    assert world.seen == {"not due", "reset idle", "postponed by a turn", "postponed by a process"}
    daily = Situation(ResetRules(mode="daily"), MINUTE)
    for what, length in [("say", MINUTE), ("down", 3 * DAY), ("wait", 2 * DAY)]:
        daily.do(what, length)
    assert [reset.rule for _, reset in daily.reset_service] == ["daily"], "caught up once, and not for each day"


# --- one by one ---------------------------------------------------------------------------------


def idle_world(*processes: Process) -> Situation:
    world = Situation(ResetRules(mode="idle", idle_ms=HOUR, max_postpone_ms=HOUR, process_max_age_ms=DAY), MINUTE)
    world.do("say", MINUTE)
    world.processes += processes
    return world


@pytest.mark.parametrize("activity", ["serving", "idle", "waiting", "unknown", ""])
def test_a_server_never_postpones(activity: str) -> None:
    world = idle_world(Process(START, activity))
    world.do("wait", 2 * HOUR)
    [(at, reset)] = world.reset_service
    assert at == START + MINUTE + HOUR
    assert [one.task for one in reset.kept] == ["t0"]


def test_work_postpones_up_to_the_maximum_and_says_until_when() -> None:
    world = idle_world(Process(START, "working"))
    world.do("wait", 90 * MINUTE)
    session = world.book.session
    assert world.reset_service == [] and session.postponed is not None
    postponed, _ = session.postponed
    assert postponed.until == START + MINUTE + 2 * HOUR
    assert "cpu 90%" in postponed.blockers[0].reason and "t0" in postponed.blockers[0].reason
    world.do("wait", HOUR)
    assert [at for at, _ in world.reset_service] == [postponed.until], "and then it comes"
    kinds = [type(record.event).__name__ for record in world.book.records]
    assert kinds.count("ResetPostponed") == 1, "written when the reason changes, not at every look"


def test_work_that_is_older_than_believed_postpones_nothing() -> None:
    world = idle_world(Process(START - DAY, "working"))
    world.do("wait", 2 * HOUR)
    assert [at for at, _ in world.reset_service] == [START + MINUTE + HOUR]


def test_a_long_turn_that_ends_is_not_called_postponed_any_more() -> None:
    """It fell due while the turn ran; its end made the session fresh."""
    world = idle_world()
    world.do("say", 3 * HOUR)
    kinds = [type(record.event).__name__ for record in world.book.records]
    assert "ResetPostponed" in kinds
    assert world.book.session.postponed is None and world.reset_service == []


def test_what_postponed_is_forgotten_when_the_rules_say_that_nothing_is_due() -> None:
    world = idle_world(Process(START, "working"))
    world.do("wait", 90 * MINUTE)
    session = world.book.session
    assert still_postponed(session, NotDue("idle", world.now - HOUR), world.now) is not None
    assert still_postponed(session, NotDue("idle", world.now + DAY), world.now) is None
    assert still_postponed(session, NotDue(), world.now) is None


def test_a_rule_is_not_about_the_time_before_it_was_set() -> None:
    """Whoever chooses `daily` at noon does not lose the morning at once."""
    world = Situation(ResetRules(), HOUR)
    world.do("say", MINUTE)
    world.do("wait", 2 * DAY)
    world.do("policy", 0)
    world.rules = ResetRules(mode="daily")
    world.look()
    assert world.reset_service == []
    world.do("wait", DAY)
    assert len(world.reset_service) == 1


def test_a_merged_policy_keeps_what_was_chosen_before() -> None:
    """Two people who choose different things at the same time both get what they chose."""
    world = Situation(ResetRules(), HOUR)
    world.book.tell(SetResetPolicy(policy=ResetPolicy(mode="daily", notify=False)))
    world.book.tell(SetResetPolicy(policy=ResetPolicy(max_postpone="0s"), merge=True))
    assert world.book.session.policy == ResetPolicy(mode="daily", notify=False, max_postpone="0s")
    world.book.tell(SetResetPolicy(policy=ResetPolicy(mode="idle")))
    assert world.book.session.policy == ResetPolicy(mode="idle")


def test_a_fork_is_as_fresh_as_the_moment_of_its_making() -> None:
    """Else the daily hour that its parent has lived through would reset it at once."""
    world = Situation(ResetRules(mode="daily"), HOUR)
    world.do("say", MINUTE)
    world.book.tell(SetResetPolicy(policy=ResetPolicy(mode="daily", at_hour=5)))
    world.book.tell(CompactSession())
    world.book.write(SummaryStarted(covers_turn=1, attempt=1, model="m", tokens=1, reason="long"))
    now = world.now + 3 * DAY
    pairs = fork(world.book.records, session="fedcba9876543210", title="fork", by=person("ann"), now=now)
    records = [Record(seq=n, stream="session/f", version=n, at=at, event=one) for n, (at, one) in enumerate(pairs, 1)]
    copy = fold(Session("fedcba9876543210"), records)
    assert copy.first_input is not None and copy.last_active is not None
    assert (copy.first_input.at, copy.last_active.at, copy.policy.at_hour) == (now, now, 5)
    assert copy.activity == "idle", "nobody is at work on its summary"


def test_agents_and_tasks_are_no_people() -> None:
    assert not is_person(AgentActor(session="0123456789abcdef"))
    assert not is_person(TaskActor(task="t")) and not is_person(THE_RESET_CLOCK)
    assert not is_person(RunActor(card="x", run=2)), "the worker of a card is an agent"
    assert not is_person(ServiceActor(name="retention", rule="tasks_count = 1", asked_by=person("cli")))
    assert all(is_person(person(client)) for client in ("web", "cli", "api"))


def test_a_reset_by_a_person_is_refused_while_work_is_open() -> None:
    world = idle_world()
    world.do("queue", 0)
    with pytest.raises(Conflict, match="in the queue") as refused:
        open_chapter(world.book.session, Reset("person", None, "", [], []), by=person("ann"), now=world.now)
    assert "holdfast stop" not in refused.value.hint, "there is no turn to stop"
    world.book.begin()
    with pytest.raises(Conflict, match="turn 2 has been open for") as refused:
        open_chapter(world.book.session, Reset("person", None, "", [], []), by=person("ann"), now=world.now)
    assert "holdfast stop" in refused.value.hint


def test_what_becomes_of_what_runs() -> None:
    def one(task: str, **more: object) -> RunningTask:
        usual = {"title": "x", "command": "x", "pid": 1, "process": True, "lifetime": "session", "age_ms": 1}
        usual |= {"activity": "working", "detail": "", "evidence": ""}
        return RunningTask(task=task, **(usual | more))  # type: ignore[arg-type]

    running = [
        one("work"),
        one("idle", activity="idle", quiet_looks=3),
        one("quiet", activity="idle", quiet_looks=2),
        one("used", activity="serving", detail="in use"),
        one("unused", activity="serving", detail="not in use", quiet_looks=3),
        one("chapter", lifetime="chapter"),
        one("agent", process=False, activity=""),
    ]

    def stopped(policy: object) -> dict[str, str]:
        kept, gone = split_running(running, policy)  # type: ignore[arg-type]
        assert {one.task for one in kept} | {one.task for one in gone} == {one.task for one in running}
        assert all(one.rule for one in kept)
        assert {one.task: one.rule for one in kept}["agent"] == ("agents continue in their own sessions"), (
            "not: a person chose to stop it"
        )
        return {one.task: one.rule for one in gone}

    assert stopped("hand_over") == {"chapter": "its lifetime is the chapter"}
    assert set(stopped("stop_idle")) == {"idle", "unused", "chapter"}
    assert set(stopped("stop")) == {"work", "idle", "quiet", "used", "unused", "chapter"}
    assert set(stopped("stop all")) == {"work", "idle", "quiet", "used", "unused", "chapter"}
    assert stopped("keep") == {}, "a person's wish comes before a lifetime"


def test_a_command_that_postponed_a_reset_is_named_when_the_limit_ends_the_patience() -> None:
    rules = ResetRules(mode="idle", idle_ms=HOUR, max_postpone_ms=HOUR)
    book = Book("hello").begin().answer("hi")
    book.finish()
    fresh = book.session.last_active
    assert fresh is not None
    running = RunningTask(
        task="abc",
        title="make",
        command="make",
        pid=1,
        process=True,
        lifetime="session",
        age_ms=HOUR,
        activity="working",
        detail="",
        evidence="",
    )
    moment = ResetClockReading(now=book.now + 2 * HOUR, fresh_at=fresh.at, idle_ms=2 * HOUR)
    decided = decide_reset(book.session, rules, moment, [running])
    assert isinstance(decided, Reset)
    assert decided.reason.endswith("; abc 'make' was still working, but max_postpone was reached (1 h 0 min)")
