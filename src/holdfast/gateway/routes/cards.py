"""Boards and cards: create, comment, block, unblock, show, explain."""

from __future__ import annotations

import secrets
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from holdfast.board.changes import changes_of
from holdfast.board.workspace import Unusable
from holdfast.domain.commands import (
    ArchiveBoard,
    ArchiveCard,
    BlockCard,
    BoardCommand,
    CardCommand,
    CommentCard,
    CompleteCard,
    CreateBoard,
    CreateCard,
    EditCard,
    FollowCard,
    LinkCard,
    MoveCard,
    PauseBoard,
    ResumeBoard,
    RetryCard,
    StopCard,
    UnblockCard,
    UnlinkCard,
)
from holdfast.domain.errors import Conflict
from holdfast.domain.events import card_stream, session_stream
from holdfast.domain.next_step import Partial
from holdfast.domain.rights import describe
from holdfast.domain.why import why_card
from holdfast.gateway.openapi import Handler, Routes
from holdfast.gateway.requests import QueryShape, card_of, check_profile, find_session, parse_command, parse_query
from holdfast.gateway.responses import accepted, json_response
from holdfast.gateway.state import Gateway, gateway_of
from holdfast.schemas.cards import (
    BoardAccepted,
    BoardList,
    BoardView,
    CardAccepted,
    CardComment,
    CardContext,
    CardDetail,
    CardPage,
    CardReleased,
    CardView,
    RunView,
)
from holdfast.schemas.changes import FileChanges
from holdfast.schemas.gateway import Statement, Why
from holdfast.store.reads import CardFilter
from holdfast.store.rows import CardRow

EXPLAINED = 200
"""For how many cards of a page the response says why they are not started."""
routes = Routes("cards")


async def _views(gateway: Gateway, rows: list[CardRow]) -> list[CardView]:
    """Return cards as a board shows them; where there are several nodes, with the one that works on each."""
    views = [msgspec.convert(row, CardView, from_attributes=True) for row in rows]
    if not await gateway.nodes.are_several():
        return [msgspec.structs.replace(view, host="") for view in views]
    working = {work.stream: work.node for work in await gateway.store.work_of_nodes()}
    hosts = [row.assigned or working.get(session_stream(row.session)) or row.host for row in rows]
    return [msgspec.structs.replace(view, host=host) for view, host in zip(views, hosts, strict=True)]


# --- boards ---------------------------------------------------------------------------------------


class BoardListQuery(QueryShape, frozen=True):
    """Which boards."""

    archived: bool = False


@routes.get("/v1/boards", BoardList, query=BoardListQuery)
async def list_boards(request: Request) -> Response:
    """List the boards."""
    gateway = gateway_of(request)
    query = parse_query(request, BoardListQuery)
    boards = [board for board in await gateway.store.cards.boards() if query.archived or not board.archived]
    counts = await gateway.store.cards.counts()
    shown = [
        BoardView(
            id=board.id,
            title=board.title,
            paused_by=board.paused_by,
            archived=board.archived,
            created_at=board.created_at,
            cards=counts.get(board.id, 0),
        )
        for board in boards
    ]
    return json_response(BoardList(shown))


def _board_command(command: type[BoardCommand]) -> Handler:
    """Return a handler that carries out a command about a board."""

    async def handler(request: Request) -> Response:
        name = request.path_params.get("name", "")
        given, caller = await parse_command(request, command, subject=name)
        done = await gateway_of(request).cards.execute_board(name, given, caller)
        return accepted(BoardAccepted, done)

    return handler


BOARD_COMMANDS: tuple[tuple[str, type[BoardCommand]], ...] = (
    ("/v1/boards", CreateBoard),
    ("/v1/boards/{name}/pause", PauseBoard),
    ("/v1/boards/{name}/resume", ResumeBoard),
    ("/v1/boards/{name}/archive", ArchiveBoard),
)
for path, of_board in BOARD_COMMANDS:
    routes.add_command(path, of_board, _board_command(of_board), BoardAccepted)


# --- cards ----------------------------------------------------------------------------------------


