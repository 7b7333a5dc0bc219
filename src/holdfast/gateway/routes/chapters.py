"""Chapters: reset, undo, when a session is reset by itself, compaction."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from holdfast.domain.commands import CompactSession, ResetSession, SetResetPolicy, UndoReset
from holdfast.domain.errors import Rejected
from holdfast.domain.events.chapter import ResetPolicy
from holdfast.domain.reset import still_postponed
from holdfast.gateway.answers import answer
from holdfast.gateway.chapter_shapes import ChapterShape, Outlook, Rules, RunningTask
from holdfast.gateway.contract import parse_command, returns, takes
from holdfast.gateway.paths import SessionDep
from holdfast.gateway.routes.sessions import accepted, tell
from holdfast.gateway.state import GatewayDep
from holdfast.settings import ResetSettings, reset_problem

router = APIRouter(prefix="/v1", tags=["chapters"])


@router.post("/sessions/{id}/reset", **takes(ResetSession))
async def reset_session(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """Open a new chapter. While something runs, the command says what becomes of it."""
    command, caller = await parse_command(request, ResetSession, subject=row.id)
    return accepted(row.id, await at.reset_service.by_person(row.id, command, caller), caller, message=False)


@router.post("/sessions/{id}/reset/undo", **takes(UndoReset))
async def undo_reset(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """Let the model see the chapter before again."""
    return await tell(at, row.id, request, UndoReset)


@router.post("/sessions/{id}/reset/policy", **takes(SetResetPolicy))
async def set_reset_policy(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """When this session is reset by itself."""
    command, caller = await parse_command(request, SetResetPolicy, subject=row.id)
    given = msgspec.convert(msgspec.structs.asdict(command.policy), ResetSettings)
    if problem := reset_problem(given):
        raise Rejected(f"{problem[0]} {problem[1]}")
    return accepted(row.id, await at.sessions.execute(row.id, command, caller), caller, message=False)


@router.post("/sessions/{id}/compact", **takes(CompactSession))
async def compact_session(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """Make its context shorter; the originals stay in the log and in the search."""
    return await tell(at, row.id, request, CompactSession)


@router.get("/sessions/{id}/reset", **returns(Outlook))
async def reset_outlook(at: GatewayDep, row: SessionDep) -> Response:
    """When it is reset by itself, what postpones that, and what runs."""
    session = await at.sessions.get(row.id)
    rules = at.profiles.reset_rules(session.profile, session.policy)
    coming = at.reset_scheduler.outlook(session)
    chapter = session.chapter
    running = [
        RunningTask(
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
        for one in await at.running_tasks.of_session(session.id)
    ]
    shape = Outlook(
        rules=msgspec.convert(rules, Rules, from_attributes=True),
        policy=session.policy if session.policy != ResetPolicy() else None,
        origins=at.profiles.reset_origins(session.profile, session.policy),
        next_rule=coming.rule,
        next_at=coming.at,
        postponed=None if (late := still_postponed(session, coming, at.clock.now())) is None else late[0],
        chapter=ChapterShape(
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
    return answer(shape)
