"""What the model sees of a conversation, message by message."""

from __future__ import annotations

from typing import assert_never

import msgspec

from holdfast.domain.events.parts import Call
from holdfast.domain.events.session import CallOutcome

TOKEN_SHIFT = 2
"""About four characters are a token."""


class StatePart(msgspec.Struct, frozen=True, gc=False):
    """A value inside a session. A Struct and no dataclass: a fold makes one or two for each event."""


class UserMessage(StatePart, frozen=True):
    """What a person said."""

    turn: int
    text: str


class AgentMessage(StatePart, frozen=True):
    """A whole answer of the model."""

    turn: int
    text: str
    thinking: str
    calls: list[Call]
    signature: str = ""


class ToolResult(StatePart, frozen=True):
    """What a tool call came to."""

    turn: int
    call: str
    tool: str
    outcome: CallOutcome
    output: str


class Note(StatePart, frozen=True):
    """What the runtime tells the model in plain words: an interruption, an unknown outcome."""

    turn: int
    text: str


Message = UserMessage | AgentMessage | ToolResult | Note


def message_size(message: Message) -> int:
    """About how many tokens it is."""
    match message:
        case ToolResult(output=output):
            return len(output) >> TOKEN_SHIFT
        case AgentMessage(text=text, thinking=thinking, calls=calls):
            return (len(text) + len(thinking) + sum(len(call.arguments) for call in calls)) >> TOKEN_SHIFT
        case UserMessage(text=text) | Note(text=text):
            return len(text) >> TOKEN_SHIFT
        case _ as never:
            assert_never(never)
