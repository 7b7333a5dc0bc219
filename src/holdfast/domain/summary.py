"""Summaries: what they are made from, digests made without a model, and the end of one that was not written. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.domain.chapter import INTERRUPTED
from holdfast.domain.events import AnyEvent
from holdfast.domain.events.chapter import SummaryFailed, SummaryStarted
from holdfast.domain.events.problem import Problem
from holdfast.domain.history import (
    WHOLE_TURN,
    AgentMessage,
    Message,
    Note,
    Position,
    ToolResult,
    UserMessage,
    message_size,
)
from holdfast.domain.session import Session
from holdfast.domain.text import shorten

RESULT_CHARACTERS = 4_000
"""How many characters of a tool result, and of the arguments of a call, are read for a summary."""
LINE = 240
FIRST, LAST = 20, 100
"""How many lines at the beginning and the end of a long digest are kept."""


def messages_covered(session: Session, end: Position) -> list[Message]:
    """Return the messages that a summary up to here covers: the originals, even where a digest replaces them."""
    chapter, messages = session.chapter, session.messages
    begin = (chapter.after_turn, WHOLE_TURN) if chapter.provisional else chapter.covered
    head = [] if chapter.provisional else [*session.preamble(), *session.assignment(begin)]
    return [*head, *messages[messages.index_after(begin) : messages.index_after(end)]]


def fit_to_budget(messages: list[Message], tokens: int) -> tuple[list[Message], int]:
    """Return the last messages that fit, with a digest of those before, and how many those are. Long ones are cut.

    The note of the chapter and the previous summary come first, and stay: they represent everything earlier.
    """
    messages = [_cut(message, max(LINE, tokens)) for message in messages]
    if sum(map(message_size, messages)) <= tokens:
        return messages, 0
    opening = [message for message in messages if message.turn == 0]
    rest = messages[len(opening) :]
    room = tokens * 3 // 4 - sum(map(message_size, opening))
    first = len(rest)
    while first and (room := room - message_size(rest[first - 1])) >= 0:
        first -= 1
    while first < len(rest) and isinstance(rest[first], ToolResult):
        first += 1  # a result without its call says nothing
    left_out = digest(rest[:first], characters=tokens)
    return [*opening, Note(0, f"A digest of the {first} messages before these:\n{left_out}"), *rest[first:]], first


def _cut(message: Message, characters: int) -> Message:
    """Cut a message that takes more than a quarter of the budget."""
    match message:
        case ToolResult(output=output):
            return replace(message, output=_short(output, min(RESULT_CHARACTERS, characters)))
        case AgentMessage(text=text, calls=calls):
            shorter = [replace(call, arguments=_short(call.arguments, characters // 4)) for call in calls]
            return AgentMessage(message.turn, _short(text, characters), "", shorter, "", message.step)
        case UserMessage(text=text) | Note(text=text):
            return replace(message, text=_short(text, characters))


def _short(text: str, characters: int) -> str:
    if len(text.encode("utf-8", "surrogatepass")) <= characters:
        return text
    half = characters // 2 if text.isascii() else characters // 6
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} of {len(text):,} characters left out …]\n{text[-half:]}"


def digest(messages: list[Message], *, characters: int = 0) -> str:
    """Return a summary made without a model: what people asked, the last answers, which tools ran."""
    lines: list[str] = []
    tools: dict[str, int] = {}
    answer = ""
    for message in messages:
        match message:
            case UserMessage(text=text):
                if answer:
                    lines.append(f"You answered: {shorten(answer, LINE)}")
                lines.append(f"The user said: {shorten(text, LINE)}")
                answer = ""
            case AgentMessage(text=text):
                answer = text or answer
            case ToolResult(tool=tool):
                tools[tool] = tools.get(tool, 0) + 1
            case Note(turn=turn, text=text):
                lines.append(shorten(text, LINE) if turn else text)  # what opens a chapter is a summary itself
    if answer:
        lines.append(f"You answered: {shorten(answer, LINE)}")
    if tools:
        lines.append("Tools used: " + ", ".join(f"{name} {count} times" for name, count in sorted(tools.items())))
    if len(lines) > FIRST + LAST:
        lines[FIRST:-LAST] = [f"[… {len(lines) - FIRST - LAST} lines left out …]"]
    text = "\n".join(lines)
    return _short(text, characters) if characters else text


# --- summaries that were not written --------------------------------------------------------------


def interrupted_summary(session: Session, reason: str, *, now: int) -> list[AnyEvent]:
    """Return the end of the summary that was being written, if one was. It is written again later."""
    trying = session.chapter.in_progress
    if trying is None:
        return []
    problem = Problem(code=INTERRUPTED, message=f"The summary was interrupted: {reason}.")
    return [failed_summary(trying, problem, retry_at=now)]


def cancelled_hand_over(session: Session) -> list[AnyEvent]:
    """Return the end of a reset that waited for its note when a message came."""
    if not session.chapter.hand_over_requested:
        return []
    problem = Problem(
        code=INTERRUPTED, message="A message arrived before the note was written, so the reset was cancelled."
    )
    attempt = session.chapter.hand_over_failures + 1
    return [
        SummaryFailed(covers_turn=session.turns, attempt=attempt, problem=problem, retry_at=None, purpose="hand_over")
    ]


def failed_summary(started: SummaryStarted, problem: Problem, *, retry_at: int | None) -> SummaryFailed:
    """Return the end of a summary that failed."""
    return SummaryFailed(
        covers_turn=started.covers_turn,
        covers_step=started.covers_step,
        attempt=started.attempt,
        problem=problem,
        retry_at=retry_at,
        purpose=started.purpose,
    )
