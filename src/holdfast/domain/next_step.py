"""What a session's worker does next (`session_step`, `builtin_step`), and the events that end a turn.

`session_step` holds for every agent: when a turn begins, waits and ends. What an agent does in between is its driver's:
`builtin_step` for our own. The order of the questions is the rule: a stop comes before work, an open call before the
next model request, a message that steers before the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2s

from msgspec.structs import replace

from holdfast.domain.compaction import OFF, Compact, Pause, TooLong, Trim, at_rest, needed_before_call
from holdfast.domain.context_limits import CompactionRules
from holdfast.domain.events import AnyEvent
from holdfast.domain.events.actor import is_person
from holdfast.domain.events.parts import Call
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import (
    CallOutcome,
    ModelFailed,
    ModelInterrupted,
    Outcome,
    ToolCallFinished,
    TurnFinished,
    WaitOpened,
)
from holdfast.domain.queue import interrupting, urgent
from holdfast.domain.session import OpenCall, Session, Turn
from holdfast.domain.task import task_of_call
from holdfast.domain.turn_fold import DIGEST, TRY_AGAIN

COMMAND_TOOL = "terminal"
"""The tool whose call waits for a command, which ends when its turn is stopped."""
MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """The limits of a turn: how far it may go without a person."""

    steps: int = 100
    tokens: int = 0
    """0 is no limit."""
    minutes: int = 0
    """0 is no limit; the time that it waits for a person, or is not running at all, does not count."""
    minute_ms: int = MINUTE_MS
    model_attempts: int = 8
    resume_attempts: int = 3
    resume_age_ms: int = 6 * 3_600_000
    compaction: CompactionRules = field(default_factory=CompactionRules)


@dataclass(frozen=True, slots=True)
class Partial:
    """What had arrived of an answer when its step was cut."""

    text: str = ""
    thinking: str = ""
    at: int = 0
    """When it was last saved, which is the last sign of life of the worker."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Start a turn with these inputs."""

    turn: int
    inputs: list[str]
    by_person: bool = True


@dataclass(frozen=True, slots=True)
class Join:
    """Let inputs join the turn."""

    turn: int
    inputs: list[str]
    by_person: bool = True


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask the model."""

    turn: int
    step: int
    attempt: int


@dataclass(frozen=True, slots=True)
class RunTool:
    """Carry out the first open call, unless a person must be asked first."""

    turn: int
    call: Call


@dataclass(frozen=True, slots=True)
class RunAgent:
    """Let an agent that is a process of its own work, and write down what it does."""

    turn: int


@dataclass(frozen=True, slots=True)
class Finish:
    """End the turn."""

    turn: int
    outcome: Outcome
    reason: str
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait for an answer until this time; then continue with the default."""

    turn: int
    wait: str
    until: int
    default: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Wait until a person has chosen."""

    wait: WaitOpened


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do until there is a new input."""


@dataclass(frozen=True, slots=True)
class Advance:
    """The driver decides the next move of its agent."""


SessionStep = Begin | Join | Finish | Sleep | Rest
BuiltinStep = CallModel | RunTool | Compact | Trim | Ask | Finish | Rest
DriverStep = BuiltinStep | RunAgent
Step = SessionStep | DriverStep


def session_step(
    session: Session, limits: TurnLimits, *, now: int, worked_ms: int | None = None, joins: bool = True
) -> SessionStep | Advance:
    """Return what comes next, whatever the agent is. `worked_ms` is how long the open turn was worked on, if known;
    `joins` is whether messages can join it.
    """
    turn = session.turn
    if turn is None:
        return _begin(session) if session.queue else Advance()
    if (stopped := stop_reason(session)) is not None:
        return Finish(turn.number, "stopped", stopped)
    if turn.wait is not None:
        wait = turn.wait
        if wait.until is None:
            return Rest()
        return Sleep(turn.number, wait.wait, wait.until, wait.default or "the time has come")
    if turn.failed is not None:
        too_long = turn.failed.code == "context_too_long"
        return Advance() if too_long else Finish(turn.number, "failed", turn.failed.message, turn.failed)
    steering = [queued for queued in urgent(session.queue) if queued.event.mode == "steer" and joins]
    if turn.open_calls and 0 < turn.released < turn.step and not steering:
        return Finish(turn.number, "done", "its run of the card is over")
    if turn.open_calls:
        return Advance()
    if steering:
        by_person = any(is_person(queued.event.by) for queued in steering)
        return Join(turn.number, [queued.event.input for queued in steering], by_person)
    if turn.yielded:
        return Finish(turn.number, "done", "the agent had nothing more to do")
    worked = worked_by_log(turn, now=now) if worked_ms is None else worked_ms
    if (problem := _over_limit(turn, limits, worked)) is not None:
        return Finish(turn.number, "failed", problem.message, problem)
    return Advance()


