"""Attach the chat to a session: which one, the end of its conversation, and what happened while the user was away."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import msgspec

from holdfast.cli.chat.blocks import Block, DividerBlock, NoticeBlock, QuestionBlock, divider_block, needs_blank_line
from holdfast.cli.chat.connection import SessionRef
from holdfast.cli.chat.local_state import ReadCursors
from holdfast.cli.chat.paint import Painter
from holdfast.cli.chat.view import View
from holdfast.cli.commands.sessions import chapter_opened
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.hints import program, with_home
from holdfast.cli.screen import SHORT_ID, ago, format_time, one_line, plural, shorten
from holdfast.client.client import Client
from holdfast.client.events import stored_records
from holdfast.domain.events.chapter import ChapterOpened
from holdfast.domain.events.run_binding import RunBound
from holdfast.domain.transcript_items import Change, ChapterItem, MessageItem, NoteItem, StepItem, TurnEndItem, WaitItem
from holdfast.domain.transcript_text import notice_text
from holdfast.schemas.gateway import ProfileView

WINDOW = 600
LONGEST_WINDOW = 5_000
PAGE = 2_000
SEEN = 6
"""How many blocks the first screen has at least, however small the terminal is."""
HELP_HINT = "/help lists the commands, Ctrl-D leaves."
DEMO_HINT = "The demo agent is a script, no AI: type `help`. A real model: `holdfast models`."


@dataclass(slots=True)
class AttachedSession:
    """A session at the time of attaching: its reference, its view, and the last blocks of its conversation."""

    ref: SessionRef
    view: View
    blocks: list[tuple[int, Block]] = field(default_factory=list)
    read: int | None = None
    away: str = ""
    cut: bool = False
    """Whether older blocks were left out."""
    hint: str = ""


def last_here(client: Client, cwd: str) -> str | None:
    """Find the session of this directory with the newest event; sessions of cards do not count."""
    found = client.sessions.list(cwd=cwd, limit=1).sessions
    return found[0].id if found else None


def new_session(client: Client, cwd: str, profile: str | None) -> AttachedSession:
    """Prepare a session that its first message will create."""
    chosen = _profile(client, profile)
    if chosen is None:
        raise CliError(f"There is no profile {profile}.", hint="`holdfast profiles` lists them.", code=USAGE)
    view = View(time.monotonic, profile=chosen.name, model=chosen.model, cwd=cwd)
    hint = f"{HELP_HINT}\n{with_home(DEMO_HINT)}" if view.model == "demo" else HELP_HINT
    return AttachedSession(SessionRef(cwd=cwd, profile=profile), view, hint=hint)


def attach(client: Client, id: str, cursors: ReadCursors) -> AttachedSession:
    """Attach to an existing session, by its id or a unique prefix."""
    detail = client.sessions.get(id)
    session, version = detail.session.id, detail.session.version
    read = cursors.get(session)
    profile = _profile(client, detail.session.profile)
    view = View(time.monotonic, model=profile.model if profile is not None else "")
    view.seed(detail)
    after = max(0, version - LONGEST_WINDOW, min(version - WINDOW, version if read is None else read))
    blocks, cost = [], replace(view.cost)
    changes: list[tuple[int, Change]] = []
    view.changes = changes
    for item in stored_records(client, session, after=after, page=PAGE):
        blocks += [(view.version, block) for block in view.apply_record(item.record)]
        if view.version == version:
            view.cost = cost  # as the snapshot knows it; the turn may have begun before the first record
    if view.turn is not None and view.wait is None and detail.session.state == "waiting":
        blocks += [(view.version, block) for block in _open_wait(client, view)]
    hint = _worker_notice(client, view, blocks[-SEEN:])
    blocks = _with_unseen_reset(client, session, blocks)
    view.changes = None
    away = away_summary(changes, read=version if read is None else read, first=after + 1)
    return AttachedSession(
        SessionRef(session, detail.session.cwd), view, blocks, read=read, away=away, cut=after > 0, hint=hint
    )


def _worker_notice(client: Client, view: View, last: list[tuple[int, Block]]) -> str:
    """Say that a run of a card works in this session, unless the last blocks already say so."""
    cards = client.cards.list(status="running").cards
    card = next((card for card in cards if card.session == view.session), None)
    if card is None:
        return ""
    view.transcript.card, view.transcript.card_number, view.transcript.run = card.id, card.number, card.run
    said = notice_text(RunBound(card=card.id, run=card.run, card_number=card.number), clock=format_time)
    return "" if any(isinstance(block, NoticeBlock) and block.text == said for _, block in last) else said


def _with_unseen_reset(client: Client, session: str, blocks: list[tuple[int, Block]]) -> list[tuple[int, Block]]:
    """Move a reset that the user has not seen yet to the end, where it cannot be overlooked."""
    chapter = client.sessions.reset_status(session).chapter
    if not chapter.unseen or chapter.opened_at is None:
        return blocks
    event = chapter_opened(client, session, chapter.version)
    own = (chapter.version, divider_block(event))
    last = blocks[-1][0] if blocks else chapter.version
    return [*(block for block in blocks if block != own), (last, unseen_reset(event, chapter.opened_at))]


def while_away(changes: Iterable[Change]) -> str:
    """Summarize these changes in a few words; empty if the user missed nothing important."""
    counts = {"message": 0, "question": 0, "approval": 0, "failed turn": 0, "ended task": 0, "reset": 0}
    answers: set[int] = set()  # each may be among the changes twice: asked for, and given
    for change in changes:
        match change.item:
            case NoteItem() if change.kind == "added":
                counts["ended task"] += 1
            case MessageItem() if change.kind == "added":
                counts["message"] += 1
            case StepItem(state="done", text=text, version=version) if text.strip() and change.call is None:
                answers.add(version)
            case WaitItem(purpose=purpose) if change.kind == "added" and purpose in counts:
                counts[purpose] += 1
            case TurnEndItem(outcome="failed") if change.kind == "added":
                counts["failed turn"] += 1
            case ChapterItem() if change.kind == "added":
                counts["reset"] += 1
            case _:
                pass
    counts["message"] += len(answers)
    return ", ".join(plural(count, noun) for noun, count in counts.items() if count)


def away_summary(changes: list[tuple[int, Change]], *, read: int, first: int) -> str:
    """Summarize what happened since the last read version. After a long absence only records from `first` on count."""
    away = while_away(change for version, change in changes if version > read)
    return f"at least {away}" if away and first > read + 1 else away


def unseen_reset(event: ChapterOpened, at: int) -> DividerBlock:
    """Describe a reset that the user has not seen: when, why, and the note for the new chapter."""
    return DividerBlock(
        f"reset {ago(at)}, at {format_time(at)}, while you were away", divider_block(event).lines, "warning"
    )


def _profile(client: Client, name: str | None) -> ProfileView | None:
    """Find a profile by name, by default the default one; None if there is none."""
    profiles = client.profiles().profiles
    return next((known for known in profiles if (known.default if name is None else known.name == name)), None)


def _open_wait(client: Client, view: View) -> list[Block]:
    """Return the open wait if its record is older than the first one that was read."""
    found = next((wait for wait in client.inbox().waits if wait.session == view.session), None)
    if found is None:
        return []
    fields = msgspec.structs.asdict(found) | {"item": "wait", "wait": found.id, "at": found.opened_at}
    item = msgspec.convert(fields, WaitItem)
    view.transcript.seed_wait(item)
    return [QuestionBlock(item)]


# --- the first screen -----------------------------------------------------------------------------


def header(view: View, columns: int) -> str:
    """Describe the session in one line."""
    name = f"session {view.session[:SHORT_ID]}" if view.session else "a new session"
    title = f"“{one_line(view.title)}” · " if view.title else ""
    return shorten(f"holdfast · {title}{name} · {one_line(view.cwd)}", columns)


def first_screen(attached: AttachedSession, painter: Painter, rows: int) -> tuple[list[str], Block | None]:
    """Draw the last lines of the conversation, with a mark where the unread part begins; also return the last block."""
    blocks, marker = _with_marker(attached)
    lines: list[str] = []
    first = len(blocks)
    while first > 0 and len(lines) < rows:
        first -= 1
        blank = first + 1 < len(blocks) and needs_blank_line(blocks[first], blocks[first + 1])
        lines = [*painter.block(blocks[first]), *([""] if blank else []), *lines]
    is_cut = attached.cut or first > 0 or len(lines) > rows
    lines = lines[-rows:]
    while lines and not lines[0]:
        lines.pop(0)
    if marker is not None and marker < first:
        lines = [*painter.block(blocks[marker]), "", *lines]
    if is_cut:
        said = f"earlier: {program()} sessions log {attached.view.session[:SHORT_ID]}"
        lines = [*painter.block(NoticeBlock(said)), "", *lines]
    return lines, blocks[-1] if blocks else None


def _with_marker(attached: AttachedSession) -> tuple[list[Block], int | None]:
    """Return the blocks, and the index of the one that summarizes the absence."""
    blocks = [block for _, block in attached.blocks]
    if not attached.away:
        return blocks, None
    read = attached.read or 0
    ref = next((index for index, (version, _) in enumerate(attached.blocks) if version > read), len(blocks))
    blocks.insert(ref, NoticeBlock(f"── {attached.away} while away ──", "warning"))
    return blocks, ref
