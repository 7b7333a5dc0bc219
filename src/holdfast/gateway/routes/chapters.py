"""Chapters: resets and their rules, compaction, and the context that the model sees."""

from __future__ import annotations

from typing import Annotated, assert_never

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from holdfast.domain.commands import CompactSession, ResetSession, SetResetPolicy, UndoReset
from holdfast.domain.errors import Rejected
from holdfast.domain.events.chapter import ResetPolicy
from holdfast.domain.history import AgentMessage, Message, Note, ToolResult, UserMessage
from holdfast.domain.reset import still_postponed
from holdfast.domain.session import Session
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import QueryShape, parse_command, parse_query, session_of
from holdfast.gateway.responses import accepted, json_response
from holdfast.gateway.routes.sessions import passed_on
from holdfast.gateway.state import gateway_of
from holdfast.models.model import ToolSpec
from holdfast.runtime.agents import Agent
from holdfast.runtime.drivers.builtin import model_request
from holdfast.schemas.chapters import (
    ChapterView,
    ContextMessage,
    ModelContext,
    ResetOutlook,
    ResetRulesView,
    RunningTaskView,
)
from holdfast.schemas.sessions import Accepted
from holdfast.settings import ResetSettings, reset_problem

CHARACTERS_A_TOKEN = 4
routes = Routes("chapters")


@routes.command("/v1/sessions/{id}/reset", ResetSession)
async def reset_session(request: Request) -> Response:
    """Open a new chapter. While tasks run, the command must say whether to keep or stop them."""
    gateway = gateway_of(request)
    row = await session_of(request)
    command, caller = await parse_command(request, ResetSession, subject=row.id)
    return accepted(Accepted, await gateway.reset_service.by_person(row.id, command, caller))


routes.add_command("/v1/sessions/{id}/reset/undo", UndoReset, passed_on(UndoReset))
routes.add_command("/v1/sessions/{id}/compact", CompactSession, passed_on(CompactSession))


@routes.command("/v1/sessions/{id}/reset/policy", SetResetPolicy)
async def set_reset_policy(request: Request) -> Response:
    """Set when this session is reset automatically."""
    gateway = gateway_of(request)
    row = await session_of(request)
    command, caller = await parse_command(request, SetResetPolicy, subject=row.id)
    given = msgspec.convert(msgspec.structs.asdict(command.policy), ResetSettings)
    if problem := reset_problem(given):
        raise Rejected(f"{problem[0]} {problem[1]}")
    return accepted(Accepted, await gateway.sessions.execute(row.id, command, caller))


@routes.get("/v1/sessions/{id}/reset", ResetOutlook)
async def reset_outlook(request: Request) -> Response:
    """Show when the session is reset automatically, what postpones that, and which tasks run."""
    gateway = gateway_of(request)
    row = await session_of(request)
    session = await gateway.sessions.get(row.id)
    rules = gateway.profiles.reset_rules(session.profile, session.policy)
    coming = gateway.reset_scheduler.outlook(session)
    chapter = session.chapter
    running = [
        RunningTaskView(
            task=one.task,
            kind="process" if one.process else "agent",
            title=one.title,
            command=one.command,
            pid=one.pid,
            activity=one.doing,
            evidence=one.evidence,
            age_ms=one.age_ms,
            lifetime=one.lifetime,
        )
        for one in await gateway.running_tasks.of_session(session.id)
    ]
    shape = ResetOutlook(
        rules=msgspec.convert(rules, ResetRulesView, from_attributes=True),
        policy=session.policy if session.policy != ResetPolicy() else None,
        origins=gateway.profiles.reset_origins(session.profile, session.policy),
        next_rule=coming.rule,
        next_at=coming.at,
        postponed=None if (late := still_postponed(session, coming, gateway.clock.now())) is None else late[0],
        chapter=ChapterView(
            number=chapter.number,
            after_turn=chapter.after_turn,
            version=0 if chapter.opened_at is None else chapter.opened_at.version,
            opened_at=None if chapter.opened_at is None else chapter.opened_at.at,
            rule=None if chapter.opened is None else chapter.opened.rule,
            reason="" if chapter.opened is None else chapter.opened.reason,
            unseen=chapter.opened is not None and chapter.opened.rule != "person" and session.first_input is None,
            summary=None if chapter.summary is None else chapter.summary.source,
            compacting=chapter.in_progress is not None or chapter.requested is not None,
        ),
        running=running,
    )
    return json_response(shape)


class ContextQuery(QueryShape, frozen=True):
    """How much to show."""

    texts: Annotated[bool, Meta(description="Include the texts, not only the figures.")] = True


@routes.get("/v1/sessions/{id}/context", ModelContext, query=ContextQuery)
async def session_context(request: Request) -> Response:
    """Show what the model sees, and its approximate size."""
    gateway = gateway_of(request)
    row = await session_of(request)
    query = parse_query(request, ContextQuery)
    session = await gateway.sessions.get(row.id)
    agent = await gateway.agents.of(session)
    tools = [tool.spec for tool in (await agent.tools()).values()]
    window = await agent.model.window()
    found = await agent.mounts.run(lambda: context(session, agent, tools, window=window))
    return json_response(found if query.texts else msgspec.structs.replace(found, instructions="", messages=[]))


def context(session: Session, agent: Agent, tools: list[ToolSpec], *, window: int | None) -> ModelContext:
    """Return the content and size of the next model request."""
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
