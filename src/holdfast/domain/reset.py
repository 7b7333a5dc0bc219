"""When a session is reset, what may postpone that, and what becomes of what still runs. Pure, time passed in.

Two times matter. What happens at an hour goes by the wall clock. What happens after a while goes by the time
that the machine was awake: a laptop that slept, or a clock that was set, makes no session idle.
Activity is advice with a deadline, never a lock: only a process that is working may postpone a reset, and never
for longer than the policy says. An open turn, a question or a message in the queue is never cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from holdfast.domain.errors import Conflict
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.chapter import (
    Blocker,
    ChapterOpened,
    NoteFrom,
    OnLiveProcess,
    ResetMode,
    ResetPostponed,
    ResetRule,
    Survivor,
)
from holdfast.domain.events.parts import EventRef
from holdfast.domain.session import Session
from holdfast.domain.text import duration

RunningChoice = Literal["keep", "stop all"]
QUIET_LOOKS = 3
"""How many samples in a row must find a command idle before a rule stops it for that."""
CHECK_MS = 30_000
"""How often a postponed reset is checked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetRules:
    """The effective rules of one session: its own policy, else its profile's, else config.toml's."""

    mode: ResetMode = "none"
    idle_ms: int = 24 * 3_600_000
    at_hour: int = 4
    timezone: str = ""
    max_postpone_ms: int = 2 * 3_600_000
    process_max_age_ms: int = 24 * 3_600_000
    on_live_process: OnLiveProcess = "hand_over"
    hand_over_note: bool = True
    notify: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetClockReading:
    """The current time by the wall clock and in time that the machine was awake."""

    now: int
    fresh_at: int = 0
    """The person's last act, or the end of the last turn that a person asked for."""
    idle_ms: int = 0
    """Awake time since then."""
    boundary: int | None = None
    """The last daily hour that has passed."""
    since_boundary_ms: int = 0
    """And awake time since that."""
    next_boundary: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTask:
    """A background task of a session while it runs."""

    task: str
    title: str
    command: str
    pid: int | None
    process: bool
    """Whether it is a command, not an agent."""
    lifetime: str
    age_ms: int
    activity: str
    detail: str
    evidence: str
    quiet_looks: int = 0
    """How many samples in a row found it idle and unused."""

    @property
    def doing(self) -> str:
        """Its activity in words."""
        return " ".join(filter(None, (self.activity, self.detail)))


@dataclass(frozen=True, slots=True)
class NotDue:
    """No reset is due. `rule` is the next one, due `at` this time unless there is activity before."""

    rule: ResetRule | None = None
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """Open a new chapter."""

    rule: ResetRule
    due_at: int | None
    reason: str
    kept: list[Survivor]
    stopped: list[Survivor]


@dataclass(frozen=True, slots=True)
class Due:
    """A reset that was due."""

    rule: ResetRule
    at: int
    overdue_ms: int
    reason: str


def next_reset(begun_at: int | None, rules: ResetRules, moment: ResetClockReading) -> Due | NotDue:
    """Return the reset that was due, by the rule that was first. An empty chapter is not reset."""
    if begun_at is None or rules.mode == "none":
        return NotDue()
    fallen: list[Due] = []
    coming: list[NotDue] = []
    if rules.mode in ("idle", "both"):
        over = moment.idle_ms - rules.idle_ms
        at = moment.now - over
        reason = f"no user activity for {duration(moment.idle_ms)} (idle_minutes = {rules.idle_ms // 60_000})"
        if over >= 0:
            fallen.append(Due("idle", at, over, reason))
        else:
            coming.append(NotDue("idle", at))
    if rules.mode in ("daily", "both"):
        if moment.boundary is not None and begun_at < moment.boundary:
            reason = f"the daily hour has passed (at_hour = {rules.at_hour})"
            fallen.append(Due("daily", moment.boundary, moment.since_boundary_ms, reason))
        else:
            coming.append(NotDue("daily", moment.next_boundary))
    if fallen:
        return min(fallen, key=lambda one: one.at)
    return min(coming, key=lambda one: one.at or 0)


def decide_reset(
    session: Session, rules: ResetRules, moment: ResetClockReading, running: list[RunningTask]
) -> NotDue | ResetPostponed | Reset:
    """Return what to do about a session's reset now."""
    if session.card:
        return NotDue()  # the next run continues with it
    if (
        session.first_input is None
        or session.last_active is None
        or session.archived
        or session.last_active.at != moment.fresh_at
    ):
        return NotDue()  # there was activity meanwhile
    found = next_reset(session.first_input.at, rules, moment)
    if isinstance(found, NotDue):
        return found
    blockers = reset_blockers(session, moment.now)
    until = None
    left = rules.max_postpone_ms - found.overdue_ms
    if not blockers and left > 0:
        blockers = [_working(one) for one in running if _postpones(one, rules)]
        until = moment.now + left
    if not blockers:
        kept, stopped = split_running(running, rules.on_live_process)
        return Reset(found.rule, found.at, found.reason + _postponement_expired(running, rules, left), kept, stopped)
    check = moment.now + CHECK_MS if until is None else min(until, moment.now + CHECK_MS)
    return ResetPostponed(rule=found.rule, due_at=found.at, until=until, next_check=check, blockers=blockers)