class CardListQuery(QueryShape, frozen=True):
    """Which cards."""

    board: Annotated[str, Meta(max_length=64)] = ""
    status: Annotated[str, Meta(max_length=20)] = ""
    profile: Annotated[str, Meta(max_length=64)] = ""
    text: Annotated[str, Meta(max_length=500, description="A text in the title or the number.")] = ""
    archived: bool = False
    offset: Annotated[int, Meta(ge=0, le=10**9)] = 0
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 500
    why: Annotated[bool, Meta(description="Include why waiting cards are not started.")] = False


@routes.get("/v1/cards", CardPage, query=CardListQuery)
async def list_cards(request: Request) -> Response:
    """List cards, most urgent first."""
    gateway, query = gateway_of(request), parse_query(request, CardListQuery)
    wanted = CardFilter(
        board=query.board, status=query.status, profile=query.profile, text=query.text, archived=query.archived
    )
    rows = await gateway.store.cards.cards(wanted, offset=query.offset, limit=query.limit)
    waiting = [row.id for row in rows if row.status in ("todo", "ready")][:EXPLAINED] if query.why else []
    reasons = await gateway.dispatcher.startable.why_not_started([await gateway.cards.get(card) for card in waiting])
    following = query.offset + query.limit if len(rows) == query.limit else None
    return json_response(CardPage(await _views(gateway, rows), following, reasons))


@routes.command("/v1/cards", CreateCard, CardAccepted)
async def create_card(request: Request) -> Response:
    """Create a card."""
    gateway = gateway_of(request)
    command, caller = await parse_command(request, CreateCard, subject="")
    profile = command.profile or gateway.profiles.default
    check_profile(gateway, profile)
    command = msgspec.structs.replace(command, profile=profile)
    if command.session is not None:
        command = msgspec.structs.replace(command, session=(await find_session(gateway, command.session)).id)
    done = await gateway.cards.create(command, card=secrets.token_hex(4), caller=caller)
    card = await gateway.cards.get(done.stream.removeprefix("card/"))  # a retry gets the card of the first time
    return accepted(CardAccepted, done, number=card.number)


@routes.get("/v1/cards/{id}", CardDetail)
async def show_card(request: Request) -> Response:
    """Show a card with its comments, links and runs, all of the same moment."""
    gateway = gateway_of(request)
    row = await card_of(request)
    while True:
        shape = await _detail(gateway, row.id)
        if shape.card.version == (await gateway.cards.get(row.id)).version:
            return json_response(shape)


async def _detail(gateway: Gateway, id: str) -> CardDetail:
    """Read a card in several steps. They are consistent only if its version has not changed meanwhile."""
    (row,) = await _views(gateway, [await gateway.store.cards.card(id)])
    card = await gateway.cards.get(id)
    runs = [msgspec.convert(run, RunView, from_attributes=True) for run in await gateway.store.cards.runs(card.id)]
    done = card.completed
    return CardDetail(
        card=row,
        body=card.body,
        resume=card.resume,
        max_runtime_ms=card.max_runtime_ms,
        max_attempts=card.max_attempts,
        attempts=card.attempts,
        summary="" if done is None else done.summary,
        metadata={} if done is None else done.metadata,
        artifacts=[] if done is None else done.artifacts,
        comments=[
            CardComment(comment=c.comment, text=c.text, by=str(c.by), at=c.happened.at, version=c.happened.version)
            for c in card.comments
        ],
        parents=await _views(gateway, await gateway.store.cards.parents(card.id)),
        children=await _views(gateway, await gateway.store.cards.children(card.id)),
        followers=list(card.followers),
        runs=runs,
        why=await gateway.dispatcher.startable.why_not(card),
        kept=await gateway.dispatcher.cleanup.unsaved_work(card) if card.status == "archived" else "",
        limits=[] if card.rights is None else describe(card.rights),
    )


@routes.get("/v1/cards/{id}/why", Why)
async def why_not_card(request: Request) -> Response:
    """Explain why a card is in its column, and what would move it."""
    gateway = gateway_of(request)
    row = await card_of(request)
    card = await gateway.cards.get(row.id)
    reason, now = await gateway.dispatcher.startable.why_not(card), gateway.clock.now()
    run = card.run
    session = await gateway.sessions.get(run.started.session) if run is not None else None
    arrived = gateway.streaming.arrived(session_stream(session.id)) if session is not None else Partial()
    sentences = why_card(card, reason, session, arrived=arrived, now=now)
    stream = card_stream(card.id)
    found = [Statement(text=s.text, stream=stream, version=s.version, at=s.at) for s in sentences]
    return json_response(Why(f"card {card.label}", found))


