"""From what an external agent says and does to events of its turn, the same for every protocol. Pure.

Text is collected until something else happens, and a call until it has arguments, begins or asks; then all that was
collected becomes events of one append, after which the next step begins.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from holdfast.domain.events import AnyEvent
from holdfast.domain.events.parts import Call, Usage
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import (
    FinishReason,
    ModelFailed,
    ModelInterrupted,
    ModelRequested,
    ModelResponded,
    ToolCallFinished,
    ToolCallStarted,
)
from holdfast.domain.history import ToolResult
from holdfast.domain.session import Session, Turn
from holdfast.runtime.external.configuration import ExternalCommand

ARGUMENTS_KEPT = 100_000
ARGUMENT_KEPT = 2_000
"""Of longer arguments only those are kept that are no longer than this, such as a path."""


@dataclass(slots=True)
class LineResult:
    """What a line of an agent came to."""

    events: list[AnyEvent] = field(default_factory=list)
    """To be stored in one append, with the offset; empty if there is nothing to store yet."""
    text: str = ""
    thinking: str = ""
    """A piece of the answer, to be shown."""


@dataclass(slots=True)
class AnnouncedCall:
    """A call that the agent spoke of and that is not in the log yet."""

    id: str
    tool: str = "other"
    """The name of the tool, in our words."""
    title: str = ""
    raw_input: Any = None
    begun: bool = False

    @property
    def is_ready(self) -> bool:
        """Whether there is something to show."""
        return self.begun or bool(self.raw_input)

    @property
    def arguments(self) -> dict[str, object]:
        """What it is called with: the title in words, then the arguments themselves."""
        given = self.raw_input if isinstance(self.raw_input, dict) else {"input": self.raw_input}
        known = {name: value for name, value in given.items() if value is not None}
        return {"title": self.title, **known} if self.title and self.title not in known.values() else known


class StepCollector:
    """Collects what an agent says and the calls that it makes. What it has collected is not in the log yet."""

    def __init__(self, agent: ExternalCommand, mask: Callable[[str], str]) -> None:
        self.agent = agent
        self.mask = mask
        self.text = self.thinking = ""
        self.announced: dict[str, AnnouncedCall] = {}
        """By our id of the call."""
        self.context_tokens = 0
        self._since = 0

    def begin_step(self, *, now: int) -> None:
        """Note when the step began that is collected next."""
        self._since = now

    def step(self, turn: Turn, now: int, *, held: str = "", usage: Usage | None = None) -> list[AnyEvent]:
        """Return the events of what was collected, after which the next step begins; `held` is a call that has not
        begun, since the agent asks for a permission first.
        """
        calls, self.announced = [*self.announced.values()], {}
        if not (self.text or self.thinking or calls):
            return []
        made = [logged_call(call, self.mask) for call in calls]
        events: list[AnyEvent] = [self.response(turn, made, "tool_calls", now, usage)]
        for call in calls:
            if call.id != held:
                events.append(ToolCallStarted(turn=turn.number, call=call.id, tool=call.tool, effect="unsafe"))
        events.append(request_event(turn, turn.step + 1, self.agent))
        return events

    def response(
        self, turn: Turn, calls: list[Call], reason: FinishReason, now: int, usage: Usage | None = None
    ) -> ModelResponded:
        """Return the event of the text that was collected."""
        text, thinking, self.text, self.thinking = self.text, self.thinking, "", ""
        used = usage or Usage()
        return ModelResponded(
            turn=turn.number,
            step=turn.step,
            text=text,
            thinking=thinking,
            calls=calls,
            finish_reason=reason,
            usage=msgspec.structs.replace(used, context_tokens=self.context_tokens),
            duration_ms=max(0, now - (self._since or now)),
        )

    def interrupted(self, turn: Turn, reason: str) -> ModelInterrupted:
        """Return the event of the text that had arrived when the agent was cut."""
        text, thinking, self.text, self.thinking = self.text, self.thinking, "", ""
        return ModelInterrupted(turn=turn.number, step=turn.step, text=text, thinking=thinking, reason=reason)

    def failed(self, turn: Turn, problem: Problem) -> ModelFailed:
        """Return the event of a turn that failed, with the text that had arrived."""
        text, self.text, self.thinking = self.text, "", ""
        return ModelFailed(turn=turn.number, step=turn.step, problem=problem, text=text)


def logged_call(call: AnnouncedCall, mask: Callable[[str], str]) -> Call:
    """Return a call as the log has it."""
    arguments = mask(json.dumps(call.arguments, ensure_ascii=False, default=str))
    if len(arguments) > ARGUMENTS_KEPT:
        short = {name: value for name, value in call.arguments.items() if len(str(value)) <= ARGUMENT_KEPT}
        arguments = mask(json.dumps({**short, "left_out": len(arguments)}, ensure_ascii=False, default=str))
    return Call(call=call.id, tool=call.tool, arguments=arguments)


def call_id(turn: Turn, id: str) -> str:
    """Return our id of a call: agents may count theirs from 1 in every session."""
    return f"{turn.number}-{id}"


def is_over(session: Session, turn: Turn, id: str) -> bool:
    """Whether the log has the result of the agent's call with this id: some agents repeat it."""
    call = call_id(turn, id)
    for message in reversed(session.messages):
        if message.turn != turn.number:
            return False
        if isinstance(message, ToolResult) and message.call == call:
            return True
    return False


def request_event(turn: Turn, step: int, agent: ExternalCommand) -> ModelRequested:
    """Return the event that a step of the agent began."""
    return ModelRequested(turn=turn.number, step=step, attempt=1, model=agent.name, context_version=0)


def unknown_end(turn: Turn, call: str, reason: str) -> ToolCallFinished:
    """Return the end of a call of which nobody knows how it ended."""
    return ToolCallFinished(
        turn=turn.number,
        call=call,
        tool=turn.open_calls[call].call.tool,
        outcome="unknown",
        output=f"Its outcome is not known: {reason}. It may or may not have taken effect.",
        duration_ms=0,
    )
