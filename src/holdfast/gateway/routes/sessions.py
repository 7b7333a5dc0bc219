"""Sessions: begin, say, stop, rename, archive, delete, look."""

from __future__ import annotations

import asyncio
import secrets
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from holdfast.board.cards import COMMENT
from holdfast.domain.card_commands import CommentCard
from holdfast.domain.commands import (
    ArchiveSession,
    ChooseAgent,
    CreateSession,
    DeleteSession,
    DismissFailure,
    ForkSession,
    PinSession,
    RenameSession,
    RestoreSession,
    SendMessage,
    SessionCommand,
    StopTurn,
    UndoTurn,
)
from holdfast.domain.errors import Conflict, Rejected
from holdfast.domain.events import decode, session_stream
from holdfast.domain.events.system import SessionDeleted
from holdfast.domain.why.chapter import why_chapter
from holdfast.domain.why.session import why
from holdfast.gateway.answers import answer
from holdfast.gateway.context import context
from holdfast.gateway.contract import parse_command, returns, takes
from holdfast.gateway.export import as_jsonl, as_markdown
from holdfast.gateway.paths import SessionDep, find_session
from holdfast.gateway.shapes import (
    Accepted,
    ModelContext,
    Queued,
    SearchHit,
    SearchPage,
    Session,
    SessionDetail,
    SessionPage,
    Statement,
    Turn,
    Why,
)
from holdfast.gateway.state import Gateway, GatewayDep, device_of
from holdfast.sessions import Caller
from holdfast.store.contract import Appended, SessionCursor
from holdfast.store.rows import SessionRow

CURSOR = r"^(\d{1,18}-[0-9a-f]{1,32})?$"
PINNED_CURSOR = CURSOR.replace("(", "(p?", 1)
router = APIRouter(prefix="/v1", tags=["sessions"])


async def shown(at: Gateway, rows: list[SessionRow], request: Request) -> list[Session]:
    """Rows as their wire shape, with what the device that asks has not read."""
    device = device_of(request)
    unread = await at.store.devices.unread(device, [row.id for row in rows]) if device else {}
    shapes = [msgspec.convert(row, Session, from_attributes=True) for row in rows]
    return [msgspec.structs.replace(one, unread=unread[one.id]) if unread.get(one.id) else one for one in shapes]


def accepted(session: str, appended: Appended, caller: Caller, *, message: bool, warning: str = "") -> Response:
    """202: it is on disk. A message has an id; whether it became a comment says the stream that it is in, also to a
    retry that comes when no run works there any more.
    """
    prefix = COMMENT if appended.stream.startswith("card/") else ""
    shape = Accepted(
        session=session,
        stream=appended.stream,
        version=appended.version,
        seq=appended.seq,
        input=prefix + caller.key.id if message else None,
        duplicate=appended.duplicate,
        warning=warning,
    )
    return answer(shape, status=202)


async def tell(at: Gateway, session: str, request: Request, shape: type[SessionCommand]) -> Response:
    """Any command to a session."""
    command, caller = await parse_command(request, shape, subject=session)
    appended = await at.sessions.execute(session, command, caller)
    return accepted(session, appended, caller, message=isinstance(command, SendMessage))


@router.post("/sessions", **takes(CreateSession))
async def create_session(at: GatewayDep, request: Request) -> Response:
    """Begin a session, at once with its first message if there is a text."""
    command, caller = await parse_command(request, CreateSession, subject="")
    profile = command.profile or at.profiles.default
    if profile not in at.profiles.names:
        raise Rejected(f"There is no profile {profile!r}.", hint=f"There is: {', '.join(at.profiles.names)}.")
    cwd = Path(command.cwd) if command.cwd is not None else Path.home()
    if not is_directory(cwd):
        raise Rejected(f"cwd {str(cwd)!r} is not the absolute path of a directory.")
    appended = await at.sessions.create(
        command, session=secrets.token_hex(8), profile=profile, cwd=str(cwd), caller=caller
    )
    session = appended.stream.removeprefix("session/")
    return accepted(session, appended, caller, message=command.text is not None)


def is_directory(path: Path) -> bool:
    """Whether it is one, by its absolute path."""
    try:
        return path.is_absolute() and path.is_dir()
    except OSError:  # too long, or in a place that is not ours to see
        return False


