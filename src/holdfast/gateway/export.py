"""Export of a session: Markdown for people, JSON lines for programs."""

from __future__ import annotations

import datetime
from collections.abc import AsyncGenerator
from typing import assert_never

from starlette.responses import StreamingResponse

from holdfast.domain.command import InputSource
from holdfast.domain.events import decode_many, session_stream
from holdfast.domain.events.session import Purpose
from holdfast.domain.transcript import Transcript
from holdfast.domain.transcript_items import (
    AnyItem,
    ChapterItem,
    MessageItem,
    NoteItem,
    NoticeItem,
    QueuedItem,
    StepItem,
    SummaryItem,
    ToolCallView,
    TurnEndItem,
    WaitItem,
)
from holdfast.domain.transcript_text import (
    answer_text,
    call_detail,
    chapter_lines,
    notice_text,
    revision_text,
    summary_text,
    turn_end_text,
)
from holdfast.store.contract import Store

PAGE = 1000
"""How many records are read and written at a time; others have their turn in between."""
AUTHORS: dict[InputSource, str] = {"message": "You", "comment": "Comment", "run": "Board", "reminder": "Board"}
WAITS: dict[Purpose, str] = {
    "question": "Question",
    "approval": "Approval requested",
    "resume": "Interrupted",
    "compaction": "The context is too long",
    "retry": "Waiting for the next attempt",
    "login": "Waiting for a log-in",
    "quota": "Waiting for a quota",
}


def as_jsonl(store: Store, session: str) -> StreamingResponse:
    """Return the stored records, one per line."""
    body = (b"\n".join(page) + b"\n" async for page in _pages(store, session))
    return _attachment(body, f"{session}.jsonl", "application/jsonl")


def as_markdown(store: Store, session: str, *, title: str) -> StreamingResponse:
    """Return the conversation as Markdown."""
    return _attachment(_markdown(store, session, title), f"{session}.md", "text/markdown")


async def _markdown(store: Store, session: str, title: str) -> AsyncGenerator[bytes, None]:
    yield f"# {title or session}\n\nSession `{session}`\n".encode()
    transcript = Transcript()
    async for page in _pages(store, session):
        settled: list[AnyItem] = []
        for record in decode_many(page):
            transcript.apply(record)
            settled += transcript.take_settled()
        yield _paragraphs(settled)
    yield _paragraphs(transcript.items)


def _paragraphs(items: list[AnyItem]) -> bytes:
    return "".join(f"\n{text}" for text in map(item_markdown, items) if text).encode()


async def _pages(store: Store, session: str) -> AsyncGenerator[tuple[bytes, ...], None]:
    after = 0
    while page := (await store.read(session_stream(session), after=after, limit=PAGE)).lines:
        yield page
        after += len(page)


def _attachment(body: AsyncGenerator[bytes, None], name: str, media_type: str) -> StreamingResponse:
    headers = {"content-disposition": f'attachment; filename="holdfast-{name}"'}
    return StreamingResponse(body, media_type=media_type, headers=headers)


def item_markdown(item: AnyItem) -> str:
    """Return an item as Markdown; empty for a turn that ended normally."""
    match item:
        case MessageItem():
            return f"## {AUTHORS.get(item.source, 'You')}, {_time(item.at)} ({_fate(item)})\n\n{item.text}\n"
        case NoteItem():
            return f"## Note, {_time(item.at)}\n\n{item.text}\n"
        case StepItem():
            return _step(item)
        case WaitItem():
            return _wait(item)
        case ChapterItem():
            lines = "".join(f"\n\n{line}" for line in chapter_lines(item))
            return f"---\n\n*Chapter {item.chapter} begins, {_time(item.at)}: {item.reason}*{lines}\n"
        case SummaryItem():
            quoted = "".join(f"\n> {line}" for line in item.summary.splitlines())
            return f"*{summary_text(item, clock=_time)}*\n" + (f"{quoted}\n" if quoted else "")
        case TurnEndItem(outcome="done"):
            return ""
        case TurnEndItem():
            return f"*{turn_end_text(item)}*\n"
        case NoticeItem():
            return f"*{_time(item.at)}: {notice_text(item.event, clock=_time)}*\n"
        case _ as never:
            assert_never(never)


def _time(at: int) -> str:
    return datetime.datetime.fromtimestamp(at / 1000, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _fate(item: QueuedItem) -> str:
    """Return what happened to a queued message."""
    fates = {"queued": "still queued", "taken": f"turn {item.turn}", "joined": f"joined turn {item.turn}"}
    fate = fates.get(item.state) or f"withdrawn by {item.withdrawn_by}"
    return "; ".join([*map(revision_text, item.revisions), fate])


def _step(item: StepItem) -> str:
    reason = item.problem.message if item.problem is not None else item.cut_reason
    head = f"## Agent, {_time(item.ended_at or item.at)}{f' (partial: {reason})' if reason else ''}\n"
    text = item.text or ("" if item.calls or reason else "*Empty answer.*")
    return "\n".join([head, *([f"{text}\n"] if text else []), *map(_call, item.calls)])


def _call(call: ToolCallView) -> str:
    detail = call_detail(call)
    result = f"{call.state} ({detail})" if detail else call.state
    took = f" in {call.duration_ms} ms" if call.duration_ms is not None else ""
    fence = "~~~~" if "```" in call.output else "```"
    output = f":\n\n{fence}\n{call.output}\n{fence}\n" if call.output else "\n"
    return f"- `{call.tool}` {call.arguments}\n\nTool `{call.tool}` {result}{took}{output}"


def _wait(item: WaitItem) -> str:
    choices = "".join(f"\n- {choice}" for choice in item.choices) if item.purpose != "approval" else ""
    question = f"## {WAITS[item.purpose]}, {_time(item.at)}\n\n{item.reason}\n" + (f"{choices}\n" if choices else "")
    if item.answer is None:
        return question
    return f"{question}\n## Answer by {item.answer.by}, {_time(item.answer.at)}\n\n{answer_text(item.answer)}\n"
