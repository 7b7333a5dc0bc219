"""What the model sees of a conversation, message by message."""

from __future__ import annotations

import msgspec

from holdfast.domain.events import Call, CallOutcome


class Part(msgspec.Struct, frozen=True, gc=False):
    """A value inside a session. A Struct and no dataclass: a fold makes one or two for each event."""


class UserMessage(Part, frozen=True):
    """What a person said."""

    turn: int
    text: str


class AgentMessage(Part, frozen=True):
    """A whole answer of the model."""

    turn: int
    text: str
    thinking: str
    calls: list[Call]
    signature: str = ""


class ToolResult(Part, frozen=True):
    """What a tool call came to."""

    turn: int
    call: str
    tool: str
    outcome: CallOutcome
    output: str


class Note(Part, frozen=True):
    """What the runtime tells the model in plain words: an interruption, an unknown outcome."""

    turn: int
    text: str


Message = UserMessage | AgentMessage | ToolResult | Note
