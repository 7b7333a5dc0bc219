"""The tool `recall`: reads this session's log, also what its model no longer sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from holdfast.domain.history import AgentMessage, Message, Note, ToolResult, UserMessage
from holdfast.runtime.tools.context import ToolContext, ToolFailed
from holdfast.runtime.tools.tool import Tool, ToolOutput, bounded
from holdfast.sessions import Sessions

NAME = "recall"
MOST = 20
AROUND = 240
PIECE = 24_000
"""How many characters of a tool result are read at once."""


class RecallArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for, or which turn or tool result to read again."""

    text: Annotated[str, msgspec.Meta(max_length=500, description="The text to search for.")] = ""
    turn: Annotated[int, msgspec.Meta(ge=1, description="Read this turn again as a whole.")] | None = None
    call: Annotated[str, msgspec.Meta(max_length=200, description="Read the result of this tool call again.")] = ""
    offset: Annotated[int, msgspec.Meta(ge=0, description="With `call`: from this character on.")] = 0


class Recall:
    """Reads the log of the calling session only."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @property
    def tool(self) -> Tool[RecallArguments]:
        """The tool."""
        return Tool(
            NAME,
            "Search the messages and tool results of this session, also from before a reset or a summary. "
            "Give `text` to find places, then `turn` to read one of them; `call` reads one tool result again.",
            "pure",
            RecallArguments,
            self._call,
            subject_field="text",
            default_policy="allow",
            file_changes="none",
        )

    async def _call(self, context: ToolContext, arguments: RecallArguments) -> ToolOutput:
        messages = (await self._sessions.get(context.session)).messages
        if arguments.call:
            return ToolOutput(_result(messages, arguments.call, arguments.offset))
        if arguments.turn is not None:
            lines = [_line(one) for one in messages if one.turn == arguments.turn]
            if not lines:
                raise ToolFailed(f"There is no turn {arguments.turn} in this session.")
            return ToolOutput(bounded("\n".join(lines)))
        wanted = arguments.text.casefold().strip()
        if not wanted:
            raise ToolFailed("Give a text to look for, or a turn to read.")
        said = [one for one in messages if not (isinstance(one, ToolResult) and one.tool == NAME)]
        found = [(one, at) for one in said if (at := _line(one).casefold().find(wanted)) >= 0]
        if not found:
            return ToolOutput(f"Nothing in this session contains {arguments.text!r}.")
        lines = [_around(one, at) for one, at in found[-MOST:]]
        more = f"\n[{len(found) - MOST} earlier places left out]" if len(found) > MOST else ""
        return ToolOutput("\n".join(lines) + more)


def _result(messages: Sequence[Message], call: str, offset: int) -> str:
    """Return a tool result from an offset on, and the offset of the rest."""
    found = next((one for one in reversed(messages) if isinstance(one, ToolResult) and one.call == call), None)
    if found is None:
        raise ToolFailed(f"There is no result of a call {call!r} in this session.")
    size, end = len(found.output), offset + PIECE
    if end >= size:
        return found.output[offset:] or f"The result has only {size} characters."
    more = f'[characters {offset} to {end} of {size}; {{"call": "{call}", "offset": {end}}} continues]'
    return f"{found.output[offset:end]}\n{more}"


def _line(message: Message) -> str:
    match message:
        case UserMessage(text=text):
            return f"user: {text}"
        case AgentMessage(text=text, calls=calls):
            asked = [f"{call.tool} {call.arguments}" for call in calls if call.tool != NAME]
            return "you: " + "\n".join(filter(None, (text, *asked)))
        case ToolResult(tool=tool, outcome=outcome, output=output):
            return f"{tool} {outcome}: {output}"
        case Note(text=text):
            return f"note: {text}"


def _around(message: Message, at: int) -> str:
    text = _line(message)
    start = max(0, at - AROUND // 2)
    piece = " ".join(text[start : start + AROUND].split())
    return f"turn {message.turn}: {'…' if start else ''}{piece}{'…' if start + AROUND < len(text) else ''}"
