"""A digest: what stands for a conversation when no model summarises it."""

from __future__ import annotations

from holdfast.domain.history import AgentMessage, Message, Note, ToolResult, UserMessage
from holdfast.domain.summary import FIRST, LAST, digest


def answer(turn: int, text: str) -> AgentMessage:
    return AgentMessage(turn, text, "", [], "", 1)


def result(turn: int, tool: str) -> ToolResult:
    return ToolResult(turn, f"{turn}.1.0", tool, "done", "a long output", 1)


def test_a_digest_has_what_was_asked_the_last_answer_to_it_and_the_tools() -> None:
    messages: list[Message] = [
        Note(0, "An earlier summary,\nin two lines."),
        UserMessage(1, "find\nthe bug"),
        answer(1, "I look."),
        result(1, "read"),
        answer(1, ""),
        result(1, "read"),
        answer(1, "It is in line 3."),
        Note(1, "A task\nended."),
        UserMessage(2, "mend it"),
        result(2, "write"),
        answer(2, "Done."),
    ]
    assert digest(messages).splitlines() == [
        "An earlier summary,",
        "in two lines.",
        "The user said: find the bug",
        "A task ended.",
        "You answered: It is in line 3.",
        "The user said: mend it",
        "You answered: Done.",
        "Tools used: read 2 times, write 1 times",
    ]


def test_a_digest_has_each_answer_once_below_its_message() -> None:
    messages: list[Message] = [
        UserMessage(1, "one"),
        answer(1, "first"),
        UserMessage(2, "two"),
        UserMessage(3, "three"),
    ]
    assert digest(messages).splitlines() == [
        "The user said: one",
        "You answered: first",
        "The user said: two",
        "The user said: three",
    ]


def test_a_long_digest_keeps_its_beginning_and_its_end_and_says_what_is_left_out() -> None:
    lines = digest([UserMessage(turn, str(turn)) for turn in range(1, FIRST + LAST + 8)]).splitlines()
    assert len(lines) == FIRST + 1 + LAST
    assert lines[0] == "The user said: 1"
    assert lines[FIRST - 1 : FIRST + 2] == [
        f"The user said: {FIRST}",
        "[… 7 lines left out …]",
        f"The user said: {FIRST + 8}",
    ]
    assert lines[-1] == f"The user said: {FIRST + LAST + 7}"
