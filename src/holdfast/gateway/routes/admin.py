"""Overview, doctor, retention, profiles and models. Keys are never shown."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from holdfast.config import Home
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import QueryShape, by_whom, parse_query
from holdfast.gateway.responses import json_response
from holdfast.gateway.state import Gateway, gateway_of
from holdfast.lifecycle.doctor import examine
from holdfast.models.registry import ModelRegistry
from holdfast.profiles import Profiles
from holdfast.schemas.gateway import (
    DetectedModel,
    DiskUse,
    Findings,
    HealthFinding,
    ModelList,
    Overview,
    ProfileList,
    ProfileView,
    RetentionEffect,
    RetentionSessions,
    RetentionView,
    WorkSlot,
)
from holdfast.store.rows import SessionRow
from holdfast.tasks.prune import Prunable
from holdfast.tasks.sandbox import SandboxBuilder

STEP_MS = 30 * 60_000
SHOWN = 100
routes = Routes("admin")


class OverviewQuery(QueryShape, frozen=True):
    """The time span."""

    hours: Annotated[int, Meta(ge=1, le=168)] = 24


@routes.get("/v1/overview", Overview, query=OverviewQuery)
async def overview(request: Request) -> Response:
    """Count what ended in the last hours, per half hour."""
    gateway = gateway_of(request)
    query = parse_query(request, OverviewQuery)
    end = gateway.clock.now() // STEP_MS * STEP_MS + STEP_MS
    since = end - query.hours * 3_600_000
    found = {slot.at: slot for slot in await gateway.store.work_since(since, step=STEP_MS)}
    slots = [
        found.get(start, WorkSlot(start, turns=0, tasks=0, failed=0, waits=0)) for start in range(since, end, STEP_MS)
    ]
    tasks = await gateway.store.count_tasks()
    shape = Overview(
        step_ms=STEP_MS,
        slots=slots,
        tasks=tasks,
        spend=await gateway.store.spend_since(since),
        disk=await asyncio.to_thread(_disk, Home(Path(gateway.home)), sum(task.bytes for task in tasks)),
    )
    return json_response(shape)


def _disk(home: Home, output: int) -> DiskUse:
    parts = [home.database, *(home.database.with_name(home.database.name + end) for end in ("-wal", "-shm"))]
    size = sum(part.stat().st_size for part in parts if part.exists())
    return DiskUse(database=size, output=output, free=shutil.disk_usage(home.path).free)


@routes.get("/v1/doctor", Findings)
async def doctor(request: Request) -> Response:
    """Check the home without changing it, like `holdfast doctor`."""
    gateway = gateway_of(request)
    found = await asyncio.to_thread(examine, Home(Path(gateway.home)))
    shown = msgspec.convert(found, list[HealthFinding], from_attributes=True)
    return json_response(Findings(ok=all(one.ok for one in found), at=gateway.clock.now(), findings=shown))


@routes.get("/v1/retention", RetentionView)
async def show_retention(request: Request) -> Response:
    """Show the rules, and what they would delete now."""
    gateway = gateway_of(request)
    shown = await _retention(
        gateway, await gateway.retention.preview(), await gateway.retention.sessions(), pruned=False
    )
    return json_response(shown)


@routes.post("/v1/retention", RetentionView)
async def apply_retention(request: Request) -> Response:
    """Delete by the rules now instead of within the hour. Repeating it is harmless."""
    gateway = gateway_of(request)
    by = by_whom(request)
    gone = await gateway.retention.apply(asked_by=by)
    return json_response(
        await _retention(gateway, gone, await gateway.retention.apply_to_sessions(asked_by=by), pruned=True), status=202
    )


async def _retention(
    gateway: Gateway, found: dict[str, list[Prunable]], sessions: dict[str, list[SessionRow]], *, pruned: bool
) -> RetentionView:
    rules = gateway.retention.rules
    parts = []
    for rule, tasks in found.items():
        views = await gateway.task_queries.views([task.row for task in tasks[:SHOWN] if task.row is not None])
        parts.append(RetentionEffect(rule=rule, count=len(tasks), bytes=sum(task.bytes for task in tasks), tasks=views))
    return RetentionView(
        tasks_days=rules.tasks_days,
        tasks_count=rules.tasks_count,
        tasks_megabytes=rules.tasks_megabytes,
        sessions_archive_days=rules.sessions_archive_days,
        sessions_delete_days=rules.sessions_delete_days,
        sessions=[
            RetentionSessions(rule=rule, count=len(rows), titles=[row.title for row in rows[:SHOWN]])
            for rule, rows in sessions.items()
        ],
        pruned=pruned,
        count=sum(part.count for part in parts),
        bytes=sum(part.bytes for part in parts),
        rules=parts,
    )


@routes.get("/v1/profiles", ProfileList)
async def profiles(request: Request) -> Response:
    """List the profiles."""
    gateway = gateway_of(request)
    return json_response(profile_list(gateway.profiles, gateway.sandbox))


def profile_list(profiles: Profiles, sandbox: SandboxBuilder) -> ProfileList:
    """Return all profiles; also used by the command line when no gateway is running."""
    settings = profiles.settings
    detected = {found.provider for found in profiles.detected}
    configured = profiles.configured
    providers = {name: settings.providers.get(one.model.partition(":")[0]) for name, one in settings.profiles.items()}
    shown = [
        ProfileView(
            name=name,
            model=profile.model if profile.driver_name == "builtin" else "",
            cwd=profile.cwd,
            instructions=profile.instructions,
            tools=dict(profile.tools),
            mcp=list(profile.mcp),
            max_steps=profile.max_steps,
            max_tokens=profile.max_tokens,
            max_minutes=profile.max_minutes,
            origin="config" if name in configured else "detected" if name in detected else "built in",
            default=name == profiles.default,
            sandbox=sandbox.in_words(profile.sandbox, network=profile.network),
            key_name=provider.api_key_env if (provider := providers[name]) else "",
            key_set=provider is None or provider.key() is not None,
            agent="" if profile.driver_name == "builtin" else profile.agent or name,
        )
        for name, profile in sorted(settings.profiles.items())
    ]
    return ProfileList(shown, profiles.problem, str(Path.home()))


@routes.get("/v1/models", ModelList)
async def models(request: Request) -> Response:
    """List the providers that were detected: keys in the environment, model servers on loopback."""
    gateway = gateway_of(request)
    return json_response(await model_list(gateway.models))


async def model_list(models: ModelRegistry) -> ModelList:
    """Detect the available providers."""
    return ModelList(msgspec.convert(await models.detect(), list[DetectedModel], from_attributes=True))