def reset_blockers(session: Session, now: int) -> list[Blocker]:
    """Return what prevents any reset, including one that a person asks for."""
    turn = session.turn
    if turn is not None and turn.wait is not None:
        since = duration(now - turn.last_done.at)
        return [Blocker(by="question", reason=f"turn {turn.number} has been waiting for {since}: {turn.wait.reason}")]
    if turn is not None:
        return [Blocker(by="turn", reason=f"turn {turn.number} has been open for {duration(now - turn.started.at)}")]
    if session.queue:
        return [Blocker(by="queue", reason=f"{len(session.queue)} in the queue")]
    if session.run:
        return [Blocker(by="turn", reason=f"run {session.run} of card {session.card_label} works in it")]
    if (summary := session.chapter.in_progress) is not None:
        what = "its context is being summarised" if summary.purpose == "compaction" else "another reset has begun"
        return [Blocker(by="turn", reason=what)]
    return []


def check_at_rest(session: Session, now: int) -> None:
    """Refuse a reset that would interrupt something."""
    if blockers := reset_blockers(session, now):
        stop = f"`holdfast stop {session.id}` first." if session.turn is not None else "Try again afterwards."
        raise Conflict(f"It is still at work: {blockers[0].reason}.", hint=stop)


def _postpones(one: RunningTask, rules: ResetRules) -> bool:
    """Whether a task postpones a reset: only if it is working, and began less than the limit ago."""
    return one.process and one.activity == "working" and one.age_ms < rules.process_max_age_ms


def _postponement_expired(running: list[RunningTask], rules: ResetRules, left: int) -> str:
    """Return a clause that names the commands which still worked when the limit of a postponement was reached."""
    working = [f"{one.task} '{one.title}'" for one in running if _postpones(one, rules)]
    if left > 0 or not working:
        return ""
    verb = "was" if len(working) == 1 else "were"
    return (
        f"; {', '.join(working)} {verb} still working, but max_postpone was reached ({duration(rules.max_postpone_ms)})"
    )


def _working(one: RunningTask) -> Blocker:
    return Blocker(
        by="process",
        reason=f"process {one.task} {_pid(one)}'{one.title}' {one.doing} ({one.evidence}), age {duration(one.age_ms)}",
        task=one.task,
        pid=one.pid,
        command=one.command,
        age_ms=one.age_ms,
        activity=one.doing,
        evidence=one.evidence,
    )


def _pid(one: RunningTask) -> str:
    return "" if one.pid is None else f"pid {one.pid} "


PERSONS_CHOICE = {"keep": "a person chose to keep it", "stop all": "a person chose to stop it"}
AGENTS = "agents continue in their own sessions"


def split_running(
    running: list[RunningTask], policy: OnLiveProcess | RunningChoice
) -> tuple[list[Survivor], list[Survivor]]:
    """Return the tasks to keep for the next chapter and those to stop. A person's choice overrides lifetimes."""
    kept: list[Survivor] = []
    stopped: list[Survivor] = []
    for one in running:
        rule = _stopped_by(one, policy)
        where = kept if rule is None else stopped
        where.append(
            Survivor(
                task=one.task,
                title=one.title,
                pid=one.pid,
                activity=one.doing,
                evidence=one.evidence,
                age_ms=one.age_ms,
                rule=rule or (PERSONS_CHOICE.get(policy, f"on_live_process = {policy}") if one.process else AGENTS),
            )
        )
    return kept, stopped


def _stopped_by(one: RunningTask, policy: OnLiveProcess | RunningChoice) -> str | None:
    if not one.process or policy == "keep":
        return None
    if policy == "stop all":
        return PERSONS_CHOICE[policy]
    if one.lifetime == "chapter":
        return "its lifetime is the chapter"
    if policy == "stop":
        return "on_live_process = stop"
    quiet = one.activity in ("idle", "waiting") or one.detail == "not in use"
    if policy == "stop_idle" and quiet and one.quiet_looks >= QUIET_LOOKS:
        return f"on_live_process = stop_idle, and it was {one.doing} ({one.evidence})"
    return None


def still_postponed(session: Session, coming: NotDue, now: int) -> tuple[ResetPostponed, EventRef] | None:
    """Return what postpones a reset; None if none is due, because the rules have changed."""
    return session.postponed if coming.at is not None and coming.at <= now else None


def same_reason(one: ResetPostponed, other: ResetPostponed) -> bool:
    """Whether two lists of blockers differ in their figures at most."""

    def key(postponed: ResetPostponed) -> tuple[object, ...]:
        return (postponed.rule, postponed.until is None, sorted((b.by, b.task) for b in postponed.blockers))

    return key(one) == key(other)


def open_chapter(
    session: Session,
    reset: Reset,
    *,
    by: Actor,
    now: int,
    notify: bool = True,
    hand_over: tuple[str, NoteFrom] = ("", ""),
) -> ChapterOpened:
    """Return the event of a reset; refused while something is open that no reset interrupts."""
    check_at_rest(session, now)
    return ChapterOpened(
        chapter=session.chapter.number + 1,
        rule=reset.rule,
        reason=reset.reason,
        by=by,
        due_at=reset.due_at,
        kept=reset.kept,
        stopped=reset.stopped,
        hand_over=hand_over[0],
        hand_over_from=hand_over[1],
        notify=notify,
    )