@routes.get("/v1/cards/{id}/context", CardContext)
async def card_context(request: Request) -> Response:
    """Show the first input of the next run."""
    gateway = gateway_of(request)
    row = await card_of(request)
    card = await gateway.cards.get(row.id)
    choice, said = await gateway.dispatcher.runs.preview(card)
    last = choice.resumes
    shape = CardContext(
        card=card.id,
        resumes=0 if last is None else last.number,
        session="" if last is None else last.started.session,
        fresh_because=choice.fresh_because,
        refused=choice.refused,
        note=said.note,
        text=said.text,
    )
    return json_response(shape)


@routes.get("/v1/cards/{id}/diff", FileChanges)
async def card_diff(request: Request) -> Response:
    """Show what the card made: the files in its workspace that differ from what it began with."""
    gateway = gateway_of(request)
    row = await card_of(request)
    card = await gateway.cards.get(row.id)
    last = card.runs[-1].started if card.runs else None
    elsewhere = last is not None and last.node != gateway.store.node and await gateway.nodes.are_several()
    if last is not None and elsewhere and await gateway.nodes.shared.why_private(last.workspace):
        raise Conflict(f"Its workspace is on node {last.node}.", hint="Ask the gateway of that node.")
    try:
        found = await gateway.cards.mounts.run_within(None, lambda: changes_of(card, gateway.cards.root))
    except (Unusable, OSError) as error:
        raise Conflict(f"The workspace cannot be read: {error}.") from error
    return json_response(msgspec.convert(found, FileChanges, from_attributes=True))


def _card_command(command: type[CardCommand]) -> Handler:
    """Return a handler that carries out a command about a card."""

    async def handler(request: Request) -> Response:
        gateway, row = gateway_of(request), await card_of(request)
        given, caller = await parse_command(request, command, subject=row.id)
        if isinstance(given, EditCard):
            if given.profile is not None:
                check_profile(gateway, given.profile)
            await gateway.dispatcher.startable.check_node(await gateway.cards.get(row.id), given)
        if isinstance(given, FollowCard):
            given = msgspec.structs.replace(given, session=(await find_session(gateway, given.session)).id)
        done = await gateway.cards.execute(row.id, given, caller)
        archived = isinstance(given, ArchiveCard)
        kept = await gateway.dispatcher.cleanup.clean(await gateway.cards.get(row.id)) if archived else ""
        return accepted(CardAccepted, done, number=row.number, kept=kept)

    return handler


CARD_COMMANDS: dict[str, type[CardCommand]] = {
    "comments": CommentCard,
    "links": LinkCard,
    "unlink": UnlinkCard,
    "follow": FollowCard,
    "move": MoveCard,
    "block": BlockCard,
    "unblock": UnblockCard,
    "retry": RetryCard,
    "stop": StopCard,
    "complete": CompleteCard,
    "archive": ArchiveCard,
}
for last, of_card in CARD_COMMANDS.items():
    routes.add_command(f"/v1/cards/{{id}}/{last}", of_card, _card_command(of_card), CardAccepted)
routes.add_command("/v1/cards/{id}", EditCard, _card_command(EditCard), CardAccepted, method="PATCH")


@routes.post("/v1/cards/{id}/release", CardReleased, status=200)
async def release_workspace(request: Request) -> Response:
    """Remove the workspace of an archived card if it has no unsaved work. Repeating it is harmless."""
    gateway = gateway_of(request)
    row = await card_of(request)
    card = await gateway.cards.get(row.id)
    if card.status != "archived":
        hint = f"`holdfast card archive {card.label}` removes it if it has no unsaved work."
        raise Conflict(f"Card {card.label} is {card.status}; its workspace may still be needed.", hint=hint)
    return json_response(CardReleased(card.id, await gateway.dispatcher.cleanup.clean(card)))
