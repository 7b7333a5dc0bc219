"""A conversation as Markdown has all messages, questions and answers, and how commands ended."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.domain.events import session_stream
from holdfast.domain.events.actor import THE_CLOCK
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import (
    InputReceived,
    InputRevised,
    InputWithdrawn,
    ModelFailed,
    ModelRequested,
    NoteReceived,
    SessionCreated,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.transcript_items import StepItem, ToolCallView
from holdfast.gateway.export import PAGE, as_markdown, item_markdown
from holdfast.store.contract import Append, Write
from holdfast.store.sqlite.store import SqliteStore
from tests.actors import person

SESSION = "ab12ab12ab12ab12"


async def export(store: SqliteStore) -> list[str]:
    parts = as_markdown(store, SESSION, title="t").body_iterator
    return [part.decode() async for part in parts if isinstance(part, bytes)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            ToolCallView(call="c", tool="terminal", state="failed", exit_code=3, duration_ms=5),
            "failed (exit code 3) in",
        ),
        (ToolCallView(call="c", tool="terminal", state="failed", signal="SIGKILL"), "failed (SIGKILL)"),
        (ToolCallView(call="c", tool="terminal", state="stopped", duration_ms=5), "stopped in 5 ms"),
        (ToolCallView(call="c", tool="terminal", state="started", task="t", duration_ms=5), "started in 5 ms"),
        (ToolCallView(call="c", tool="terminal", state="done", exit_code=0, duration_ms=5), "done in 5 ms"),
        (ToolCallView(call="c", tool="terminal", state="running"), "running"),
    ],
)
def test_a_call_says_how_its_command_ended(call: ToolCallView, words: str) -> None:
    step = StepItem(version=1, at=0, turn=1, step=1, profile="", model="", state="done", calls=[call])
    assert f"Tool `terminal` {words}" in item_markdown(step)


async def test_questions_approvals_answers_and_half_answers_are_there(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "holdfast.db")
    events = (
        SessionCreated(session=SESSION, profile="demo", cwd="/", title="t", by=person("cli")),
        InputReceived(input="i", text="hello", mode="queue", by=person("cli")),
        ModelRequested(turn=1, step=1, attempt=1, model="m", context_version=2),
        ModelFailed(turn=1, step=1, problem=Problem(code="network", message="It was cut."), text="half an answ"),
        WaitOpened(turn=1, wait="w0", purpose="retry", reason="busy", until=5, default="go on"),
        WaitAnswered(turn=1, wait="w0", answer="go on", by=THE_CLOCK),
        WaitOpened(turn=1, wait="w1", purpose="question", reason="Which one?", choices=["a", "b"]),
        WaitAnswered(turn=1, wait="w1", answer="a", by=person("web")),
        WaitOpened(turn=1, wait="w2", purpose="approval", reason="allow write x?", choices=["allow"]),
        WaitAnswered(turn=1, wait="w2", answer="deny", by=person("cli"), note="not there"),
        InputReceived(input="j", text="never mind", mode="queue", by=person("cli")),
        InputRevised(input="j", text="really never mind", by=person("web")),
        InputWithdrawn(input="j", by=person("web")),
    )
    # Only the events matter here: a stream that is no session has no rows to project them into.
    await store.append(Append((Write(session_stream(SESSION), events[:2], expect=0),), 0))
    await store.append(Append((Write(session_stream(SESSION), events[2:]),), 0))
    text = "".join(await export(store))
    await store.close()
    assert "(still queued)\n\nhello" in text
    assert "(partial: It was cut.)\n\nhalf an answ" in text
    assert "## Waiting for the next attempt, " in text
    assert "## Question, " in text and "Which one?\n\n- a\n- b" in text
    assert "## Answer by web, " in text
    assert "## Approval requested, " in text and "allow write x?" in text
    assert "deny (not there)" in text
    assert "(reworded by web; withdrawn by web)\n\nreally never mind" in text


async def test_a_long_session_is_written_page_by_page(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "holdfast.db")
    created = SessionCreated(session=SESSION, profile="demo", cwd="/", title="t", by=person("cli"))
    notes = tuple(NoteReceived(text=f"note {number}", task="t") for number in range(2 * PAGE))
    await store.append(Append((Write(session_stream(SESSION), (created, *notes), expect=0),), 0))
    parts = await export(store)
    await store.close()
    assert [part.count("## Note") for part in parts] == [0, PAGE - 2, PAGE, 1, 1]
    assert re.findall(r"note (\d+)", "".join(parts)) == [str(number) for number in range(2 * PAGE)]
