"""Sessions: create, send, stop, rename, archive, delete, show, search, and the queue of messages."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from holdfast.board.cards import COMMENT
from holdfast.domain.commands import (
    ArchiveSession,
    ChooseAgent,
    ChooseMode,
    CommentCard,
    CreateSession,
    DeleteSession,
    DismissFailure,
    ForkSession,
    PinSession,
    RenameSession,
    RepeatTurn,
    RestoreSession,
    ReviseInput,
    SendMessage,
    SessionCommand,
    SetSessionTell,
    StopTurn,
    UndoTurn,
    WithdrawInput,
)
from holdfast.domain.errors import Conflict, Rejected
from holdfast.domain.events import session_stream
from holdfast.domain.rights import mode_in_force
from holdfast.domain.session import Session
from holdfast.domain.session_rules import not_steered_reason
from holdfast.domain.why import why, why_chapter
from holdfast.gateway.export import as_jsonl, as_markdown
from holdfast.gateway.openapi import Handler, Routes
from holdfast.gateway.requests import (
    QueryShape,
    caller_of,
    check_profile,
    find_session,
    may_run_here,
    parse_body,
    parse_command,
    parse_query,
    session_of,
    working_directory,
)
from holdfast.gateway.responses import accepted, json_response
from holdfast.gateway.routes.nodes import node_statements
from holdfast.gateway.state import Gateway, device_of, gateway_of
from holdfast.schemas.gateway import Statement, Why
from holdfast.schemas.sessions import (
    Accepted,
    QueuedMessage,
    QueueEdit,
    SearchHit,
    SearchPage,
    SessionDetail,
    SessionKind,
    SessionPage,
    SessionView,
    TurnView,
    Unread,
    UnreadCount,
)
from holdfast.store.reads import SessionCursor
from holdfast.store.rows import SessionRow

CURSOR = r"^(\d{1,18}-[0-9a-f]{1,32})?$"
PINNED_CURSOR = CURSOR.replace("(", "(p?", 1)
PageLimit = Annotated[int, Meta(ge=1, le=500)]
routes = Routes("sessions")


async def shown(gateway: Gateway, rows: list[SessionRow], request: Request) -> list[SessionView]:
    """Return sessions as the API shows them, with what the calling device has not read."""
    device = device_of(request)
    ids = [row.id for row in rows]
    unread = await gateway.store.devices.unread(device, ids) if device else {}
    workers, hosts = await gateway.store.cards_of_sessions(ids), await gateway.nodes.hosts(ids)

    def shape(row: SessionRow) -> SessionView:
        kind: SessionKind = "worker" if row.id in workers else "background" if row.task else "mine"
        view = msgspec.convert(row, SessionView, from_attributes=True)
        return msgspec.structs.replace(view, unread=unread.get(row.id, 0), kind=kind, host=hosts.get(row.id, ""))

    return [shape(row) for row in rows]


def passed_on(command: type[SessionCommand]) -> Handler:
    """Return a handler that carries out a command about a session."""

    async def handler(request: Request) -> Response:
        row = await session_of(request)
        given, caller = await parse_command(request, command, subject=row.id)
        return accepted(Accepted, await gateway_of(request).sessions.execute(row.id, given, caller))

    return handler


for path, command in (
    ("stop", StopTurn),
    ("undo", UndoTurn),
    ("dismiss", DismissFailure),
    ("restore", RestoreSession),
    ("pin", PinSession),
    ("tell", SetSessionTell),
    ("mode", ChooseMode),
):
    routes.add_command(f"/v1/sessions/{{id}}/{path}", command, passed_on(command))
routes.add_command("/v1/sessions/{id}", RenameSession, passed_on(RenameSession), method="PATCH")


@routes.command("/v1/sessions", CreateSession)
async def create_session(request: Request) -> Response:
    """Create a session, with its first message if there is a text."""
    gateway = gateway_of(request)
    command, caller = await parse_command(request, CreateSession, subject="")
    profile = command.profile or gateway.profiles.default
    check_profile(gateway, profile)
    if command.model:
        gateway.models.check(command.model)
    here = await may_run_here(gateway, profile, command.node)
    cwd = await working_directory(gateway, command.cwd, here=here)
    if command.text is not None:
        caller = caller.replying(input=caller.key.id)
    driver = gateway.profiles.driver(profile)
    appended = await gateway.sessions.create(
        command, session=secrets.token_hex(8), profile=profile, driver=driver, cwd=cwd, caller=caller, here=here
    )
    return accepted(Accepted, appended)


class SessionListQuery(QueryShape, frozen=True):
    """Which sessions."""

    archived: bool = False
    limit: PageLimit = 50
    before: Annotated[str, Meta(pattern=PINNED_CURSOR, description="`next` of the previous page.")] = ""
    text: Annotated[str, Meta(max_length=500, description="A text in the title.")] = ""
    kind: Annotated[
        Literal["", "mine", "worker", "background"],
        Meta(description="Sessions of a person, of workers on the board, or of agents in the background."),
    ] = ""
    at_work: Annotated[bool, Meta(description="All sessions that are not idle; other parameters are ignored.")] = False
    cwd: Annotated[
        str, Meta(max_length=4096, description="Sessions of this directory without workers of cards, newest first.")
    ] = ""


@routes.get("/v1/sessions", SessionPage, query=SessionListQuery)
async def list_sessions(request: Request) -> Response:
    """List sessions, pinned ones first, then newest first."""
    gateway, query = gateway_of(request), parse_query(request, SessionListQuery)
    if query.cwd:
        found = await gateway.store.sessions_in(query.cwd, limit=query.limit)
        return json_response(SessionPage(await shown(gateway, found, request), None))
    if query.at_work:
        found = await gateway.store.unfinished_sessions()
        return json_response(SessionPage(await shown(gateway, found, request), None))
    at_ms, _, id = query.before.removeprefix("p").partition("-")
    cursor = SessionCursor(int(at_ms), id, pinned=query.before.startswith("p")) if query.before else SessionCursor()
    rows = await gateway.store.sessions(
        archived=query.archived, before=cursor, limit=query.limit, text=query.text, kind=query.kind
    )
    following = None
    if len(rows) == query.limit:
        last = rows[-1]
        following = f"{'p' if last.pinned else ''}{last.updated_at}-{last.id}"
    return json_response(SessionPage(await shown(gateway, rows, request), following))


@routes.get("/v1/unread", Unread)
async def unread(request: Request) -> Response:
    """Count what this device has not read in the sessions of the list."""
    gateway, device = gateway_of(request), device_of(request)
    found = await gateway.store.devices.all_unread(device) if device else {}
    return json_response(Unread(**{kind: UnreadCount(*counts) for kind, counts in found.items()}))


@routes.get("/v1/sessions/{id}", SessionDetail)
async def show_session(request: Request) -> Response:
    """Show a session with its turns and its queue."""
    gateway = gateway_of(request)
    row = await session_of(request)
    turns = [msgspec.convert(turn, TurnView, from_attributes=True) for turn in await gateway.store.turns(row.id)]
    state = await gateway.sessions.get(row.id)
    queue = [
        QueuedMessage(
            version=q.received.version,
            input=q.event.input,
            text=q.event.text,
            mode=q.event.mode,
            by=str(q.event.by),
            source=q.event.source,
            at=q.received.at,
        )
        for q in state.queue
    ]
    (own,) = await shown(gateway, [row], request)
    inherited = mode_in_force("profile", state.rights)
    return json_response(
        SessionDetail(own, turns, queue, mode=state.mode_in_force, inherited_mode=inherited, node=state.node)
    )


@routes.command("/v1/sessions/{id}/messages", SendMessage)
async def send_message(request: Request) -> Response:
    """Send a message. During a turn it waits, joins or interrupts; for a card's worker it becomes a comment."""
    gateway = gateway_of(request)
    row = await session_of(request)
    command, caller = await parse_command(request, SendMessage, subject=row.id)
    while (run := await gateway.store.cards.open_run_of(row.id)) is None:
        try:
            said = caller.replying(session=row.id, input=caller.key.id)
            appended = await gateway.sessions.execute(row.id, command, said)
            warning = "" if command.mode != "steer" else not_steered_reason(await gateway.sessions.get(row.id))
            return accepted(Accepted, appended, warning=warning)
        except Conflict:
            if not (await gateway.sessions.get(row.id)).run:
                raise  # otherwise a run has just begun
    commented = caller.replying(session=row.id, input=COMMENT + caller.key.id)
    return accepted(Accepted, await gateway.cards.execute(run.card, CommentCard(text=command.text), commented))