@router.get("/sessions", **returns(SessionPage))
async def list_sessions(  # noqa: PLR0913, PLR0917 (one for each parameter of the query)
    at: GatewayDep,
    request: Request,
    archived: bool = False,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    before: Annotated[str, Query(pattern=PINNED_CURSOR, description="`next` of the page before.")] = "",
    text: Annotated[str, Query(max_length=500, description="In the title.")] = "",
    at_work: Annotated[bool, Query(description="All that are not at rest, and nothing else counts.")] = False,
    cwd: Annotated[
        str, Query(max_length=4096, description="Those of this directory without workers of cards, newest first.")
    ] = "",
) -> Response:
    """A page of the list, pinned ones first, then newest first."""
    if cwd:
        return answer(SessionPage(await shown(at, await at.store.sessions_in(cwd, limit=limit), request), None))
    if at_work:
        return answer(SessionPage(await shown(at, await at.store.unfinished_sessions(), request), None))
    at_ms, _, id = before.removeprefix("p").partition("-")
    cursor = SessionCursor(int(at_ms), id, pinned=before.startswith("p")) if before else SessionCursor()
    rows = await at.store.sessions(archived=archived, before=cursor, limit=limit, text=text)
    following = None
    if len(rows) == limit:
        last = rows[-1]
        following = f"{'p' if last.pinned else ''}{last.updated_at}-{last.id}"
    return answer(SessionPage(await shown(at, rows, request), following))


