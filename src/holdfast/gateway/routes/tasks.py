"""Tasks: list, read and search output, wait, send input, stop, pin, prune."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from holdfast.domain.errors import Rejected
from holdfast.domain.events import task_stream
from holdfast.domain.events.task import TaskFinished
from holdfast.domain.task_commands import (
    PinTask,
    PruneTasks,
    SetTaskTell,
    StopTask,
    WriteTask,
)
from holdfast.domain.why import why_task
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import (
    QueryShape,
    find_session,
    parse_command,
    parse_query,
    task_of,
)
from holdfast.gateway.responses import accepted, json_response
from holdfast.gateway.routes.sessions import CURSOR, PageLimit, SearchQuery
from holdfast.gateway.state import Gateway, gateway_of
from holdfast.schemas.changes import FileChanges
from holdfast.schemas.gateway import Statement, Why
from holdfast.schemas.tasks import (
    OutputGap,
    OutputHit,
    OutputHits,
    OutputMatches,
    OutputPage,
    PruneResult,
    TaskAccepted,
    TaskPage,
    TaskView,
    WriteResult,
)
from holdfast.store.reads import SessionCursor, TaskFilter
from holdfast.store.rows import TaskRow
from holdfast.tasks.changes import task_changes
from holdfast.tasks.output_search import OutputSearch
from holdfast.tasks.plain_text import coloured, whole
from holdfast.tasks.prune import SHOWN, Rule

LONGEST_WAIT = 60
OUTPUT_LIMIT = 1 << 20
BESIDE = 1 << 14
"""More bytes than this are cleaned in a thread, so that the event loop stays free."""
routes = Routes("tasks")


class TaskListQuery(QueryShape, frozen=True):
    """Which tasks."""

    kind: Literal["", "process", "agent", "card"] = ""
    state: Literal["", "running", "done", "failed", "stopped", "lost"] = ""
    text: Annotated[str, Meta(max_length=500, description="A text in the title, the command or the summary.")] = ""
    since: Annotated[int, Meta(ge=0, le=2**62, description="Started at this time or later.")] = 0
    ended: Annotated[int, Meta(ge=0, le=2**62, description="Ended at this time or later.")] = 0
    all: Annotated[bool, Meta(description="Include commands that a turn waited for.")] = False
    session: Annotated[str, Meta(max_length=32)] = ""
    limit: PageLimit = 50
    before: Annotated[str, Meta(pattern=CURSOR, description="`next` of the previous page.")] = ""


@routes.get("/v1/tasks", TaskPage, query=TaskListQuery)
async def list_tasks(request: Request) -> Response:
    """List tasks, newest first."""
    gateway, query = gateway_of(request), parse_query(request, TaskListQuery)
    at_ms, _, id = query.before.partition("-")
    cursor = SessionCursor(int(at_ms), id) if query.before else SessionCursor()
    wanted = TaskFilter(
        kind=query.kind,
        state=query.state,
        text=query.text,
        since=query.since,
        ended=query.ended,
        foreground=query.all,
        session=(await find_session(gateway, query.session)).id if query.session else "",
    )
    views = await gateway.task_queries.page(wanted, before=cursor, limit=query.limit)
    following = f"{views[-1].started_at}-{views[-1].id}" if len(views) == query.limit else None
    return json_response(TaskPage(views, following))


@routes.get("/v1/tasks/stale", TaskPage)
async def list_stale(request: Request) -> Response:
    """List running tasks that are no longer needed, each with the reason."""
    gateway = gateway_of(request)
    return json_response(TaskPage([view for view in await gateway.task_queries.running() if view.stale], None))


@routes.get("/v1/tasks/search", OutputHits, query=SearchQuery)
async def search_outputs(request: Request) -> Response:
    """Search the outputs of all tasks, newest results first."""
    gateway = gateway_of(request)
    query = parse_query(request, SearchQuery)
    hits = []
    for hit in await gateway.task_queries.search(query.q, limit=query.limit):
        try:
            row = await gateway.task_queries.find(hit.task)
        except Rejected:  # pruned, and the index is not up to date yet
            continue
        hits.append(OutputHit(task=hit.task, title=row.title, at=row.started_at, snippet=hit.snippet))
    return json_response(OutputHits(hits))


@routes.command("/v1/tasks/prune", PruneTasks, PruneResult)
async def prune_tasks(request: Request) -> Response:
    """Delete ended tasks with their output; without `confirm`, only list them."""
    gateway = gateway_of(request)
    command, caller = await parse_command(request, PruneTasks, subject="")
    rule = Rule(
        older_than_ms=command.older_than_ms,
        larger_than=command.larger_than,
        keep_last=command.keep_last,
        state=command.state,
    )
    if command.confirm:
        gone = await gateway.pruning.prune(rule, by=caller.by, command=caller.key)
    else:
        gone = await gateway.pruning.preview(rule)
    views = await gateway.task_queries.views([task.row for task in gone[:SHOWN] if task.row is not None])
    shape = PruneResult(pruned=command.confirm, count=len(gone), bytes=sum(task.bytes for task in gone), tasks=views)
    return json_response(shape, status=202)


@routes.get("/v1/tasks/{id:task}", TaskView)
async def show_task(request: Request) -> Response:
    """Show a task."""
    gateway = gateway_of(request)
    row = await task_of(request)
    return json_response(await gateway.task_queries.view(row))


@routes.get("/v1/tasks/{id:task}/why", Why)
async def explain_task(request: Request) -> Response:
    """Explain what a task is doing or how it ended, at whose request, and how that is known."""
    gateway = gateway_of(request)
    row = await task_of(request)
    return json_response(Why(f"task {row.id}", await task_statements(gateway, await gateway.task_queries.view(row))))


async def task_statements(gateway: Gateway, view: TaskView) -> list[Statement]:
    """Return the explanation of a task."""
    stream = task_stream(view.id)
    word = ", ".join(filter(None, (view.activity, view.activity_detail))).replace(", on ", " on ")
    activity = f"{word} ({view.activity_evidence})" if word and view.activity != "unknown" else ""
    records, away = await gateway.store.load(stream, after=0), view.reason if view.state == "unknown" else ""
    sentences = why_task(records, now=gateway.clock.now(), activity=activity, away=away)
    return [Statement(text=s.text, stream=stream, version=s.version, at=s.at) for s in sentences]


@routes.get("/v1/tasks/{id:task}/diff", FileChanges)
async def task_diff(request: Request) -> Response:
    """Show how the files that a task changed differ from the commit at which it began, as they are now."""
    gateway = gateway_of(request)
    row = await task_of(request)
    events = [record.event for record in await gateway.store.load(task_stream(row.id), after=0)]
    base = next((event.base_commit for event in reversed(events) if isinstance(event, TaskFinished)), "")
    found = await gateway.cards.mounts.run_within(None, lambda: task_changes(row, base_commit=base))
    return json_response(msgspec.convert(found, FileChanges, from_attributes=True))


class WaitQuery(QueryShape, frozen=True):
    """The longest wait."""

    seconds: Annotated[int, Meta(ge=0, le=LONGEST_WAIT)] = 30


@routes.get("/v1/tasks/{id:task}/wait", TaskView, query=WaitQuery)
async def wait_for_task(request: Request) -> Response:
    """Wait until a task has ended, at most this many seconds, and show it."""
    gateway = gateway_of(request)
    row = await task_of(request)
    query = parse_query(request, WaitQuery)
    with suppress(TimeoutError):  # then it is shown as it is
        async with asyncio.timeout(query.seconds):
            await gateway.task_queries.wait_ended(row.id)
    return json_response(await gateway.task_queries.view(await gateway.task_queries.find(row.id)))


class OutputQuery(QueryShape, frozen=True):
    """Which part of the output, and in which form."""

    offset: Annotated[int, Meta(ge=0, le=2**62)] = 0
    limit: Annotated[int, Meta(ge=64, le=OUTPUT_LIMIT)] = 65_536
    tail: Annotated[int, Meta(ge=0, le=100_000, description="Only this many last lines, instead of an offset.")] = 0
    wait: Annotated[int, Meta(ge=0, le=LONGEST_WAIT, description="Wait up to this many seconds for more output.")] = 0
    raw: Annotated[bool, Meta(description="The bytes as written, without those that were dropped.")] = False


@routes.get("/v1/tasks/{id:task}/output", OutputPage, query=OutputQuery, media=("application/octet-stream",))
async def task_output(request: Request) -> Response:
    """Read output, without control characters or raw. Continue at `next`."""
    gateway = gateway_of(request)
    row = await task_of(request)
    query = parse_query(request, OutputQuery)
    if query.tail:
        window = await gateway.task_queries.tail(row, lines=query.tail, limit=OUTPUT_LIMIT)
    else:
        window = await gateway.task_queries.wait_window(row, offset=query.offset, limit=query.limit, seconds=query.wait)
    before, row = row.state, await gateway.task_queries.find(row.id)
    over = row.state != "running"
    if over and before == "running" and not query.tail:  # its last output may have come after the read
        window = await gateway.task_queries.window(row, offset=query.offset, limit=query.limit)
    state = await gateway.task_queries.shown_state(row)
    if query.raw:
        headers = {
            "holdfast-next": str(window.next),
            "holdfast-size": str(window.size),
            "holdfast-state": state,
        }
        return Response(window.data, headers=headers, media_type="application/octet-stream")
    data = window.data if over and window.next >= window.size else whole(window.data) or window.data
    start = window.offset + window.dropped
    page = OutputPage(
        offset=window.offset,
        next=start + len(data),
        size=window.size,
        state=state,
        dropped=OutputGap(window.offset, start) if window.dropped else None,
        text=await asyncio.to_thread(coloured, data) if len(data) > BESIDE else coloured(data),
    )
    return json_response(page)


class OutputSearchQuery(QueryShape, frozen=True):
    """What to search for in an output, and from where on."""

    q: Annotated[str, Meta(min_length=1, max_length=200, description="A text within one line, in either case.")]
    offset: Annotated[int, Meta(ge=0, le=2**62, description="`next` of the previous page.")] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    context: Annotated[int, Meta(ge=0, le=2000, description="Bytes of the line on either side of a match.")] = 200


@routes.get("/v1/tasks/{id:task}/output/search", OutputMatches, query=OutputSearchQuery)
async def search_output(request: Request) -> Response:
    """Search all of the output of one task. Continue at `next` while there is `more`."""
    gateway = gateway_of(request)
    row = await task_of(request)
    query = parse_query(request, OutputSearchQuery)
    if "\n" in query.q:
        raise Rejected("query.q: A text is found within one line, so it cannot have a line break.")
    search = OutputSearch(query.q, offset=query.offset, context=query.context)
    found = await gateway.task_queries.search_output(row, search, limit=query.limit, cancelled=request.is_disconnected)
    return json_response(found)


@routes.command("/v1/tasks/{id:task}/stop", StopTask, TaskAccepted)
async def stop_task(request: Request) -> Response:
    """Stop a task: first ask it to end, then kill it."""
    gateway = gateway_of(request)
    row = await task_of(request)
    command, caller = await parse_command(request, StopTask, subject=row.id)
    known = await gateway.store.find_command(caller.key)
    if known is not None:
        return accepted(TaskAccepted, known)
    reason, key = "by force" if command.force else "", caller.replying(task=row.id, session=row.worker).key
    appended = await gateway.task_queries.stop(row, by=caller.by, reason=reason, force=command.force, command=key)
    return accepted(TaskAccepted, appended)


@routes.command("/v1/tasks/{id:task}/write", WriteTask, WriteResult)
async def write_task(request: Request) -> Response:
    """Send input to a command, once: a retry with the same id gets the first response.

    Input is not stored, so a gateway that was killed in between does not recognise the retry.
    """
    gateway = gateway_of(request)
    row = await task_of(request)
    command, caller = await parse_command(request, WriteTask, subject=row.id)
    return json_response(await gateway.typed.once(caller.key, lambda: _type(gateway, row, command)), status=202)


async def _type(gateway: Gateway, row: TaskRow, command: WriteTask) -> WriteResult:
    data = command.text.encode()
    taken = await gateway.task_queries.write(row, data, close=command.close)
    return WriteResult(bytes=taken, of=len(data))


@routes.command("/v1/tasks/{id:task}/pin", PinTask, TaskAccepted)
async def pin_task(request: Request) -> Response:
    """Pin a task so that it is never pruned, or unpin it."""
    gateway = gateway_of(request)
    row = await task_of(request)
    command, caller = await parse_command(request, PinTask, subject=row.id)
    appended = await gateway.tasks.task_log.pin(row.id, pinned=command.pinned, by=caller.by, command=caller.key)
    return accepted(TaskAccepted, appended)


@routes.command("/v1/tasks/{id:task}/tell", SetTaskTell, TaskAccepted)
async def set_task_tell(request: Request) -> Response:
    """Choose whether people are notified of the end of a task."""
    gateway = gateway_of(request)
    row = await task_of(request)
    command, caller = await parse_command(request, SetTaskTell, subject=row.id)
    appended = await gateway.tasks.task_log.set_notify(row, command.tell, by=caller.by, command=caller.key)
    return accepted(TaskAccepted, appended)
