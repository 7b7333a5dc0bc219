"""Tasks: start, look, read, wait, write, stop, pin, prune."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from holdfast.domain.commands import (
    DetachTurn,
    PinTask,
    PruneTasks,
    StartAgent,
    StartCommand,
    StopTask,
    WriteTask,
)
from holdfast.domain.errors import Rejected
from holdfast.domain.events import task_stream
from holdfast.domain.why.task import why_task
from holdfast.gateway.answers import answer
from holdfast.gateway.contract import parse_command, returns, takes
from holdfast.gateway.paths import SessionDep, TaskDep, find_session
from holdfast.gateway.routes.sessions import CURSOR, is_directory
from holdfast.gateway.shapes import (
    Dropped,
    OutputHit,
    OutputHits,
    OutputPage,
    Pruned,
    Statement,
    Taken,
    TaskAccepted,
    TaskPage,
    Why,
)
from holdfast.gateway.state import Gateway, GatewayDep
from holdfast.store.contract import Appended, SessionCursor, TaskFilter
from holdfast.tasks.log import agent_started, command_started
from holdfast.tasks.plain_text import coloured, whole
from holdfast.tasks.prune import SHOWN, Rule
from holdfast.tasks.views import TaskView

LONGEST_WAIT = 60
OUTPUT_LIMIT = 1 << 20
BESIDE = 1 << 14
"""More bytes than that are cleaned beside the loop, which has others to serve."""
router = APIRouter(prefix="/v1", tags=["tasks"])


def accepted(task: str, appended: Appended, *, session: str = "") -> Response:
    """202: it is on disk."""
    shape = TaskAccepted(
        task=task,
        session=session,
        stream=appended.stream,
        version=appended.version,
        seq=appended.seq,
        duplicate=appended.duplicate,
    )
    return answer(shape, status=202)


async def _parent(at: Gateway, given: str | None) -> str:
    return (await find_session(at, given)).id if given is not None else ""


def _cwd(given: str | None) -> str:
    cwd = Path(given) if given is not None else Path.home()
    if not is_directory(cwd):
        raise Rejected(f"cwd {str(cwd)!r} is not the absolute path of a directory.")
    return str(cwd)


@router.post("/tasks", **takes(StartCommand, TaskAccepted))
async def start_command(at: GatewayDep, request: Request) -> Response:
    """Run a command that outlives the gateway."""
    command, caller = await parse_command(request, StartCommand, subject="")
    if (command.shell is None) == (command.argv is None):
        raise Rejected("Give either `shell`, a text for the shell, or `argv`, its words.")
    if (command.until is not None) != (command.lifetime == "until"):
        raise Rejected("`until` is the time for the lifetime `until`, and only for that.")
    task, session = secrets.token_hex(8), await _parent(at, command.session)
    started = command_started(command, task=task, cwd=_cwd(command.cwd), by=caller.by, session=session)
    appended = await at.tasks.start_command(started, env=command.env, command=caller.key)
    return accepted(appended.stream.removeprefix("task/"), appended, session=started.session)


@router.post("/tasks/agents", **takes(StartAgent, TaskAccepted))
async def start_agent(at: GatewayDep, request: Request) -> Response:
    """Let an agent work on something in the background, in a session of its own."""
    command, caller = await parse_command(request, StartAgent, subject="")
    profile = command.profile or at.profiles.default
    if profile not in at.profiles.names:
        raise Rejected(f"There is no profile {profile!r}.", hint=f"There is: {', '.join(at.profiles.names)}.")
    task = secrets.token_hex(8)
    session = await _parent(at, command.session)
    started = agent_started(command, task=task, cwd=_cwd(command.cwd), by=caller.by, session=session)
    appended = await at.agent_tasks.start(started, profile=profile, caller=caller)
    task = appended.stream.removeprefix("task/")
    return accepted(task, appended, session=task)


@router.post("/sessions/{id}/detach", **takes(DetachTurn, TaskAccepted))
async def detach_turn(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """Make the running turn a task of its own."""
    _, caller = await parse_command(request, DetachTurn, subject=row.id)
    appended = await at.agent_tasks.background(row.id, task=secrets.token_hex(8), caller=caller)
    return accepted(appended.stream.removeprefix("task/"), appended, session=row.id)


async def _wanted(
    kind: Literal["", "process", "agent", "card"] = "",
    state: Literal["", "running", "done", "failed", "stopped", "lost"] = "",
    text: Annotated[str, Query(max_length=500, description="In the title, the command or the summary.")] = "",
    since: Annotated[int, Query(ge=0, le=2**62, description="Started then or later.")] = 0,
    ended: Annotated[int, Query(ge=0, le=2**62, description="Ended then or later.")] = 0,
    all: Annotated[bool, Query(description="Also commands that a turn waits or waited for.")] = False,
) -> TaskFilter:
    return TaskFilter(kind=kind, state=state, text=text, since=since, ended=ended, foreground=all)


@router.get("/tasks", **returns(TaskPage))
async def list_tasks(
    at: GatewayDep,
    wanted: Annotated[TaskFilter, Depends(_wanted)],
    session: Annotated[str, Query(max_length=32)] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    before: Annotated[str, Query(pattern=CURSOR, description="`next` of the page before.")] = "",
) -> Response:
    """A page of the archive, newest first."""
    at_ms, _, id = before.partition("-")
    cursor = SessionCursor(int(at_ms), id) if before else SessionCursor()
    wanted = replace(wanted, session=await _parent(at, session or None))
    views = await at.task_queries.page(wanted, before=cursor, limit=limit)
    following = f"{views[-1].started_at}-{views[-1].id}" if len(views) == limit else None
    return answer(TaskPage(views, following))


@router.get("/tasks/stale", **returns(TaskPage))
async def list_stale(at: GatewayDep) -> Response:
    """What runs and is at no work that anybody waits for, each with the reason."""
    return answer(TaskPage([view for view in await at.task_queries.running() if view.stale], None))


@router.get("/tasks/search", **returns(OutputHits))
async def search_outputs(
    at: GatewayDep,
    q: Annotated[str, Query(min_length=1, max_length=500)],
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Response:
    """Where a text occurs in the output of any task, newest first."""
    hits = []
    for hit in await at.task_queries.search(q, limit=limit):
        try:
            row = await at.task_queries.find(hit.task)
        except Rejected:  # pruned, and the index has not come so far yet
            continue
        hits.append(OutputHit(task=hit.task, title=row.title, at=row.started_at, snippet=hit.snippet))
    return answer(OutputHits(hits))


@router.post("/tasks/prune", **takes(PruneTasks, Pruned))
async def prune_tasks(at: GatewayDep, request: Request) -> Response:
    """Delete ended tasks with their output; without `confirm` only say what would go."""
    command, caller = await parse_command(request, PruneTasks, subject="")
    rule = Rule(
        older_than_ms=command.older_than_ms,
        larger_than=command.larger_than,
        keep_last=command.keep_last,
        state=command.state,
    )
    if command.confirm:
        gone = await at.pruning.prune(rule, by=caller.by, command=caller.key)
    else:
        gone = await at.pruning.preview(rule)
    views = await at.task_queries.views([task.row for task in gone[:SHOWN] if task.row is not None])
    shape = Pruned(pruned=command.confirm, count=len(gone), bytes=sum(task.bytes for task in gone), tasks=views)
    return answer(shape, status=202)


@router.get("/tasks/{id:task}", **returns(TaskView))
async def show_task(at: GatewayDep, row: TaskDep) -> Response:
    """One task."""
    return answer(await at.task_queries.view(row))


@router.get("/tasks/{id:task}/why", **returns(Why))
async def explain_task(at: GatewayDep, row: TaskDep) -> Response:
    """What it is doing or how it ended, on whose word, and how that is known."""
    return answer(Why(f"task {row.id}", await task_statements(at, await at.task_queries.view(row))))


async def task_statements(at: Gateway, view: TaskView) -> list[Statement]:
    """The sentences about one task."""
    stream = task_stream(view.id)
    word = ", ".join(filter(None, (view.activity, view.activity_detail))).replace(", on ", " on ")
    activity = f"{word} ({view.activity_evidence})" if word and view.activity != "unknown" else ""
    sentences = why_task(await at.store.load(stream, after=0), now=at.clock.now(), activity=activity)
    return [Statement(text=s.text, stream=stream, version=s.version, at=s.at) for s in sentences]


@router.get("/tasks/{id:task}/wait", **returns(TaskView))
async def wait_for_task(
    at: GatewayDep, row: TaskDep, seconds: Annotated[int, Query(ge=0, le=LONGEST_WAIT)] = 30
) -> Response:
    """The task when it has ended, or as it is after so many seconds."""
    with suppress(TimeoutError):  # then it is told as it is
        async with asyncio.timeout(seconds):
            await at.task_queries.wait_ended(row.id)
    return answer(await at.task_queries.view(await at.task_queries.find(row.id)))


@router.get("/tasks/{id:task}/output", **returns(OutputPage, media=("application/octet-stream",)))
async def task_output(
    at: GatewayDep,
    row: TaskDep,
    offset: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=64, le=OUTPUT_LIMIT)] = 65_536,
    tail: Annotated[int, Query(ge=0, le=100_000, description="Only so many last lines, instead of an offset.")] = 0,
    wait: Annotated[int, Query(ge=0, le=LONGEST_WAIT, description="Wait so many seconds for more.")] = 0,
    raw: Annotated[bool, Query(description="The bytes as they were written; what was dropped is left out.")] = False,
) -> Response:
    """A piece of the output: clean for a screen, or raw. Ask again from `next` on."""
    if tail:
        window = await at.task_queries.tail(row, lines=tail, limit=OUTPUT_LIMIT)
    else:
        window = await at.task_queries.wait_window(row, offset=offset, limit=limit, seconds=wait)
    before, row = row.state, await at.task_queries.find(row.id)
    over = row.state != "running"
    if over and before == "running" and not tail:  # what it wrote last may have come after that look
        window = await at.task_queries.window(row, offset=offset, limit=limit)
    if raw:
        headers = {
            "holdfast-next": str(window.next),
            "holdfast-size": str(window.size),
            "holdfast-state": row.state,
        }
        return Response(window.data, headers=headers, media_type="application/octet-stream")
    data = window.data if over and window.next >= window.size else whole(window.data) or window.data
    start = window.offset + window.dropped
    page = OutputPage(
        offset=window.offset,
        next=start + len(data),
        size=window.size,
        state=row.state,
        dropped=Dropped(window.offset, start) if window.dropped else None,
        text=await asyncio.to_thread(coloured, data) if len(data) > BESIDE else coloured(data),
    )
    return answer(page)


@router.post("/tasks/{id:task}/stop", **takes(StopTask, TaskAccepted))
async def stop_task(at: GatewayDep, row: TaskDep, request: Request) -> Response:
    """End it: ask, then force."""
    command, caller = await parse_command(request, StopTask, subject=row.id)
    known = await at.store.find_command(caller.key)
    if known is not None:
        return accepted(row.id, known, session=row.worker)
    reason = "by force" if command.force else ""
    appended = await at.task_queries.stop(row, by=caller.by, reason=reason, force=command.force, command=caller.key)
    return accepted(row.id, appended, session=row.worker)


@router.post("/tasks/{id:task}/write", **takes(WriteTask, Taken))
async def write_task(at: GatewayDep, row: TaskDep, request: Request) -> Response:
    """Type something into its input, once: a retry under the same id gets the first answer.

    What is typed is not written down, so a gateway that was killed in between does not know of it any more.
    """
    command, caller = await parse_command(request, WriteTask, subject=row.id)
    return answer(await at.typed.once(caller.key, lambda: _type(at, row.id, command)), status=202)


async def _type(at: Gateway, task: str, command: WriteTask) -> Taken:
    data = command.text.encode()
    taken = await at.tasks.supervisor.write(task, data) if data else 0
    if command.close:
        at.tasks.supervisor.close_stdin(task)
    return Taken(bytes=taken, of=len(data))


@router.post("/tasks/{id:task}/pin", **takes(PinTask, TaskAccepted))
async def pin_task(at: GatewayDep, row: TaskDep, request: Request) -> Response:
    """Keep it whatever is pruned, or not any more."""
    command, caller = await parse_command(request, PinTask, subject=row.id)
    appended = await at.tasks.task_log.pin(row.id, pinned=command.pinned, by=caller.by, command=caller.key)
    return accepted(row.id, appended)
