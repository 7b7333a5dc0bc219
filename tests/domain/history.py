"""The checker: is this log of one session a history that may have happened?

It reads nothing but the events and shares no code with the rules that it judges (Jepsen's way), so
the unit tests, the Hypothesis machines, the crash points and the kill loops can all be held against it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from holdfast.domain.command import InputMode
from holdfast.domain.events import Record
from holdfast.domain.events.session import (
    InputReceived,
    InputsJoined,
    ModelFailed,
    ModelInterrupted,
    ModelRequested,
    ModelResponded,
    StopRequested,
    ToolCallFinished,
    ToolCallStarted,
    TurnFinished,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    WaitAnswered,
    WaitOpened,
)


@dataclass(slots=True)
class TurnHistory:
    """One turn, as far as it went."""

    number: int
    inputs: list[str]
    step: int = 0
    asking: bool = False
    owes: bool = True
    """Somebody said something that no answer has followed yet."""
    waiting: str = ""
    calls: set[str] = field(default_factory=set)
    open_calls: dict[str, bool] = field(default_factory=dict)
    """Calls without an outcome, and whether their intent was written."""
    answers: dict[int, ModelResponded] = field(default_factory=dict)
    outcome: str = ""

    @property
    def text(self) -> str:
        """All that it said, one answer a line."""
        return "\n".join(answer.text for answer in self.answers.values() if answer.text)


@dataclass(slots=True)
class History:
    """What a log says."""

    accepted: dict[str, InputMode] = field(default_factory=dict)
    consumed: list[str] = field(default_factory=list)
    turns: list[TurnHistory] = field(default_factory=list)
    interruptions: int = 0
    resumes: int = 0

    @property
    def open_turn(self) -> TurnHistory | None:
        return self.turns[-1] if self.turns and not self.turns[-1].outcome else None

    @property
    def unconsumed(self) -> list[str]:
        return [input for input in self.accepted if input not in self.consumed]


def check(records: Sequence[Record]) -> History:
    """Walk through the log; an AssertionError names the first record that cannot be true."""
    history = History()
    for expected, record in enumerate(records, 1):
        assert record.version == expected, f"a gap or a double: {record} is number {expected}"
        try:
            _apply(history, record)
        except AssertionError as error:
            raise AssertionError(f"{error}\nat {record}\nin {[type(r.event).__name__ for r in records]}") from error
    _check_order(history)
    return history


def check_ended(records: Sequence[Record]) -> History:
    """As `check`, and nothing is left to do: each input was taken, each turn ended."""
    history = check(records)
    assert history.open_turn is None, f"turn {history.turns[-1].number} never ended"
    assert history.unconsumed == [], "accepted, but no turn took it"
    return history


def _apply(history: History, record: Record) -> None:
    turn = history.open_turn
    match record.event:
        case InputReceived() as e:
            assert e.input not in history.accepted, f"input {e.input} is there twice"
            history.accepted[e.input] = e.mode
        case TurnStarted() as e:
            assert turn is None, "two turns are open"
            assert e.turn == len(history.turns) + 1
            assert e.inputs, "a turn without a reason"
            waiting = {history.accepted[input] for input in history.unconsumed}
            _consume(history, e.inputs)
            taken = {history.accepted[input] for input in e.inputs}
            assert "interrupt" not in waiting or history.accepted[e.inputs[-1]] == "interrupt", (
                "an interrupt had to wait"
            )
            assert taken == {"interrupt", "steer"} or len(taken) == 1, "only what steered before goes along"
            history.turns.append(TurnHistory(e.turn, e.inputs))
        case StopRequested() as e:
            assert turn is not None and turn.number == e.turn, "a stop of nothing"
        case (
            InputsJoined()
            | ModelRequested()
            | ModelResponded()
            | ModelInterrupted()
            | ModelFailed()
            | ToolCallStarted()
            | ToolCallFinished()
            | TurnSuspended()
            | TurnResumed()
            | WaitOpened()
            | WaitAnswered()
            | TurnFinished() as e
        ):
            assert turn is not None and turn.number == e.turn, "work without a turn"
            ending = WaitAnswered | ToolCallFinished | TurnFinished  # a stop closes the calls that were open
            assert not turn.waiting or isinstance(e, ending), "work while it waits for a person"
            _work(history, turn, record)
        case _:
            pass


def _work(history: History, turn: TurnHistory, record: Record) -> None:
    match record.event:
        case InputsJoined() as e:
            assert not turn.open_calls, "a message joined before the calls in flight were done"
            assert {history.accepted[input] for input in e.inputs} == {"steer"}, "only what steers may join"
            _consume(history, e.inputs)
            turn.inputs = turn.inputs + e.inputs
            turn.owes = True
        case ModelRequested() as e:
            assert not turn.asking, "asked while an answer is still open"
            assert not turn.open_calls, "asked before every tool call had its outcome"
            assert e.step in (turn.step, turn.step + 1) and e.step not in turn.answers
            assert e.context_version < record.version
            turn.step, turn.asking = e.step, True
        case ModelResponded() as e:
            _close_request(turn, e.step)
            turn.answers[e.step] = e
            turn.owes = False
            assert not turn.calls & {call.call for call in e.calls}, "a call id was used twice"
            turn.calls |= {call.call for call in e.calls}
            turn.open_calls = {call.call: False for call in e.calls}
        case ModelInterrupted() as e:
            _close_request(turn, e.step)
            history.interruptions += 1
        case ModelFailed() as e:
            _close_request(turn, e.step)
        case ToolCallStarted() as e:
            assert turn.open_calls.get(e.call) is False, "an intent without a call, or for the second time"
            turn.open_calls[e.call] = True
        case ToolCallFinished() as e:
            assert e.call in turn.open_calls, "an outcome without a call, or for the second time"
            started = turn.open_calls.pop(e.call)
            assert started or e.outcome == "failed", "an effect without a written intent"
        case TurnResumed():
            history.resumes += 1
        case WaitOpened() as e:
            turn.waiting = e.wait
        case WaitAnswered() as e:
            assert turn.waiting == e.wait, "an answer to nothing"
            turn.waiting = ""
        case TurnFinished() as e:
            assert not turn.asking, "ended with an open request"
            assert not turn.open_calls, "ended with a dangling tool call"
            if e.outcome == "done":
                assert not turn.owes and not turn.answers[turn.step].calls, "done without a last word"
            turn.outcome = e.outcome
        case _:
            pass


def _close_request(turn: TurnHistory, step: int) -> None:
    assert turn.asking and turn.step == step, "an answer to nothing"
    turn.asking = False


def _consume(history: History, inputs: Iterable[str]) -> None:
    for input in inputs:
        assert input in history.accepted, f"{input} was never said"
        assert input not in history.consumed, f"{input} was taken twice"
        history.consumed.append(input)


def _check_order(history: History) -> None:
    """In each mode, first come, first served."""
    said, taken = defaultdict[InputMode, list[str]](list), defaultdict[InputMode, list[str]](list)
    for input, mode in history.accepted.items():
        said[mode].append(input)
    for input in history.consumed:
        taken[history.accepted[input]].append(input)
    for mode, inputs in taken.items():
        assert inputs == said[mode][: len(inputs)], f"{mode}: said as {said[mode]}, taken as {inputs}"
