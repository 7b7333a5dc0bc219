"""The house: the last hours in numbers, the doctor's findings, the retention rules."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from holdfast.config import Home
from holdfast.gateway.answers import answer
from holdfast.gateway.contract import by_whom, returns, takes
from holdfast.gateway.house_shapes import (
    Findings,
    HealthFinding,
    LetGo,
    LetGoSessions,
    Overview,
    RetentionView,
)
from holdfast.gateway.state import Gateway, GatewayDep
from holdfast.lifecycle.doctor import examine
from holdfast.store.rows import SessionRow, WorkSlot
from holdfast.tasks.prune import Prunable

STEP_MS = 30 * 60_000
SHOWN = 100
router = APIRouter(prefix="/v1", tags=["house"])


@router.get("/overview", **returns(Overview))
async def overview(at: GatewayDep, hours: Annotated[int, Query(ge=1, le=168)] = 24) -> Response:
    """What ended in the last hours, by the half hour."""
    end = at.clock.now() // STEP_MS * STEP_MS + STEP_MS
    since = end - hours * 3_600_000
    found = {slot.at: slot for slot in await at.store.work_since(since, step=STEP_MS)}
    slots = [
        found.get(start, WorkSlot(start, turns=0, tasks=0, failed=0, waits=0)) for start in range(since, end, STEP_MS)
    ]
    return answer(Overview(step_ms=STEP_MS, slots=slots, tasks=await at.store.count_tasks()))


@router.get("/doctor", **returns(Findings))
async def doctor(at: GatewayDep) -> Response:
    """Look at the home without changing it: the same findings as `holdfast doctor`."""
    found = await asyncio.to_thread(examine, Home(Path(at.home)))
    shown = [HealthFinding(name=one.name, ok=one.ok, detail=one.detail, hint=one.hint) for one in found]
    return answer(Findings(ok=all(one.ok for one in found), at=at.clock.now(), findings=shown))


@router.get("/retention", **returns(RetentionView))
async def show_retention(at: GatewayDep) -> Response:
    """The rules, and what they would let go now."""
    shown = await _retention(at, await at.retention.preview(), await at.retention.sessions(), pruned=False)
    return answer(shown)


@router.post("/retention", **takes(None, RetentionView, keyed=False))
async def apply_retention(at: GatewayDep, request: Request) -> Response:
    """Let go now what the rules say, instead of within the hour. Again it does no more than the rules say."""
    by = by_whom(request)
    gone = await at.retention.apply(asked_by=by)
    return answer(
        await _retention(at, gone, await at.retention.apply_to_sessions(asked_by=by), pruned=True), status=202
    )


async def _retention(
    at: Gateway, found: dict[str, list[Prunable]], sessions: dict[str, list[SessionRow]], *, pruned: bool
) -> RetentionView:
    rules = at.retention.rules
    parts = []
    for rule, tasks in found.items():
        views = await at.task_queries.views([task.row for task in tasks[:SHOWN] if task.row is not None])
        parts.append(LetGo(rule=rule, count=len(tasks), bytes=sum(task.bytes for task in tasks), tasks=views))
    return RetentionView(
        tasks_days=rules.tasks_days,
        tasks_count=rules.tasks_count,
        tasks_megabytes=rules.tasks_megabytes,
        sessions_archive_days=rules.sessions_archive_days,
        sessions_delete_days=rules.sessions_delete_days,
        sessions=[
            LetGoSessions(rule=rule, count=len(rows), titles=[row.title for row in rows[:SHOWN]])
            for rule, rows in sessions.items()
        ],
        pruned=pruned,
        count=sum(part.count for part in parts),
        bytes=sum(part.bytes for part in parts),
        rules=parts,
    )