def builtin_step(session: Session, limits: TurnLimits, *, now: int, unmeasured: int = 0) -> BuiltinStep:
    """Return the next move of the built-in agent: carry out a call, make the context shorter, or ask the model.

    `unmeasured` are tokens of the next request that are not in the session.
    """
    turn = session.turn
    if turn is None:
        return at_rest(session, limits.compaction, now=now) or Rest()
    if turn.open_calls and turn.failed is None:
        return RunTool(turn.number, next(iter(turn.open_calls.values())).call)
    if (shorter := _before_call(session, turn, limits, now=now, unmeasured=unmeasured)) is not None:
        return shorter
    if turn.failed is not None:
        problem = replace(turn.failed, hint=OFF) if limits.compaction.off else turn.failed
        return Finish(turn.number, "failed", problem.message, problem)
    if turn.answered or turn.step == 0:
        return CallModel(turn.number, turn.step + 1, 1)
    return CallModel(turn.number, turn.step, turn.attempts + 1)


def _before_call(
    session: Session, turn: Turn, limits: TurnLimits, *, now: int, unmeasured: int
) -> Compact | Trim | Ask | Finish | None:
    """Return what must be done before the model can be asked; None if nothing."""
    match needed_before_call(session, limits.compaction, now=now, unmeasured=unmeasured):
        case TooLong(problem=problem):
            return Finish(turn.number, "failed", problem.message, problem)
        case Pause(reason=reason):
            wait = wait_id(session, turn)
            choices = [TRY_AGAIN, DIGEST]
            return Ask(WaitOpened(turn=turn.number, wait=wait, purpose="compaction", reason=reason, choices=choices))
        case found:
            return found


def worked_by_log(turn: Turn, *, now: int) -> int:
    """Return for how many milliseconds a turn was worked on, by the times of its events."""
    return max(0, now - turn.started.at - turn.stood_still_ms)


def _over_limit(turn: Turn, limits: TurnLimits, worked_ms: int) -> Problem | None:
    """Return which limit the turn has passed. Checked between steps only: no limit interrupts a call."""
    hint = "Send a message to continue, or raise the limit in its profile."
    if turn.answered and turn.step >= limits.steps:
        message = f"The turn took {turn.step} steps, the maximum of its profile."
        return Problem(code="step_limit", message=message, hint=hint)
    if limits.tokens and turn.tokens >= limits.tokens:
        message = f"The turn used {turn.tokens} tokens; its profile allows {limits.tokens}."
        return Problem(code="token_limit", message=message, hint=hint)
    worked = worked_ms // limits.minute_ms
    if limits.minutes and worked >= limits.minutes:
        message = f"The turn worked for {worked} minutes; its profile allows {limits.minutes}."
        return Problem(code="time_limit", message=message, hint=hint)
    return None


RETRY_FIRST_MS = 1_000
RETRY_MOST_MS = 120_000


def retry_wait(
    session: Session, problem: Problem, *, after_ms: int | None, now: int, limits: TurnLimits
) -> WaitOpened | None:
    """Return the wait before the same step is tried again: as long as the provider says, else doubling.

    None when it was tried often enough.
    """
    turn = session.turn
    if turn is None or turn.attempts >= limits.model_attempts:
        return None
    doubling = min(RETRY_MOST_MS, RETRY_FIRST_MS * 2 ** (turn.attempts - 1))
    pause = doubling if after_ms is None else after_ms
    return WaitOpened(
        turn=turn.number,
        wait=wait_id(session, turn),
        purpose="retry",
        reason=f"{problem.message.rstrip('.')}. Attempt {turn.attempts} of {limits.model_attempts}.",
        until=now + pause,
        default="try again",
    )


