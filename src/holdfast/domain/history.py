"""The messages of a conversation as the model sees them, and the list that all snapshots of a session share."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never, overload

import msgspec

from holdfast.domain.events.parts import Call
from holdfast.domain.events.session import CallOutcome

TOKEN_SHIFT = 2
"""About four characters are a token."""


class StatePart(msgspec.Struct, frozen=True, gc=False):
    """Base of a session's immutable state. A Struct and no dataclass: a fold replaces one or two for each event."""


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


class History(Sequence[Message]):
    """An immutable sequence of messages.

    A longer history made from this one shares its list, so that adding a message does not copy the conversation.
    Each history sees its own length of it. Only when two histories continue the same one, the second copies.
    """

    __slots__ = ("_length", "_messages")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages = list(messages)
        self._length = len(self._messages)

    def extended(self, *messages: Message) -> History:
        """Return this history with more messages at its end."""
        shared = self._messages if len(self._messages) == self._length else self._messages[: self._length]
        shared.extend(messages)
        longer = History.__new__(History)
        longer._messages, longer._length = shared, self._length + len(messages)
        return longer

    def after_turn(self, turn: int) -> list[Message]:
        """Return the messages of later turns."""
        start = bisect_right(self._messages, turn, 0, self._length, key=lambda message: message.turn)
        return self._messages[start : self._length]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages[: self._length])

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return self._messages[slice(*index.indices(self._length))]
        return self._messages[range(self._length)[index]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self[:] == other[:]

    __hash__ = None  # type: ignore[assignment]  # it holds lists

    def __repr__(self) -> str:
        return f"History({self[:]!r})"