@router.get("/sessions/{id}", **returns(SessionDetail))
async def show_session(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """One session with its turns and its queue."""
    turns = [msgspec.convert(turn, Turn, from_attributes=True) for turn in await at.store.turns(row.id)]
    state = await at.sessions.get(row.id)
    queue = [
        Queued(
            input=q.event.input,
            text=q.event.text,
            mode=q.event.mode,
            by=str(q.event.by),
            source=q.event.source,
            at=q.received.at,
        )
        for q in state.queue
    ]
    (own,) = await shown(at, [row], request)
    return answer(SessionDetail(own, turns, queue))


@router.patch("/sessions/{id}", **takes(RenameSession))
async def rename_session(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """Give it another title."""
    return await tell(at, row.id, request, RenameSession)


@router.post("/sessions/{id}/messages", **takes(SendMessage))
async def send_message(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """Say something; while a turn runs it waits, joins or interrupts. To a card's worker it is a comment."""
    command, caller = await parse_command(request, SendMessage, subject=row.id)
    while (run := await at.store.cards.run_of(row.id)) is None:
        try:
            return accepted(row.id, await at.sessions.execute(row.id, command, caller), caller, message=True)
        except Conflict:
            if not (await at.sessions.get(row.id)).run:
                raise  # else a run began in this very moment
    return accepted(
        row.id, await at.cards.execute(run.card, CommentCard(text=command.text), caller), caller, message=True
    )


@router.post("/sessions/{id}/stop", **takes(StopTurn))
async def stop_turn(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """End the running turn; queued messages stay."""
    return await tell(at, row.id, request, StopTurn)


@router.post("/sessions/{id}/agent", **takes(ChooseAgent))
async def choose_agent(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """Go on with another profile or model."""
    command, caller = await parse_command(request, ChooseAgent, subject=row.id)
    if command.profile is not None and command.profile not in at.profiles.names:
        raise Rejected(f"There is no profile {command.profile!r}.", hint=f"There is: {', '.join(at.profiles.names)}.")
    if command.model:
        at.profiles.check_model(command.model)
    appended = await at.sessions.execute(row.id, command, caller)
    return accepted(row.id, appended, caller, message=False)


@router.post("/sessions/{id}/undo", **takes(UndoTurn))
async def undo_turn(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """Take the last turn out of what the model sees; it stays in the log."""
    return await tell(at, row.id, request, UndoTurn)


@router.post("/sessions/{id}/dismiss", **takes(DismissFailure))
async def dismiss_failure(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """Take the failed turn of a session out of the inbox."""
    return await tell(at, row.id, request, DismissFailure)


@router.post("/sessions/{id}/fork", **takes(ForkSession))
async def fork_session(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """Begin a new session with everything up to a version of this one."""
    command, caller = await parse_command(request, ForkSession, subject=row.id)
    appended = await at.sessions.fork(row.id, command, session=secrets.token_hex(8), caller=caller)
    return accepted(appended.stream.removeprefix("session/"), appended, caller, message=False)


@router.get("/sessions/{id}/context", **returns(ModelContext))
async def session_context(
    at: GatewayDep,
    row: SessionDep,
    texts: Annotated[bool, Query(description="Without them only the figures are told.")] = True,
) -> Response:
    """What the model sees, and about how large it is."""
    session = await at.sessions.get(row.id)
    agent = at.profiles.agent(session)
    tools = [tool.spec for tool in (await agent.tools()).values()]
    window = await asyncio.to_thread(lambda: agent.model.window)
    found = context(session, agent, tools, window=window)
    return answer(found if texts else msgspec.structs.replace(found, instructions="", messages=[]))


@router.post("/sessions/{id}/archive", **takes(ArchiveSession))
async def archive_session(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """Take it out of the default list. While something runs, the command says what becomes of it."""
    command, caller = await parse_command(request, ArchiveSession, subject=row.id)
    what_runs = partial(
        at.running_tasks.chosen_writes, row.id, command.running, by=caller.by, what="its session was archived"
    )
    appended = await at.sessions.execute(row.id, command, caller, also=what_runs)
    at.running_tasks.signal(appended.records)
    return accepted(row.id, appended, caller, message=False)


@router.post("/sessions/{id}/restore", **takes(RestoreSession))
async def restore_session(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """Bring it back."""
    return await tell(at, row.id, request, RestoreSession)


@router.post("/sessions/{id}/pin", **takes(PinSession))
async def pin_session(at: GatewayDep, row: SessionDep, request: Request) -> Response:
    """Keep it on top of the list, or not any more."""
    return await tell(at, row.id, request, PinSession)


@router.delete("/sessions/{id}", **takes(DeleteSession))
async def delete_session(at: GatewayDep, id: str, request: Request) -> Response:
    """Delete a session at rest with all its events, for good. While something runs, say what becomes of it."""
    command, caller = await parse_command(request, DeleteSession, subject=id)
    known = await at.store.find_command(caller.key)
    if known is not None:  # a retry: there is no session any more that could be found
        (line,) = (await at.store.read(known.stream, after=known.version - 1, limit=1)).lines
        event = decode(line).event
        assert isinstance(event, SessionDeleted)
        return accepted(event.session, known, caller, message=False)
    session = (await find_session(at, id)).id
    what_runs = partial(
        at.running_tasks.chosen_writes, session, command.running, by=caller.by, what="its session was deleted"
    )
    appended = await at.sessions.delete(session, caller, also=what_runs)
    at.running_tasks.signal(appended.records)
    return accepted(session, appended, caller, message=False)


@router.get("/sessions/{id}/why", **returns(Why))
async def why_session(at: GatewayDep, row: SessionDep) -> Response:
    """What it is doing or waiting for, since when, and what woke or stopped it."""
    return answer(Why(f"session {row.id}", await statements(at, row.id)))


async def statements(at: Gateway, session: str) -> list[Statement]:
    """The sentences about one session."""
    state, now = await at.sessions.get(session), at.clock.now()
    sentences = why(state, now=now) + why_chapter(state, at.reset_scheduler.outlook(state), now=now)
    stream = session_stream(session)
    shown = [Statement(text=s.text, stream=stream, version=s.version, at=s.at) for s in sentences]
    if (trouble := at.runner.last_failure(session)) is not None:
        text = f"Its worker ended: {trouble.reason.rstrip('.')}. Another one starts {trouble.pause:g} s after that."
        shown.insert(0, Statement(text=text, stream=stream, version=state.version, at=trouble.at))
    return shown


@router.get("/sessions/{id}/export", **returns(Why, media=("text/markdown", "application/jsonl")))
async def export_session(
    at: GatewayDep, row: SessionDep, format: Literal["markdown", "jsonl"] = "markdown"
) -> Response:
    """The conversation as a file."""
    if format == "jsonl":
        return await as_jsonl(at.store, row.id)
    return await as_markdown(at.store, row.id, title=row.title)


@router.get("/search", **returns(SearchPage))
async def search(
    at: GatewayDep,
    q: Annotated[str, Query(min_length=1, max_length=500)],
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Response:
    """Where a text occurs in any session, newest first."""
    hits = await at.store.search(q, limit=limit)
    titles: dict[str, str] = {}
    for hit in hits:
        if hit.session not in titles:
            try:
                titles[hit.session] = (await at.store.session(hit.session)).title
            except Rejected:  # deleted, and the index has not come so far yet
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
    return answer(SearchPage(shown))