def failure_events(
    session: Session,
    problem: Problem,
    partial: Partial,
    again: tuple[int | None] | None,
    *,
    now: int,
    limits: TurnLimits,
) -> list[AnyEvent]:
    """Return the events of a model call that failed: what was shown of the answer is kept; then the turn waits and
    tries again, or it fails. `again` is None when a retry is useless, else the wait that the provider asked for.
    """
    turn = session.turn
    assert turn is not None
    wait = None if again is None else retry_wait(session, problem, after_ms=again[0], now=now, limits=limits)
    fact = ModelFailed(turn=turn.number, step=turn.step, problem=problem, text=partial.text)
    if wait is None:
        return [fact]
    return [interrupted_answer(turn, partial, problem.message) if partial.text else fact, wait]


def wait_id(session: Session, turn: Turn) -> str:
    """Return the id of a turn's next wait: unique in the home, and the same whenever it is computed."""
    name = f"{session.id}/{turn.number}/{turn.waits + 1}"
    return blake2s(name.encode(), digest_size=6).hexdigest()


def stop_reason(session: Session) -> str | None:
    """Return why the running turn must end now; None if it may continue."""
    turn = session.turn
    if turn is None:
        return None
    if turn.stop is not None:
        return f"stopped by {turn.stop.by}"
    for queued in urgent(session.queue):
        if queued.event.mode == "interrupt":
            return f"interrupted by a message from {queued.event.by}"
    return None


def _begin(session: Session) -> Begin:
    """Begin with the first message; or with the first that interrupts and those that were to steer before it."""
    first = interrupting(session.queue) or session.queue[:1]
    by_person = any(is_person(queued.event.by) for queued in first)
    return Begin(session.turns + 1, [queued.event.input for queued in first], by_person)


def closing_events(session: Session, finish: Finish, partial: Partial, *, now: int) -> list[AnyEvent]:
    """Return the events that end a turn: a partial answer, an outcome for every open call, the end."""
    turn = session.turn
    events: list[AnyEvent] = []
    if turn is not None:
        if turn.asked:
            events.append(interrupted_answer(turn, partial, finish.reason))
        stopped = finish.outcome == "stopped"
        for open_call in turn.open_calls.values():
            events.append(close_call(session, turn, open_call, finish.reason, now=now, stopped=stopped))
    events.append(TurnFinished(turn=finish.turn, outcome=finish.outcome, reason=finish.reason, problem=finish.problem))
    return events


def interrupted_answer(turn: Turn, partial: Partial, reason: str) -> ModelInterrupted:
    """Return the event of the open step's partial answer, if there is one."""
    return ModelInterrupted(
        turn=turn.number, step=turn.step, text=partial.text, thinking=partial.thinking, reason=reason
    )


def close_call(
    session: Session, turn: Turn, open_call: OpenCall, reason: str, *, now: int | None = None, stopped: bool = False
) -> ToolCallFinished:
    """Return the end of a call that was not carried out to its end. `now` is when it was cut; None if unknown."""
    call, task = open_call.call, ""
    outcome: CallOutcome = "failed"
    if open_call.effect is None:
        output = f"Not run: {reason}."
    elif open_call.effect == "pure":
        output = f"Interrupted while it ran: {reason}. The tool changes nothing, so nothing was changed."
    elif stopped and call.tool == COMMAND_TOOL:
        task = task_of_call(session.id, call.call)
        output = f"Stopped while it ran: {reason}. Its command is being ended; what it did before that stays done."
    else:
        outcome, output = "unknown", f"Interrupted while it ran: {reason}. It may or may not have taken effect."
    return ToolCallFinished(
        turn=turn.number,
        call=call.call,
        tool=call.tool,
        outcome=outcome,
        output=output,
        duration_ms=0 if now is None or open_call.started is None else max(0, now - open_call.started),
        task=task,
        stopped=stopped and open_call.effect is not None,
    )
