"""The tool `question`: the loop opens a wait for it, and the answer of a person is its result."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.runtime.tools.context import ToolContext, ToolFailed
from holdfast.runtime.tools.tool import Tool, ToolOutput


class QuestionArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to ask, and what the person may choose from."""

    text: Annotated[str, msgspec.Meta(min_length=1, description="What to ask.")]
    choices: Annotated[list[str], msgspec.Meta(max_length=10, description="Answers to choose from, if any.")] = []


async def _ask(_: ToolContext, __: QuestionArguments) -> ToolOutput:
    raise ToolFailed("A question is answered by a person.")


QUESTION = Tool(
    "question",
    "Ask the user something, with optional choices, and wait for the answer.",
    "pure",
    QuestionArguments,
    _ask,
    subject_field="text",
    default_policy="allow",
    file_changes="none",
)
