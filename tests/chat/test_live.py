"""What stands above the prompt and below it, at two widths."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.cli.chat.connection import OutgoingMessage, SessionRef
from holdfast.cli.chat.live import LiveState, live_lines, toolbar
from holdfast.cli.chat.paint import Painter
from holdfast.cli.screen import width
from tests.chat.story import Story


def now(story: Story, **more: Any) -> LiveState:
    given: dict[str, Any] = {"unsent": [], "away_since": None, "thinking_open": False, "last": None}
    return LiveState(view=story.view, **given | {"clock_ms": 20_000, "monotonic": 100.0} | more)


def lines(story: Story, rows: int = 20, **more: Any) -> list[str]:
    return live_lines(now(story, **more), Painter(80, colors=False, styled=False), rows)


def bar(story: Story, columns: int, **more: Any) -> str:
    return "".join(text for _, text in toolbar(now(story, **more), columns))


def test_the_streamed_piece_and_the_queue() -> None:
    story = Story().begin()
    story.spoken("one **two** three")
    story.said("i2", "second\nline")
    story.said("i3", "third", mode="interrupt")
    assert lines(story) == ["one two three", "", "queued 5 second line", "interrupt 6 third"]


def test_a_message_that_is_about_to_be_taken_looks_as_it_will() -> None:
    story = Story()
    story.created()
    story.said("i1", "hello")
    assert lines(story) == ["", "› hello"]  # noqa: RUF001


def test_too_much_of_everything_leaves_room() -> None:
    story = Story().begin()
    story.spoken("\n".join(f"line {number}" for number in range(50)))
    for number in range(9):
        story.said(f"q{number}", "x")
    shown = lines(story, rows=12)
    assert len(shown) == 12
    assert shown[-1] == "  and 5 more messages"
    assert "line 49" in shown


def test_thinking_is_one_line_until_it_is_opened() -> None:
    story = Story().begin()
    story.spoken("", thinking="a\n\nb\n\nc")
    story.seconds = 4.2
    assert lines(story) == ["✻ thinking… 4 s (Ctrl-T opens it)"]
    assert lines(story, thinking_open=True) == ["✻ thinking… 4 s", "  a", "  ", "  b", "  ", "  c"]


def test_running_calls_and_waiting() -> None:
    story = Story().begin()
    assert lines(story)[-1] == "… waiting for demo · 17 s"
    story.answered("", calls=[{"call": "c", "tool": "read", "arguments": '{"path": "a"}'}])
    story.happened("ToolCallStarted", turn=1, call="c", tool="read", effect="pure")
    assert lines(story) == ["⚙ read path=a · running · 15 s · [1]"]
    story.happened("WaitOpened", turn=1, wait="w", purpose="retry", reason="429", until=27_500)
    assert lines(story)[-1] == "tries again in 7 s; Ctrl-C stops the turn"


def test_what_was_not_sent_is_shown_when_it_takes_long_or_nobody_is_there() -> None:
    story = Story().begin()
    message = OutgoingMessage("message", SessionRef("abcd"), {}, "hello\nthere", at=99.9)
    assert "not sent yet hello there" not in lines(story, unsent=[message])
    assert "not sent yet hello there" in lines(story, unsent=[message], monotonic=101.0)
    assert "not sent yet hello there" in lines(story, unsent=[message], away_since=99.0)


def test_the_toolbar_says_who_what_and_how_much() -> None:
    story = Story().begin()
    story.answered("x")
    story.question_block(step=2)
    story.said("i2", "more")
    assert bar(story, 80) == "t · demo · running 18 s · 7 tokens $0.5000 · 1 queued"
    story.finished()
    assert bar(story, 80) == "t · demo · queued · 7 tokens $0.5000"


@pytest.mark.parametrize("columns", [30, 80, 120])
@pytest.mark.parametrize("title", ["short", "a title that goes on and on " * 5, "漢字" * 60, "\x1b[31mred\n" * 9])
def test_the_toolbar_fits(columns: int, title: str) -> None:
    story = Story().begin()
    story.happened("SessionRenamed", title=title, by="cli")
    for more in ({}, {"away_since": 1.0}):
        shown = bar(story, columns, **more)
        assert width(shown) < columns
        assert "\x1b" not in shown
        assert "\n" not in shown


def test_a_gateway_that_is_away_is_said_in_the_toolbar() -> None:
    story = Story().begin()
    message = OutgoingMessage("message", SessionRef("abcd"), {}, "x", at=0.0)
    assert bar(story, 80, away_since=98.0) == "t · gateway away, waiting… 2 s"
    assert bar(story, 80, away_since=90.0, unsent=[message]).endswith("10 s · 1 not sent yet · /start starts one")
