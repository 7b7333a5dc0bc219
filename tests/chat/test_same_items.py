"""One conversation with everything in it: the chat, the log and the export show the same items, one by one.

The dashboard's fold is held to the same items by web/src/log/transcript.test.ts, its page by
tests/web/test_same_items.py.
"""

from __future__ import annotations

from collections.abc import Callable

import click
import msgspec
import pytest

from holdfast.cli.chat.paint import Painter
from holdfast.cli.chat.view import View
from holdfast.cli.context import Cli
from holdfast.cli.render.transcript import LogPrinter
from holdfast.cli.screen import format_time
from holdfast.client.events import RecordReceived, TextDelta
from holdfast.domain.events.chapter import ChapterRejoined, ResetPostponed, SummaryRequested
from holdfast.domain.events.session import StopRequested
from holdfast.domain.transcript_items import (
    AnyItem,
    ChapterItem,
    MessageItem,
    NoteItem,
    NoticeItem,
    StepItem,
    SummaryItem,
    ToolCallView,
    TurnEndItem,
    WaitItem,
)
from holdfast.domain.transcript_text import notice_text
from holdfast.gateway.export import item_markdown
from tests.domain.test_transcript import load, play

NAME = "everything"


def words(item: AnyItem) -> list[str]:
    """What has to be read of an item, wherever it is shown."""
    match item:
        case MessageItem(withdrawn_by=by) | NoteItem(withdrawn_by=by):
            return [*item.text.split("\n"), *([f"withdrawn by {by}"] if by is not None else [])]
        case StepItem():
            return [*item.text.split("\n"), *(word for call in item.calls for word in outcome(call))]
        case WaitItem(answer=answer):
            return [item.reason, *([answer.answer, answer.note] if answer is not None else [])]
        case ChapterItem():
            return [item.reason, *(one.title for one in [*item.kept, *item.stopped])]
        case SummaryItem():
            return ["replaces the turns up to"]
        case TurnEndItem(outcome="done"):
            return []
        case TurnEndItem(reason=reason):
            return [reason]
        case NoticeItem(event=event):
            return [notice_text(event, clock=format_time)]


def outcome(call: ToolCallView) -> list[str]:
    """How a call ended, unless it simply did; a question is shown as a wait."""
    if call.tool == "question":
        return []
    if call.exit_code:
        return [call.tool, f"exit code {call.exit_code}"]
    return [call.tool, *(call.output.splitlines()[:1] if call.state in ("failed", "stopped") else [])]


def in_order(item: AnyItem) -> bool:
    """The terminal prints what was queued when a turn takes it, and a text when it is finished."""
    return not isinstance(item, MessageItem | NoteItem | StepItem)


def check(shown: str, *, skipped: tuple[type, ...] = (), words: Callable[[AnyItem], list[str]] = words) -> None:
    """Everything of every item is there, and what cannot change later stands in the order of the log."""
    text, place = " ".join(shown.split()), 0
    for item in play(load(NAME)["input"]).items:
        if isinstance(item, NoticeItem) and isinstance(item.event, skipped):
            continue
        for part in words(item):
            wanted = " ".join(part.split())
            assert wanted in text, item
            if in_order(item) and isinstance(item, NoticeItem | ChapterItem | SummaryItem):
                found = text.find(wanted, place)
                assert found >= 0, item
                place = found


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "2000")


def test_the_conversation_has_everything_in_it() -> None:
    items = play(load(NAME)["input"]).items
    calls = [call for item in items if isinstance(item, StepItem) for call in item.calls]
    messages = [item.state for item in items if isinstance(item, MessageItem)]
    waits = {item.purpose: item.answer for item in items if isinstance(item, WaitItem)}
    assert any(call.state == "failed" and call.exit_code == 3 for call in calls), "a failed command"
    assert any(call.state == "stopped" for call in calls), "a stopped command"
    assert waits["approval"] is not None and waits["question"] is not None, "an approval and a question, answered"
    assert {"taken", "joined", "withdrawn"} <= set(messages), "a queue, and a message that was withdrawn"
    assert any(isinstance(item, ChapterItem) for item in items), "a reset"
    assert any(isinstance(item, SummaryItem) and item.state == "done" for item in items), "a compaction"
    assert any(isinstance(item, NoteItem) and item.task for item in items), "a note about a task"


def test_the_log_shows_every_item(capsys: pytest.CaptureFixture[str]) -> None:
    printer = LogPrinter(Cli())
    for piece in load(NAME)["input"]:
        if "event" in piece:
            printer.show(RecordReceived(piece))
    check(click.unstyle(capsys.readouterr().out))


def test_the_export_has_every_item() -> None:
    check("\n".join(map(item_markdown, play(load(NAME)["input"]).items)))


@pytest.mark.parametrize("streamed", [True, False])
def test_the_chat_shows_every_item(*, streamed: bool) -> None:
    """But for what it shows in another form: a reset that is undone as a divider, a stop while it lasts."""
    view, painter, lines = View(lambda: 0.0), Painter(2000, colors=False, styled=False), list[str]()
    for piece in load(NAME)["input"]:
        if "event" in piece:
            blocks = view.apply_record(piece)
        else:
            blocks = view.apply_delta(msgspec.convert(piece, TextDelta)) if streamed else []
        lines += [line for block in blocks for line in painter.block(block)]
    check("\n".join(lines), skipped=(ChapterRejoined, ResetPostponed, StopRequested, SummaryRequested))
    assert "chapter 2 undone by api" in "\n".join(lines)
    assert (view.state, view.version) == (load(NAME)["state"], len([p for p in load(NAME)["input"] if "event" in p]))
