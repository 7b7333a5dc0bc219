"""The messages of a conversation, how large they are, and the list that all snapshots of a session share."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never, overload

import msgspec

from holdfast.domain.events.parts import Call
from holdfast.domain.events.session import CallOutcome

TOKEN_SHIFT = 2
"""About four bytes of text are a token, in any script."""
WHOLE_TURN = 1 << 62
"""The step of a position behind all steps of its turn."""
Position = tuple[int, int]
"""A place in a conversation: the end of this step of this turn."""


class StatePart(msgspec.Struct, frozen=True, gc=False):
    """Base of a session's immutable state. A Struct and no dataclass: a fold replaces one or two for each event."""


class UserMessage(StatePart, frozen=True):
    """What a person said."""

    turn: int
    text: str
    step: int = 0
    """The step of the turn after which it came; 0 for what began the turn."""


class AgentMessage(StatePart, frozen=True):
    """A whole answer of the model."""

    turn: int
    text: str
    thinking: str
    calls: list[Call]
    signature: str = ""
    step: int = 0


class ToolResult(StatePart, frozen=True):
    """The result of a tool call."""

    turn: int
    call: str
    tool: str
    outcome: CallOutcome
    output: str
    step: int = 0
    characters: int = 0
    """Of the whole output, when `output` is only what the model sees of it; 0 when that is all."""


class Note(StatePart, frozen=True):
    """A message from the runtime to the model: an interruption, an unknown outcome."""

    turn: int
    text: str
    step: int = 0


Message = UserMessage | AgentMessage | ToolResult | Note


def text_size(text: str) -> int:
    """About how many tokens a text is."""
    return (len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))) >> TOKEN_SHIFT


def message_size(message: Message) -> int:
    """About how many tokens it is. Histories remember it (`History.tokens`)."""
    match message:
        case ToolResult(output=output):
            return text_size(output)
        case AgentMessage(text=text, thinking=thinking, calls=calls):
            return text_size(text) + text_size(thinking) + sum(text_size(call.arguments) for call in calls)
        case UserMessage(text=text) | Note(text=text):
            return text_size(text)
        case _ as never:
            assert_never(never)


def position(message: Message) -> Position:
    """Return the position of a message."""
    return (message.turn, message.step)


def trimmed(result: ToolResult, *, above: int, keep: int) -> ToolResult:
    """Return what the model sees of a result that is longer than `above` characters: a note in its place, between
    its first and its last `keep // 2` characters.
    """
    if len(result.output) <= above:
        return result
    whole, half = result.characters or len(result.output), keep // 2
    read_again = f'the tool `recall` with {{"call": "{result.call}"}} reads it again'
    if half:
        left = f"[… {whole - 2 * half:,} of {whole:,} characters left out; {read_again} …]"
        output = f"{result.output[:half]}\n{left}\n{result.output[-half:]}"
    else:
        output = f"[This result of {whole:,} characters is no longer in your context; {read_again}.]"
    return ToolResult(result.turn, result.call, result.tool, result.outcome, output, result.step, whole)


class History(Sequence[Message]):
    """An immutable sequence of messages.

    A longer history made from this one shares its list, so that adding a message does not copy the conversation.
    Each history sees its own length of it. Only when two histories continue the same one, the second copies.
    """

    __slots__ = ("_length", "_messages", "_totals")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages = list(messages)
        self._length = len(self._messages)
        self._totals = [0]
        """The tokens of the first n messages, computed as far as they were needed."""

    def extended(self, messages: Iterable[Message]) -> History:
        """Return this history with more messages at its end."""
        shared, totals = self._messages, self._totals
        if len(shared) != self._length:
            shared, totals = shared[: self._length], totals[: self._length + 1]
        shared.extend(messages)
        longer = History.__new__(History)
        longer._messages, longer._length, longer._totals = shared, len(shared), totals
        return longer

    def index_after(self, end: Position) -> int:
        """Return the index of the first message behind a position."""
        return bisect_right(self._messages, end, 0, self._length, key=position)

    def tokens(self, start: int = 0, end: int | None = None) -> int:
        """Return about how many tokens the messages from `start` to `end` are."""
        end = self._length if end is None else end
        totals, messages = self._totals, self._messages
        while len(totals) <= end:
            totals.append(totals[-1] + message_size(messages[len(totals) - 1]))
        return totals[end] - totals[min(start, end)]

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