@routes.command("/v1/sessions/{id}/repeat", RepeatTurn)
async def repeat_turn(request: Request) -> Response:
    """Undo a turn (by default the last one) and all later ones, and send its messages again, or another text."""
    row = await session_of(request)
    command, caller = await parse_command(request, RepeatTurn, subject=row.id)
    said = caller.replying(session=row.id, input=caller.key.id)
    return accepted(Accepted, await gateway_of(request).sessions.execute(row.id, command, said))


@routes.command("/v1/sessions/{id}/agent", ChooseAgent)
async def choose_agent(request: Request) -> Response:
    """Continue with another profile or model."""
    gateway = gateway_of(request)
    row = await session_of(request)
    command, caller = await parse_command(request, ChooseAgent, subject=row.id)
    if command.profile is not None:
        check_profile(gateway, command.profile)
        _check_driver(await gateway.sessions.get(row.id), gateway.profiles.driver(command.profile))
    if command.model:
        gateway.models.check(command.model)
    appended = await gateway.sessions.execute(row.id, command, caller)
    return accepted(Accepted, appended)


def _check_driver(session: Session, driver: str) -> None:
    """Refuse an agent of another kind: it would know nothing of the conversation."""
    if session.driver != driver:
        raise Conflict(
            f"This session was begun with another kind of agent ({session.driver}, not {driver}).",
            hint="Start a new session with that profile.",
        )


