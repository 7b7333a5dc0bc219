"""The gateway itself: health, status, why, metrics, OpenAPI, restart, shutdown, and the dashboard's files."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response

from holdfast import __version__
from holdfast.board.inbox import in_words
from holdfast.config import ConfigError, Home
from holdfast.domain.errors import Corrupt, Rejected
from holdfast.domain.events import SYSTEM, session_stream
from holdfast.gateway.dashboard_files import FOLDERS, PAGE
from holdfast.gateway.openapi import Routes, describe
from holdfast.gateway.requests import parse_body
from holdfast.gateway.responses import json_response
from holdfast.gateway.routes.sessions import statements
from holdfast.gateway.routes.tasks import task_statements
from holdfast.gateway.state import device_of, gateway_of, origin_of
from holdfast.schemas.devices import Build
from holdfast.schemas.gateway import Health, PartHealth, Readiness, Restart, ShuttingDown, Statement, Status, Why

CHECK_SECONDS = 30.0
RESTART_HINT = "Correct this, then restart again."
routes = Routes("system")


@routes.get("/healthz", Health)
async def health(request: Request) -> Response:
    """Report whether the gateway is up. Needs no credential.

    What the trouble is, is said on this machine and to those who are signed in.
    """
    gateway = gateway_of(request)
    found = gateway.store.health
    parts = [
        PartHealth(name=part.name, problem=part.problem, since=part.since, restarts=part.restarts)
        for part in gateway.followers
        if part.problem or part.restarts
    ]
    problems = [found.problem, *(f"{part.name}: {part.problem}" for part in parts if part.problem)]
    problem = next(filter(None, problems), "")
    word = "degraded" if problem else "ok" if gateway.recovered.is_set() else "starting"
    if not request.scope["known"] and not origin_of(request).is_local:
        problem, parts = "", []
    return json_response(Health(status=word, version=__version__, pid=os.getpid(), problem=problem, parts=parts))


@routes.get("/readyz", Readiness)
async def readiness(request: Request) -> Response:
    """Report whether the gateway takes requests, for load balancers: 200, or 503. Needs no credential."""
    gateway = gateway_of(request)
    if gateway.shutdown.is_set() or gateway.store.is_draining:
        found = Readiness("draining")
    elif not gateway.recovered.is_set():
        found = Readiness("starting")
    else:
        found = Readiness("ready" if gateway.store.health.writable else "unavailable")
    return json_response(found, status=200 if found.status == "ready" else 503)


@routes.get("/v1/status", Status)
async def status(request: Request) -> Response:
    """Show the state of the gateway, with counts."""
    gateway = gateway_of(request)
    counts = await gateway.store.counts()
    found = gateway.store.health
    shape = Status(
        version=__version__,
        pid=os.getpid(),
        home=gateway.home,
        url=gateway.url,
        started_at=gateway.started_at,
        uptime_ms=gateway.clock.now() - gateway.started_at,
        writable=found.writable,
        problem=found.problem,
        working=gateway.runner.working,
        inbox=Counter(entry.kind for entry in await gateway.dispatcher.inbox.entries()),
        tasks=sum(not row.foreground for row in await gateway.store.running_tasks()),
        **msgspec.structs.asdict(counts),
    )
    return json_response(shape)


@routes.get("/v1/why", Why)
async def why(request: Request) -> Response:
    """List what waits for a person, as in the inbox, then all other work in progress."""
    gateway = gateway_of(request)
    sentences: list[Statement] = []
    found = gateway.store.health
    if not found.writable:
        sentences.append(Statement(text=found.problem, stream=SYSTEM, version=0, at=found.since))
    if gateway.shared_settings is not None and (state := gateway.shared_settings.state).problem:
        sentences.append(Statement(text=state.problem, stream=SYSTEM, version=0, at=state.since))
    now, listed = gateway.clock.now(), set[str]()
    for entry in await gateway.dispatcher.inbox.entries():
        listed.add(entry.stream)
        text = in_words(entry, now=now)
        sentences.append(Statement(text=text, stream=entry.stream, version=entry.version, at=entry.since))
    for row in await gateway.store.unfinished_sessions():
        if session_stream(row.id) in listed:
            continue
        listed.add(session_stream(row.id))
        try:
            first = (await statements(gateway, row.id))[:1]
        except Corrupt as error:  # this session cannot be read; the others are listed
            first = [Statement(text=error.message, stream=session_stream(row.id), version=0, at=0)]
        sentences += [
            Statement(text=f"Session {row.id} “{row.title}”: {s.text}", stream=s.stream, version=s.version, at=s.at)
            for s in first
        ]
    for view in await gateway.task_queries.running():
        if session_stream(view.worker or "") in listed:  # the work of that session
            continue
        sentences += [
            Statement(text=f"Task {view.id} “{view.title}”: {s.text}", stream=s.stream, version=s.version, at=s.at)
            for s in (await task_statements(gateway, view))[:1]
        ]
    return json_response(Why("gateway", sentences))


async def metrics(request: Request) -> Response:
    """Return figures in the text format of Prometheus."""
    gateway = gateway_of(request)
    counts, (commits, seconds) = await gateway.store.counts(), gateway.store.commit_stats
    figures: list[tuple[str, str, str, float]] = [
        ("sessions", "gauge", "Stored sessions.", counts.sessions),
        ("messages", "gauge", "Stored messages.", counts.messages),
        ("events", "gauge", "Stored events.", counts.events),
        ("turns_running", "gauge", "Sessions with a worker.", len(gateway.runner.working)),
        ("followers", "gauge", "Open event streams.", gateway.streams.open),
        ("writable", "gauge", "1 while the disk takes writes.", int(gateway.store.health.writable)),
        ("events_sent_total", "counter", "Events sent to followers.", gateway.streams.sent),
        ("commits_total", "counter", "Transactions committed.", commits),
        ("commit_seconds_total", "counter", "Time spent in them.", seconds),
    ]
    lines = [
        f"# HELP holdfast_{name} {text}\n# TYPE holdfast_{name} {kind}\nholdfast_{name} {value}\n"
        for name, kind, text, value in figures
    ]
    return Response("".join(lines), media_type="text/plain; version=0.0.4; charset=utf-8")


async def openapi(request: Request) -> Response:
    """Return the OpenAPI document."""
    return json_response(describe(request.app.state.parts))


routes.page("/metrics", metrics)
routes.page("/v1/openapi.json", openapi)


@routes.post("/v1/restart", ShuttingDown, body=Restart)
async def restart(request: Request) -> Response:
    """Shut down and start again in the same process at the same port. Refused while config.toml has an error."""
    gateway = gateway_of(request)
    given = await parse_body(request, Restart)
    if given.env and device_of(request):
        raise Rejected("A browser cannot change the environment of the gateway.")
    if any(not name or "=" in name or "\0" in name + value for name, value in given.env.items()):
        raise Rejected("env: names and values must be those of environment variables.")
    try:
        await asyncio.to_thread(_check_settings, Home(Path(gateway.home)))
    except ConfigError as error:
        raise Rejected(f"The gateway was not restarted: {error}", hint=RESTART_HINT) from error
    gateway.again.wanted, gateway.again.environment = True, given.env
    gateway.shutdown.set()
    return json_response(ShuttingDown(os.getpid()), status=202)


def _check_settings(home: Home) -> None:
    """Load the program and the settings from disk in another process. ConfigError says what is wrong."""
    command = [sys.executable, "-P", "-m", "holdfast", "--home", str(home.path), "config", "check"]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, errors="replace", timeout=CHECK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"The settings cannot be checked: {error}.") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().removeprefix("error: ").partition("\n  hint:")[0]
        raise ConfigError(said or f"`holdfast config check` ended with exit code {done.returncode}.")


@routes.post("/v1/shutdown", ShuttingDown)
async def shutdown(request: Request) -> Response:
    """Suspend running turns and shut down. The next start resumes them."""
    gateway = gateway_of(request)
    gateway.shutdown.set()
    return json_response(ShuttingDown(os.getpid()), status=202)


@routes.get("/v1/build", Build)
async def build(request: Request) -> Response:
    """Return the build of the dashboard. Needs no credential."""
    gateway = gateway_of(request)
    gateway.dashboard.refresh()
    return json_response(Build(__version__, gateway.dashboard.build))


async def page(request: Request) -> Response:
    """Serve a page of the dashboard or a file that it loads."""
    gateway = gateway_of(request)
    return gateway.dashboard.response(request)


class PageConvertor(StringConvertor):
    """Matches the path of a page, whether it exists or not."""

    regex = PAGE


register_url_convertor("page", PageConvertor())
for path in ("/", "/{name}", "/{rest:page}", *(f"/{folder}/{{rest:path}}" for folder in sorted(FOLDERS))):
    routes.page(path, page)
