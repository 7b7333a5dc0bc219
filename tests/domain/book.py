"""A session in memory, with verbs for all that can happen to it: the domain's own test bench."""

from __future__ import annotations

from holdfast.domain.command import InputMode
from holdfast.domain.commands import CreateSession, SendMessage, SessionCommand
from holdfast.domain.events import AnyEvent, Record, session_stream
from holdfast.domain.events.parts import Call, Usage
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import (
    CallOutcome,
    Effect,
    InputsJoined,
    ModelFailed,
    ModelInterrupted,
    ModelRequested,
    ModelResponded,
    ToolCallFinished,
    ToolCallStarted,
    TurnStarted,
    TurnSuspended,
)
from holdfast.domain.next_step import Begin, CallModel, Finish, Join, Partial, Step, TurnLimits, closing_events
from holdfast.domain.resume import pick_up
from holdfast.domain.session import Session, SessionActivity
from holdfast.domain.session_fold import evolve
from holdfast.domain.session_rules import create, decide
from tests.actors import person
from tests.domain.steps import next_step

ID = "0123456789abcdef"
LIMITS = TurnLimits(steps=4, resume_attempts=2, resume_age_ms=3_600_000)
PROBLEM = Problem(code="internal", message="The model is out of order.")


def answer(step: CallModel, text: str, *tools: str) -> ModelResponded:
    """What a model says to a request: a text, and calls of these tools."""
    calls = [Call(call=f"{step.turn}.{step.step}.{n}", tool=tool, arguments="{}") for n, tool in enumerate(tools)]
    return ModelResponded(
        turn=step.turn,
        step=step.step,
        text=text,
        thinking="",
        calls=calls,
        finish_reason="tool_calls" if calls else "stop",
        usage=Usage(),
        duration_ms=1,
    )


class Book:
    """The log of one session and its fold, which a person and a worker write to in turns."""

    def __init__(self, text: str | None = None) -> None:
        self.session = Session(ID)
        self.records: list[Record] = []
        self.now = 1_000
        self._ids = 0
        id = self._id()
        self.write(*create(CreateSession(text=text), session=ID, profile="demo", cwd="/", id=id, by=person("ann")))

    def write(self, *events: AnyEvent) -> tuple[AnyEvent, ...]:
        for event in events:
            version = self.session.version + 1
            record = Record(seq=version, stream=session_stream(ID), version=version, at=self.now, event=event)
            self.records.append(record)
            self.session = evolve(self.session, record)
        return events

    def _id(self) -> str:
        self._ids += 1
        return f"i{self._ids}"

    def next(self) -> Step:
        return next_step(self.session, LIMITS, now=self.now)

    def activity(self) -> SessionActivity:
        return self.session.activity

    # --- said -----------------------------------------------------------------------------------

    def tell(self, command: SessionCommand) -> tuple[AnyEvent, ...]:
        return self.write(*decide(self.session, command, id=self._id(), by=person("ann")))

    def say(self, text: str, mode: InputMode = "queue") -> str:
        self.tell(SendMessage(text=text, mode=mode))
        return f"i{self._ids}"

    # --- done -----------------------------------------------------------------------------------

    def begin(self) -> Book:
        step = self.next()
        assert isinstance(step, Begin), step
        self.write(TurnStarted(turn=step.turn, inputs=step.inputs, profile="demo"))
        return self

    def join(self) -> list[str]:
        step = self.next()
        assert isinstance(step, Join), step
        self.write(InputsJoined(turn=step.turn, inputs=step.inputs))
        return step.inputs

    def ask(self) -> CallModel:
        step = self.next()
        assert isinstance(step, CallModel), step
        asked = ModelRequested(
            turn=step.turn, step=step.step, attempt=step.attempt, model="m", context_version=self.session.version
        )
        self.write(asked)
        return step

    def answer(self, text: str, *tools: str) -> Book:
        self.write(answer(self.ask(), text, *tools))
        return self

    def fail(self) -> Book:
        step = self.ask()
        self.write(ModelFailed(turn=step.turn, step=step.step, problem=PROBLEM))
        return self

    def start_call(self, call: str, effect: Effect = "unsafe") -> Book:
        self.write(ToolCallStarted(turn=self.session.turns, call=call, tool="t", effect=effect))
        return self

    def finish_call(self, call: str, outcome: CallOutcome = "done") -> Book:
        turn = self.session.turns
        self.write(ToolCallFinished(turn=turn, call=call, tool="t", outcome=outcome, output="", duration_ms=1))
        return self

    def suspend(self) -> Book:
        self.write(TurnSuspended(turn=self.session.turns, interruption="shutdown", reason="the gateway was shut down"))
        return self

    def finish(self, partial: Partial | None = None) -> tuple[AnyEvent, ...]:
        step = self.next()
        assert isinstance(step, Finish), step
        return self.write(*closing_events(self.session, step, partial or Partial(), now=self.now))

    def resume(self, *, after_ms: int = 5_000, partial: Partial | None = None) -> tuple[AnyEvent, ...]:
        """A new worker takes over after a crash."""
        self.now += after_ms
        return self.write(*pick_up(self.session, partial or Partial(), now=self.now, limits=LIMITS))


def kinds(events: tuple[AnyEvent, ...] | list[AnyEvent]) -> list[str]:
    return [type(event).__name__ for event in events]


def cut_text(events: tuple[AnyEvent, ...]) -> str:
    """The text of the one answer that was cut."""
    [cut] = [event for event in events if isinstance(event, ModelInterrupted)]
    return cut.text