@routes.command("/v1/sessions/{id}/fork", ForkSession)
async def fork_session(request: Request) -> Response:
    """Create a session with everything up to a version of this one."""
    gateway = gateway_of(request)
    row = await session_of(request)
    command, caller = await parse_command(request, ForkSession, subject=row.id)
    appended = await gateway.sessions.fork(row.id, command, session=secrets.token_hex(8), caller=caller)
    return accepted(Accepted, appended)


@routes.command("/v1/sessions/{id}/archive", ArchiveSession)
async def archive_session(request: Request) -> Response:
    """Hide a session from the list. While tasks run, the command must say whether to keep or stop them."""
    gateway = gateway_of(request)
    row = await session_of(request)
    command, caller = await parse_command(request, ArchiveSession, subject=row.id)
    what_runs = partial(
        gateway.running_tasks.chosen_writes, row.id, command.running, by=caller.by, what="its session was archived"
    )
    appended = await gateway.sessions.execute(row.id, command, caller, also=what_runs)
    gateway.running_tasks.signal(appended.records)
    return accepted(Accepted, appended)


@routes.command("/v1/sessions/{id}", DeleteSession, method="DELETE")
async def delete_session(request: Request) -> Response:
    """Delete an idle session with all its events. While tasks run, the command must say what happens to them."""
    gateway = gateway_of(request)
    id = request.path_params["id"]
    command, caller = await parse_command(request, DeleteSession, subject=id)
    known = await gateway.store.find_command(caller.key)
    if known is not None:  # a retry: the session no longer exists
        return accepted(Accepted, known)
    session = (await find_session(gateway, id)).id
    what_runs = partial(
        gateway.running_tasks.chosen_writes, session, command.running, by=caller.by, what="its session was deleted"
    )
    appended = await gateway.sessions.delete(session, caller.replying(session=session), also=what_runs)
    gateway.running_tasks.signal(appended.records)
    return accepted(Accepted, appended)


