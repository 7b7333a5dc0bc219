"""What the model sees of a session, for people who want to know what they pay for."""

from __future__ import annotations

from typing import assert_never

from holdfast.domain.history import AgentMessage, Message, Note, ToolResult, UserMessage
from holdfast.domain.session import Session
from holdfast.models.model import ToolSpec
from holdfast.runtime.agent import Agent
from holdfast.runtime.prompt import model_request
from holdfast.schemas.context import ContextMessage, ModelContext

CHARACTERS_A_TOKEN = 4


def context(session: Session, agent: Agent, tools: list[ToolSpec], *, window: int | None) -> ModelContext:
    """The next request to the model, in words and in figures."""
    place = agent.tool_context(session)
    request = model_request(session, turn=session.turns, instructions=agent.instructions, context=place, tools=tools)
    shown = [_shown(message) for message in request.messages]
    described = sum(len(tool.name) + len(tool.description) + len(str(tool.parameters)) for tool in tools)
    characters = len(request.instructions) + described + sum(message.characters for message in shown)
    counted = any(isinstance(message, AgentMessage) for message in request.messages) and session.size > 0
    tokens = session.size if counted else characters // CHARACTERS_A_TOKEN
    return ModelContext(
        model=agent.model.name,
        instructions=request.instructions,
        tools=[tool.name for tool in tools],
        messages=shown,
        characters=characters,
        tokens=tokens,
        used=tokens,
        counted=counted,
        threshold=agent.limits.compaction.threshold,
        limit=agent.limits.compaction.limit,
        limit_source=agent.limits.compaction.limit_source,
        chapter=session.chapter.number,
        covers=0 if (summary := session.chapter.summary) is None else summary.covers_turn,
        summary=None if summary is None else summary.source,
        window=window,
    )


def _shown(message: Message) -> ContextMessage:
    match message:
        case UserMessage(turn, text):
            return ContextMessage(role="user", turn=turn, text=text, characters=len(text))
        case AgentMessage(turn, text, thinking, calls):
            asked = "".join(f"\n{call.tool} {call.arguments}" for call in calls)
            size = len(text) + len(thinking) + len(asked)
            return ContextMessage(role="agent", turn=turn, text=text + asked, characters=size)
        case ToolResult(turn, _, tool, outcome, output):
            return ContextMessage(role="tool", turn=turn, text=f"{tool} {outcome}: {output}", characters=len(output))
        case Note(turn, text):
            return ContextMessage(role="note", turn=turn, text=text, characters=len(text))
        case _ as never:
            assert_never(never)
