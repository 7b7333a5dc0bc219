"""A conversation as Markdown has all that was said, asked and answered, and how commands ended."""

from __future__ import annotations

from pathlib import Path

from holdfast.domain.events import session_stream
from holdfast.domain.events.actor import THE_CLOCK
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import (
    InputReceived,
    ModelFailed,
    SessionCreated,
    ToolCallFinished,
    WaitAnswered,
    WaitOpened,
)
from holdfast.gateway.export import _paragraph, as_markdown
from holdfast.store.contract import Append, Write
from holdfast.store.sqlite.store import SqliteStore
from tests.actors import person

SESSION = "ab12ab12ab12ab12"


def call(**how: object) -> ToolCallFinished:
    ended = {"turn": 1, "call": "c", "tool": "terminal", "outcome": "done", "output": "x", "duration_ms": 5}
    return ToolCallFinished(**ended | how)  # type: ignore[arg-type]


def test_a_command_that_failed_looks_failed() -> None:
    assert _paragraph(call(exit_code=3), 0).startswith("Tool `terminal` failed (exit code 3) in 5 ms")
    assert _paragraph(call(signal="SIGKILL"), 0).startswith("Tool `terminal` failed (SIGKILL) in")
    assert _paragraph(call(outcome="unknown", stopped=True), 0).startswith("Tool `terminal` stopped in")
    assert _paragraph(call(running=True, task="t"), 0).startswith("Tool `terminal` started in")
    assert _paragraph(call(exit_code=0), 0).startswith("Tool `terminal` done in")


async def test_questions_approvals_answers_and_half_answers_are_there(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "holdfast.db")
    events = (
        SessionCreated(session=SESSION, profile="demo", cwd="/", title="t", by=person("cli")),
        InputReceived(input="i", text="hello", mode="queue", by=person("cli")),
        ModelFailed(turn=1, step=1, problem=Problem(code="network", message="It was cut."), text="half an answ"),
        WaitOpened(turn=1, wait="w0", purpose="retry", reason="busy", until=5, default="go on"),
        WaitAnswered(turn=1, wait="w0", answer="go on", by=THE_CLOCK),
        WaitOpened(turn=1, wait="w1", purpose="question", reason="Which one?", choices=["a", "b"]),
        WaitAnswered(turn=1, wait="w1", answer="a", by=person("web")),
        WaitOpened(turn=1, wait="w2", purpose="approval", reason="write x needs a permission", choices=["allow"]),
        WaitAnswered(turn=1, wait="w2", answer="deny", by=person("cli"), note="not there"),
    )
    # Only the events matter here: a stream that is no session has no rows to project them into.
    await store.append(Append((Write(session_stream(SESSION), events[:2], expect=0),), 0))
    await store.append(Append((Write(session_stream(SESSION), events[2:3]),), 0))
    await store.append(Append((Write(session_stream(SESSION), events[3:]),), 0))
    text = bytes((await as_markdown(store, SESSION, title="t")).body).decode()
    await store.close()
    assert "(partial: It was cut.)\n\nhalf an answ" in text
    assert "## Question, " in text and "Which one?\n\n- a\n- b" in text
    assert "## Answer by web, " in text
    assert "## Approval asked for, " in text and "write x needs a permission" in text
    assert "deny (not there)" in text
    assert "busy" not in text
