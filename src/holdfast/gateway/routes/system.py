"""The gateway about itself: health, status, why, metrics, the contract, the end."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from holdfast import __version__
from holdfast.board.inbox import in_words
from holdfast.config import ConfigError, Home
from holdfast.domain.errors import Corrupt, Rejected
from holdfast.domain.events import SYSTEM, session_stream
from holdfast.gateway.answers import answer
from holdfast.gateway.contract import body, describe, returns, takes
from holdfast.gateway.metrics import exposition
from holdfast.gateway.routes.sessions import statements
from holdfast.gateway.routes.tasks import task_statements
from holdfast.gateway.shapes import Goodbye, Health, PartHealth, Restart, Statement, Status, Why
from holdfast.gateway.state import GatewayDep, device_of
from holdfast.lifecycle.restart import check_restart

RESTART_HINT = "Correct it, then restart again."
router = APIRouter(tags=["system"])


@router.get("/healthz", **returns(Health))
async def health(at: GatewayDep) -> Response:
    """Whether it is up, without a credential."""
    found = at.store.health
    parts = [
        PartHealth(name=part.name, problem=part.problem, since=part.since, restarts=part.restarts)
        for part in at.followers
        if part.problem or part.restarts
    ]
    problems = [found.problem, *(f"{part.name}: {part.problem}" for part in parts if part.problem)]
    problem = next(filter(None, problems), "")
    word = "degraded" if problem else "ok" if at.recovered.is_set() else "starting"
    return answer(Health(status=word, version=__version__, pid=os.getpid(), problem=problem, parts=parts))


@router.get("/v1/status", **returns(Status))
async def status(at: GatewayDep) -> Response:
    """What runs here and how much it holds."""
    counts = await at.store.counts()
    found = at.store.health
    shape = Status(
        version=__version__,
        pid=os.getpid(),
        home=at.home,
        url=at.url,
        started_at=at.started_at,
        uptime_ms=at.clock.now() - at.started_at,
        writable=found.writable,
        problem=found.problem,
        working=at.runner.working,
        inbox=Counter(entry.kind for entry in await at.dispatcher.inbox.entries()),
        tasks=sum(not row.foreground for row in await at.store.running_tasks()),
        **msgspec.structs.asdict(counts),
    )
    return answer(shape)


@router.get("/v1/why", **returns(Why))
async def why(at: GatewayDep) -> Response:
    """What waits for a person, as in the inbox, and what else is at work: all sessions, all tasks, all cards."""
    sentences: list[Statement] = []
    found = at.store.health
    if not found.writable:
        sentences.append(Statement(text=found.problem, stream=SYSTEM, version=0, at=found.since))
    now, listed = at.clock.now(), set[str]()
    for entry in await at.dispatcher.inbox.entries():
        listed.add(entry.stream)
        text = in_words(entry, now=now)
        sentences.append(Statement(text=text, stream=entry.stream, version=entry.version, at=entry.since))
    for row in await at.store.unfinished_sessions():
        if session_stream(row.id) in listed:
            continue
        try:
            first = (await statements(at, row.id))[:1]
        except Corrupt as error:  # its stream stops; the others are told all the same
            first = [Statement(text=error.message, stream=session_stream(row.id), version=0, at=0)]
        sentences += [
            Statement(text=f"{row.id} “{row.title}”: {s.text}", stream=s.stream, version=s.version, at=s.at)
            for s in first
        ]
    for view in await at.task_queries.running():
        sentences += [
            Statement(text=f"Task {view.id} “{view.title}”: {s.text}", stream=s.stream, version=s.version, at=s.at)
            for s in (await task_statements(at, view))[:1]
        ]
    return answer(Why("gateway", sentences))


@router.get("/metrics", include_in_schema=False)
async def metrics(at: GatewayDep) -> Response:
    """For Prometheus."""
    return Response(await exposition(at), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/v1/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """The contract."""
    return answer(describe(request.app))


@router.post("/v1/restart", **takes(Restart, Goodbye, keyed=False))
async def restart(at: GatewayDep, request: Request) -> Response:
    """Say goodbye and start again as the same process, at the same port; refused while config.toml is wrong."""
    given = await body(request, Restart)
    if given.env and device_of(request):
        raise Rejected("A browser cannot change the environment of the gateway.")
    if any(not name or "=" in name or "\0" in name + value for name, value in given.env.items()):
        raise Rejected("env: not names and values of an environment.")
    try:
        await asyncio.to_thread(check_restart, Home(Path(at.home)))
    except ConfigError as error:
        raise Rejected(f"The gateway goes on as it is: {error}", hint=RESTART_HINT) from error
    at.again.wanted, at.again.environment = True, given.env
    at.goodbye.set()
    return answer(Goodbye(os.getpid()), status=202)


@router.post("/v1/shutdown", **returns(Goodbye, status=202))
async def shutdown(at: GatewayDep) -> Response:
    """Say goodbye: suspend what runs, then end. The next start goes on."""
    at.goodbye.set()
    return answer(Goodbye(os.getpid()), status=202)
