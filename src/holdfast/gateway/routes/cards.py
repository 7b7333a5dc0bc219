"""Boards and cards: write down, comment, block and unblock, look, and why."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from holdfast.board import workspace
from holdfast.domain.card_commands import (
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
from holdfast.domain.errors import Conflict, Rejected
from holdfast.domain.events import card_stream
from holdfast.domain.rights import describe
from holdfast.domain.why.card import why_card
from holdfast.gateway.answers import answer
from holdfast.gateway.card_shapes import (
    BoardAccepted,
    BoardList,
    BoardView,
    CardAccepted,
    CardComment,
    CardContext,
    CardDetail,
    CardDiff,
    CardPage,
    CardReleased,
    CardView,
    RunView,
)
from holdfast.gateway.contract import parse_command, returns, takes
from holdfast.gateway.paths import CardDep, find_session
from holdfast.gateway.shapes import Statement, Why
from holdfast.gateway.state import Gateway, GatewayDep
from holdfast.store.card_contract import CardFilter
from holdfast.store.rows import CardRow

EXPLAINED = 200
"""Of so many cards of a page it is said why they are not started."""
DIFF_LIMIT = 400_000
router = APIRouter(prefix="/v1", tags=["cards"])


def _view(row: CardRow) -> CardView:
    return msgspec.convert(row, CardView, from_attributes=True)


# --- boards ---------------------------------------------------------------------------------------


@router.get("/boards", **returns(BoardList))
async def list_boards(at: GatewayDep, archived: bool = False) -> Response:
    """Every board."""
    boards = [board for board in await at.store.cards.boards() if archived or not board.archived]
    counts = await at.store.cards.counts()
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
    return answer(BoardList(shown))


async def _tell_board(at: Gateway, name: str, request: Request, shape: type[BoardCommand]) -> Response:
    command, caller = await parse_command(request, shape, subject=name)
    done = await at.cards.execute_board(name, command, caller)
    board = done.stream.removeprefix("board/")
    shown = BoardAccepted(board=board, version=done.version, seq=done.seq, duplicate=done.duplicate)
    return answer(shown, status=202)


@router.post("/boards", **takes(CreateBoard, BoardAccepted))
async def create_board(at: GatewayDep, request: Request) -> Response:
    """Make a board."""
    return await _tell_board(at, "", request, CreateBoard)


@router.post("/boards/{name}/pause", **takes(PauseBoard, BoardAccepted))
async def pause_board(at: GatewayDep, name: str, request: Request) -> Response:
    """Start nothing on it; what runs goes on."""
    return await _tell_board(at, name, request, PauseBoard)


@router.post("/boards/{name}/resume", **takes(ResumeBoard, BoardAccepted))
async def resume_board(at: GatewayDep, name: str, request: Request) -> Response:
    """Start cards again."""
    return await _tell_board(at, name, request, ResumeBoard)


@router.post("/boards/{name}/archive", **takes(ArchiveBoard, BoardAccepted))
async def archive_board(at: GatewayDep, name: str, request: Request) -> Response:
    """Take it out of the list."""
    return await _tell_board(at, name, request, ArchiveBoard)


# --- cards ----------------------------------------------------------------------------------------


async def _wanted(
    board: Annotated[str, Query(max_length=64)] = "",
    status: Annotated[str, Query(max_length=20)] = "",
    profile: Annotated[str, Query(max_length=64)] = "",
    text: Annotated[str, Query(max_length=500, description="In the title.")] = "",
    archived: bool = False,
) -> CardFilter:
    return CardFilter(board=board, status=status, profile=profile, text=text, archived=archived)


@router.get("/cards", **returns(CardPage))
async def list_cards(
    at: GatewayDep,
    wanted: Annotated[CardFilter, Depends(_wanted)],
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 500,
    why: Annotated[bool, Query(description="Say of those that wait why they are not started.")] = False,
) -> Response:
    """Cards, most urgent first."""
    rows = await at.store.cards.cards(wanted, offset=offset, limit=limit)
    waiting = [row.id for row in rows if row.status in ("todo", "ready")][:EXPLAINED] if why else []
    reasons = await at.dispatcher.starter.why_not_started([await at.cards.get(card) for card in waiting])
    following = offset + limit if len(rows) == limit else None
    return answer(CardPage([_view(row) for row in rows], following, reasons))


@router.post("/cards", **takes(CreateCard, CardAccepted))
async def create_card(at: GatewayDep, request: Request) -> Response:
    """Write work down."""
    command, caller = await parse_command(request, CreateCard, subject="")
    command = msgspec.structs.replace(command, profile=command.profile or at.profiles.default)
    if command.profile not in at.profiles.names:
        raise Rejected(f"There is no profile {command.profile!r}.", hint=f"There is: {', '.join(at.profiles.names)}.")
    if command.session is not None:
        command = msgspec.structs.replace(command, session=(await find_session(at, command.session)).id)
    done = await at.cards.create(command, card=secrets.token_hex(4), caller=caller)
    card = done.stream.removeprefix("card/")
    shown = CardAccepted(card=card, stream=done.stream, version=done.version, seq=done.seq, duplicate=done.duplicate)
    return answer(shown, status=202)


@router.get("/cards/{id}", **returns(CardDetail))
async def show_card(at: GatewayDep, row: CardDep) -> Response:
    """One card with all that belongs to it, as of one moment."""
    while True:
        shape = await _detail(at, row.id)
        if shape.card.version == (await at.cards.get(row.id)).version:
            return answer(shape)


async def _detail(at: Gateway, id: str) -> CardDetail:
    """What is read bit by bit; only if the card stayed at the version of its row does it fit together."""
    row = _view(await at.store.cards.card(id))
    card = await at.cards.get(id)
    runs = [msgspec.convert(run, RunView, from_attributes=True) for run in await at.store.cards.runs(card.id)]
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
        parents=[_view(one) for one in await at.store.cards.parents(card.id)],
        children=[_view(one) for one in await at.store.cards.children(card.id)],
        followers=list(card.followers),
        runs=runs,
        why=await at.dispatcher.starter.why_not(card),
        kept=await at.cards.unsaved_work(card) if card.status == "archived" else "",
        limits=[] if card.rights is None else describe(card.rights),
    )


@router.get("/cards/{id}/why", **returns(Why))
async def why_not_card(at: GatewayDep, row: CardDep) -> Response:
    """Why it is where it is, and what would move it."""
    card = await at.cards.get(row.id)
    reason, now = await at.dispatcher.starter.why_not(card), at.clock.now()
    run = card.run
    session = await at.sessions.get(run.started.session) if run is not None else None
    sentences = why_card(card, reason, session, now=now)
    stream = card_stream(card.id)
    found = [Statement(text=s.text, stream=stream, version=s.version, at=s.at) for s in sentences]
    return answer(Why(f"card {card.id}", found))


@router.get("/cards/{id}/context", **returns(CardContext))
async def card_context(at: GatewayDep, row: CardDep) -> Response:
    """What the next worker would be told."""
    card = await at.cards.get(row.id)
    choice, said = await at.dispatcher.starter.preview(card)
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
    return answer(shape)


@router.get("/cards/{id}/diff", **returns(CardDiff))
async def card_diff(at: GatewayDep, row: CardDep) -> Response:
    """What is different in its workspace."""
    card = await at.cards.get(row.id)
    try:
        found = await asyncio.to_thread(workspace.diff, card, at.cards.root, DIFF_LIMIT)
    except workspace.Unusable as error:
        raise Conflict(f"The workspace cannot be looked at: {error}.") from error
    return answer(CardDiff(found))


async def _execute(at: Gateway, card: str, request: Request, shape: type[CardCommand]) -> Response:
    command, caller = await parse_command(request, shape, subject=card)
    if isinstance(command, EditCard) and command.profile is not None and command.profile not in at.profiles.names:
        raise Rejected(f"There is no profile {command.profile!r}.", hint=f"There is: {', '.join(at.profiles.names)}.")
    if isinstance(command, FollowCard):
        command = msgspec.structs.replace(command, session=(await find_session(at, command.session)).id)
    done = await at.cards.execute(card, command, caller)
    kept = await at.cards.clean_workspace(await at.cards.get(card)) if isinstance(command, ArchiveCard) else ""
    shown = CardAccepted(
        card=card, stream=done.stream, version=done.version, seq=done.seq, duplicate=done.duplicate, kept=kept
    )
    return answer(shown, status=202)


@router.patch("/cards/{id}", **takes(EditCard, CardAccepted))
async def edit_card(at: GatewayDep, row: CardDep, request: Request) -> Response:
    """Change what it says."""
    return await _execute(at, row.id, request, EditCard)


@router.post("/cards/{id}/comments", **takes(CommentCard, CardAccepted))
async def comment_card(at: GatewayDep, row: CardDep, request: Request) -> Response:
    """Say something about it; its worker hears it."""
    return await _execute(at, row.id, request, CommentCard)


@router.post("/cards/{id}/links", **takes(LinkCard, CardAccepted))
async def link_card(at: GatewayDep, row: CardDep, request: Request) -> Response:
    """Let it wait for another."""
    return await _execute(at, row.id, request, LinkCard)


@router.post("/cards/{id}/unlink", **takes(UnlinkCard, CardAccepted))
async def unlink_card(at: GatewayDep, row: CardDep, request: Request) -> Response:
    """Not any more."""
    return await _execute(at, row.id, request, UnlinkCard)


@router.post("/cards/{id}/follow", **takes(FollowCard, CardAccepted))
async def follow_card(at: GatewayDep, row: CardDep, request: Request) -> Response:
    """Tell a session of its blocks, failures and end."""
    return await _execute(at, row.id, request, FollowCard)


@router.post("/cards/{id}/move", **takes(MoveCard, CardAccepted))
async def move_card(at: GatewayDep, row: CardDep, request: Request) -> Response:
    """Put it into another column."""
    return await _execute(at, row.id, request, MoveCard)


@router.post("/cards/{id}/block", **takes(BlockCard, CardAccepted))
async def block_card(at: GatewayDep, row: CardDep, request: Request) -> Response:
    """It cannot go on without somebody."""
    return await _execute(at, row.id, request, BlockCard)


@router.post("/cards/{id}/unblock", **takes(UnblockCard, CardAccepted))
async def unblock_card(at: GatewayDep, row: CardDep, request: Request) -> Response:
    """Let it go on."""
    return await _execute(at, row.id, request, UnblockCard)


@router.post("/cards/{id}/retry", **takes(RetryCard, CardAccepted))
async def retry_card(at: GatewayDep, row: CardDep, request: Request) -> Response:
    """Once more."""
    return await _execute(at, row.id, request, RetryCard)


@router.post("/cards/{id}/stop", **takes(StopCard, CardAccepted))
async def stop_card(at: GatewayDep, row: CardDep, request: Request) -> Response:
    """End its run."""
    return await _execute(at, row.id, request, StopCard)


@router.post("/cards/{id}/complete", **takes(CompleteCard, CardAccepted))
async def complete_card(at: GatewayDep, row: CardDep, request: Request) -> Response:
    """It is done, a person says so."""
    return await _execute(at, row.id, request, CompleteCard)


@router.post("/cards/{id}/archive", **takes(ArchiveCard, CardAccepted))
async def archive_card(at: GatewayDep, row: CardDep, request: Request) -> Response:
    """Take it off the board."""
    return await _execute(at, row.id, request, ArchiveCard)


@router.post("/cards/{id}/release", **returns(CardReleased))
async def release_workspace(at: GatewayDep, row: CardDep) -> Response:
    """Remove the workspace of an archived card, if nothing would be lost with it. Repeating it changes nothing."""
    card = await at.cards.get(row.id)
    if card.status != "archived":
        hint = f"`holdfast card archive {card.id}` removes it if nothing would be lost with it."
        raise Conflict(f"Card {card.id} is {card.status}; its workspace may still be needed.", hint=hint)
    return answer(CardReleased(card.id, await at.cards.clean_workspace(card)))
