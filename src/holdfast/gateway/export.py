"""A conversation as a file: markdown to read, JSON lines to keep."""

from __future__ import annotations

import datetime
from collections.abc import AsyncGenerator

from starlette.responses import Response, StreamingResponse

from holdfast.domain.events import AnyEvent, session_stream
from holdfast.domain.events.chapter import ChapterOpened, ChapterRejoined, SummaryWritten
from holdfast.domain.events.session import (
    InputReceived,
    ModelFailed,
    ModelInterrupted,
    ModelResponded,
    NoteReceived,
    Purpose,
    ToolCallFinished,
    TurnFinished,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.queue import edited
from holdfast.store.contract import Store

PAGE = 5000


async def as_jsonl(store: Store, session: str) -> Response:
    """The stored records, one a line."""

    async def lines() -> AsyncGenerator[bytes, None]:
        after = 0
        while page := (await store.read(session_stream(session), after=after, limit=PAGE)).lines:
            yield b"\n".join(page) + b"\n"
            after += len(page)

    return StreamingResponse(lines(), media_type="application/jsonl", headers=_attachment(session, "jsonl"))


async def as_markdown(store: Store, session: str, *, title: str) -> Response:
    """What was said and done, for people."""
    records = await store.load(session_stream(session), after=0)
    parts = [f"# {title or session}\n\nSession `{session}`\n"]
    withdrawn, reads = edited(records)
    retries = {r.event.wait for r in records if isinstance(r.event, WaitOpened) and r.event.purpose == "retry"}
    for record in records:
        event: AnyEvent = record.event
        if isinstance(event, InputReceived):
            if event.input in withdrawn:
                continue
            event = reads[event.input]
        if isinstance(event, WaitOpened | WaitAnswered) and event.wait in retries:
            continue
        if text := _paragraph(event, record.at):
            parts.append(text)
    body = "\n".join(parts).encode()
    return Response(body, media_type="text/markdown", headers=_attachment(session, "md"))


def _attachment(session: str, suffix: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="holdfast-{session}.{suffix}"'}


QUESTIONS: dict[Purpose, str] = {
    "question": "Question",
    "approval": "Approval asked for",
    "resume": "Interrupted",
    "compaction": "The context is too long",
    "retry": "Waits for another try",
}


def _result(call: ToolCallFinished) -> str:
    """How a call ended, with what is known of its command."""
    detail = call.signal or (f"exit code {call.exit_code}" if call.exit_code else "")
    word = "stopped" if call.stopped else "started" if call.running else call.outcome
    return f"failed ({detail})" if detail and word == "done" else f"{word} ({detail})" if detail else word


def _paragraph(event: AnyEvent, at: int) -> str:
    when = datetime.datetime.fromtimestamp(at / 1000, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    match event:
        case InputReceived() as e:
            return f"## {'Note' if e.source == 'task' else 'You'}, {when}\n\n{e.text}\n"
        case NoteReceived() as e:
            return f"## Note, {when}\n\n{e.text}\n"
        case ModelResponded() as e:
            calls = "".join(f"\n- `{call.tool}` {call.arguments}" for call in e.calls)
            return f"## Agent, {when}\n\n{e.text}\n{calls}\n"
        case ModelInterrupted() as e:
            return f"## Agent, {when} (partial: {e.reason})\n\n{e.text}\n"
        case ModelFailed() as e if e.text:
            return f"## Agent, {when} (partial: {e.problem.message})\n\n{e.text}\n"
        case ToolCallFinished() as e:
            fence = "~~~~" if "```" in e.output else "```"
            return f"Tool `{e.tool}` {_result(e)} in {e.duration_ms} ms:\n\n{fence}\n{e.output}\n{fence}\n"
        case WaitOpened() as e:
            choices = "".join(f"\n- {choice}" for choice in e.choices) if e.purpose != "approval" else ""
            return f"## {QUESTIONS[e.purpose]}, {when}\n\n{e.reason}\n{choices}\n"
        case WaitAnswered() as e:
            note = f" ({e.note})" if e.note else ""
            return f"## Answer by {e.by}, {when}\n\n{e.answer}{note}\n"
        case TurnFinished(outcome="failed" | "stopped") as e:
            return f"*Turn {e.turn} {e.outcome}: {e.reason}*\n"
        case ChapterOpened() as e:
            return f"---\n\n*Chapter {e.chapter} begins, {when}: {e.reason}*\n"
        case ChapterRejoined() as e:
            return f"*Chapter {e.chapter} was undone by {e.by}, {when}*\n"
        case SummaryWritten(purpose="compaction") as e:
            what = "A summary" if e.source == "model" else "A digest, made by a rule,"
            quoted = "\n".join(f"> {line}" for line in e.summary.splitlines())
            step = f", of this turn up to step {e.covers_step}" if e.covers_step else ""
            return f"*{what} of the turns up to {e.covers_turn}{step}, {when}:*\n\n{quoted}\n"
        case _:
            return ""
