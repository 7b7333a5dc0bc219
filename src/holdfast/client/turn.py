"""The turn that takes a message: who answered, what was said, how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.client.events import EventReceived, StreamItem
from holdfast.domain.events.session import (
    InputsJoined,
    InputWithdrawn,
    ModelRequested,
    ModelResponded,
    Outcome,
    TurnFinished,
    TurnStarted,
)


@dataclass(slots=True)
class TurnResult:
    """What became of a message. `turn` is 0 when it was withdrawn before a turn took it."""

    session: str
    turn: int = 0
    outcome: Outcome = "stopped"
    reason: str = ""
    model: str = ""
    texts: list[str] = field(default_factory=list)
    version: int = 0
    """The version of the last event of the turn."""

    @property
    def text(self) -> str:
        """All that the agent said in the turn."""
        return "\n\n".join(self.texts)


def turn_of(session: str, input: str, items: Iterable[StreamItem]) -> TurnResult:
    """The turn that takes an input, as soon as it is over."""
    result = TurnResult(session)
    for item in items:
        if not isinstance(item, EventReceived):
            continue
        match item.event:
            case TurnStarted(inputs=inputs, turn=turn) | InputsJoined(inputs=inputs, turn=turn) if input in inputs:
                result.turn = turn
            case InputWithdrawn(input=withdrawn) if withdrawn == input:
                result.reason = "the message was withdrawn before a turn took it"
                result.version = item.version
                return result
            case ModelRequested(turn=turn, model=model) if turn == result.turn:
                result.model = model
            case ModelResponded(turn=turn, text=text) if turn == result.turn and text.strip():
                result.texts.append(text)
            case TurnFinished(turn=turn, outcome=outcome, reason=reason) if turn == result.turn:
                result.outcome, result.reason, result.version = outcome, reason, item.version
                return result
            case _:
                pass
    return result