@routes.get("/v1/sessions/{id}/why", Why)
async def why_session(request: Request) -> Response:
    """Explain what a session is doing or waiting for, and for how long."""
    gateway = gateway_of(request)
    row = await session_of(request)
    return json_response(Why(f"session {row.id}", await statements(gateway, row.id)))


async def statements(gateway: Gateway, session: str) -> list[Statement]:
    """Return the explanation of a session."""
    state, now = await gateway.sessions.get(session), gateway.clock.now()
    stream = session_stream(session)
    sentences = why(state, arrived=gateway.streaming.arrived(stream), now=now)
    sentences += why_chapter(state, gateway.reset_scheduler.outlook(state), now=now)
    shown = [Statement(text=s.text, stream=stream, version=s.version, at=s.at) for s in sentences]
    if (trouble := gateway.runner.last_failure(session)) is not None:
        text = f"Its worker ended: {trouble.reason.rstrip('.')}. Another one starts {trouble.pause:g} s after that."
        shown.insert(0, Statement(text=text, stream=stream, version=state.version, at=trouble.at))
    return [*shown, *await node_statements(gateway, state)]


class ExportQuery(QueryShape, frozen=True):
    """The format."""

    format: Literal["markdown", "jsonl"] = "markdown"


@routes.get("/v1/sessions/{id}/export", None, query=ExportQuery, media=("text/markdown", "application/jsonl"))
async def export_session(request: Request) -> Response:
    """Export the conversation as a file."""
    gateway = gateway_of(request)
    row = await session_of(request)
    query = parse_query(request, ExportQuery)
    if query.format == "jsonl":
        return as_jsonl(gateway.store, row.id)
    return as_markdown(gateway.store, row.id, title=row.title)


class SearchQuery(QueryShape, frozen=True):
    """The search text."""

    q: Annotated[str, Meta(min_length=1, max_length=500)]
    limit: PageLimit = 50


@routes.get("/v1/search", SearchPage, query=SearchQuery)
async def search(request: Request) -> Response:
    """Search all sessions, newest results first."""
    gateway = gateway_of(request)
    query = parse_query(request, SearchQuery)
    hits = await gateway.store.search(query.q, limit=query.limit)
    titles: dict[str, str] = {}
    for hit in hits:
        if hit.session not in titles:
            try:
                titles[hit.session] = (await gateway.store.session(hit.session)).title
            except Rejected:  # deleted, and the index is not up to date yet
                continue
    shown = [
        SearchHit(
            session=hit.session,
            title=titles[hit.session],
            version=hit.version,
            at=hit.at,
            role=hit.role,
            snippet=hit.snippet,
        )
        for hit in hits
        if hit.session in titles
    ]
    return json_response(SearchPage(shown))


@routes.command("/v1/sessions/{id}/queue/{input}", QueueEdit, method="PATCH")
async def revise_input(request: Request) -> Response:
    """Change the text, mode or place of a queued message; 409 once a turn has taken it."""
    row, input = await session_of(request), request.path_params["input"]
    edit = await parse_body(request, QueueEdit)
    return await _execute(row.id, request, ReviseInput(input=input, text=edit.text, mode=edit.mode, place=edit.place))


@routes.command("/v1/sessions/{id}/queue/{input}", None, method="DELETE")
async def withdraw_input(request: Request) -> Response:
    """Withdraw a queued message; 409 once a turn has taken it."""
    row, input = await session_of(request), request.path_params["input"]
    return await _execute(row.id, request, WithdrawInput(input=input))


async def _execute(session: str, request: Request, command: ReviseInput | WithdrawInput) -> Response:
    caller = caller_of(request, command, subject=session)
    return accepted(Accepted, await gateway_of(request).sessions.execute(session, command, caller))
