"""Records and deltas in, blocks out: each thing shown once, in the order of the conversation."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.cli.chat.attach import while_away
from holdfast.cli.chat.blocks import NoticeBlock, QuestionBlock, TextBlock, ThinkingBlock, ToolBlock, UserBlock
from holdfast.cli.chat.streaming import OTHERWISE
from holdfast.domain.transcript_items import MessageItem
from holdfast.domain.transcript_text import call_detail
from holdfast.schemas.sessions import SessionDetail
from tests.chat.story import Json, Story


def test_an_answer_without_deltas() -> None:
    story = Story().begin()
    assert story.answered("one\n\ntwo") == [TextBlock("one"), TextBlock("two")]
    assert story.finished() == []
    assert story.blocks == [UserBlock("hello"), TextBlock("one"), TextBlock("two")]
    assert (story.view.state, story.view.cost.tokens, story.view.cost.dollars) == ("idle", 7, 0.5)


def test_streamed_pieces_are_shown_once_also_after_a_reconnect() -> None:
    story = Story().begin()
    assert story.spoken("one\n\ntw") == [TextBlock("one")]
    assert story.view.answer_stream.rest.markdown == "tw"
    assert story.spoken("one\n\ntwo thr", offset=0) == []  # attached again: the text so far once more
    assert story.spoken("three", offset=14) == []  # beyond a gap: the event will bring it
    assert story.spoken("r", offset=9) == []  # known already
    assert story.view.answer_stream.rest.markdown == "two thr"
    assert story.answered("one\n\ntwo three") == [TextBlock("two three")]
    assert story.spoken("one\n\ntwo three") == []  # late
    assert story.view.answer_stream.rest.markdown == ""


def test_an_answer_that_was_stored_otherwise_is_shown_whole_and_said_so() -> None:
    story = Story().begin()
    story.spoken("one\n\ntwo ")
    assert story.answered("one\n\n2") == [TextBlock("2")]  # what was printed still holds
    other = Story().begin()
    other.spoken("one\n\ntwo ")
    assert other.answered("1\n\n2") == [NoticeBlock(OTHERWISE, "warning"), TextBlock("1"), TextBlock("2")]


def test_thinking_is_folded_before_what_is_said() -> None:
    story = Story().begin()
    assert story.spoken("", thinking="let me see") == []
    assert story.view.answer_stream.thinking == "let me see"
    story.seconds = 3.0
    assert story.spoken("so", thinking=" now", thinking_offset=10) == [ThinkingBlock(1, "let me see now", 3000)]
    assert story.view.answer_stream.thinking == ""
    assert story.answered("so", thinking="let me see now") == [TextBlock("so")]
    assert story.view.answer_stream.thoughts == ["let me see now"]
    later = Story().begin()
    assert later.answered("so", thinking="hm") == [ThinkingBlock(1, "hm", None), TextBlock("so")]


def test_messages_wait_in_the_queue_until_a_turn_takes_them() -> None:
    story = Story().begin()
    story.said("i2", "second")
    story.said("i3", "now", mode="steer", by="api")
    assert [queued.text for queued in story.view.queue.values()] == ["second", "now"]
    assert story.happened("InputsJoined", turn=1, inputs=["i3"]) == [UserBlock("now", "api · joined the turn")]
    story.answered("done")
    story.finished()
    assert story.view.state == "queued"
    story.turn(2, "i2")
    assert story.blocks[-1] == UserBlock("second")
    assert story.view.queue == {}


def test_a_cut_answer_stays_and_the_step_begins_again() -> None:
    story = Story().begin()
    story.spoken("one two")
    cut = {"turn": 1, "step": 1, "text": "one", "thinking": "", "reason": "the gateway was killed"}
    assert story.happened("ModelInterrupted", **cut) == [TextBlock("one two")]  # we saw more than was kept
    assert story.happened("TurnResumed", turn=1, attempt=1, reason="killed", away_ms=1500) == [
        NoticeBlock("Turn 1 resumed after 1 s, attempt 1: killed.", "warning")
    ]
    assert story.question_block() == []
    assert story.spoken("one two three") == []
    assert story.answered("one two three") == [TextBlock("one two three")]


def test_what_was_seen_of_an_answer_stays_when_nothing_of_it_was_stored() -> None:
    story = Story().begin()
    story.spoken("one two")
    cut = {"turn": 1, "step": 1, "text": "", "thinking": "", "reason": "the gateway was killed"}
    assert story.happened("ModelInterrupted", **cut) == [TextBlock("one two")]
    assert story.view.transcript.live_step is None


def test_without_a_resume_it_is_said_that_the_step_begins_again() -> None:
    story = Story().begin()
    story.happened("ModelInterrupted", turn=1, step=1, text="one", thinking="", reason="the network")
    assert story.question_block() == [NoticeBlock("cut: the network; this step begins again", "warning")]


def test_tool_calls_are_one_line_each_and_can_be_opened() -> None:
    story = Story().begin()
    story.answered("", calls=[{"call": "1.1.0", "tool": "read", "arguments": '{"path": "a"}'}])
    assert story.view.running == []
    story.happened("ToolCallStarted", turn=1, call="1.1.0", tool="read", effect="pure")
    assert [(one.number, one.call.tool) for one in story.view.running] == [(1, "read")]
    ended = {"turn": 1, "call": "1.1.0", "tool": "read", "outcome": "done", "output": "text", "duration_ms": 12}
    (shown,) = story.happened("ToolCallFinished", **ended)
    assert isinstance(shown, ToolBlock)
    call = shown.call
    assert (shown.number, call.tool, call.arguments, call.state) == (1, "read", '{"path": "a"}', "done")
    assert (call.output, call.duration_ms) == ("text", 12)
    assert story.view.running == []
    assert story.view.calls[0].call.output == "text"


@pytest.mark.parametrize(
    ("how", "result", "detail"),
    [
        ({"exit_code": 0}, "done", ""),
        ({"exit_code": 3}, "failed", "exit code 3"),
        ({"signal": "SIGKILL"}, "failed", "SIGKILL"),
        ({"outcome": "unknown", "stopped": True}, "stopped", ""),
        ({"task": "t1", "running": True}, "started", ""),
        ({"outcome": "unknown"}, "unknown", ""),
    ],
)
def test_a_command_that_failed_looks_failed(how: Json, result: str, detail: str) -> None:
    story = Story().begin()
    story.answered("", calls=[{"call": "1.1.0", "tool": "terminal", "arguments": "{}"}])
    story.happened("ToolCallStarted", turn=1, call="1.1.0", tool="terminal", effect="keyed")
    ended = {"turn": 1, "call": "1.1.0", "tool": "terminal", "outcome": "done", "output": "x", "duration_ms": 12}
    (shown,) = story.happened("ToolCallFinished", **ended | how)
    assert isinstance(shown, ToolBlock)
    assert (shown.call.state, call_detail(shown.call)) == (result, detail)


def test_the_half_answer_of_a_model_that_failed_stays() -> None:
    story = Story().begin()
    problem = {"code": "network", "message": "The line was cut.", "hint": ""}
    assert story.happened("ModelFailed", turn=1, step=1, problem=problem, text="one two") == [TextBlock("one two")]


WAIT: Json = {"turn": 1, "wait": "w1", "call": "1.1.0", "until": None, "default": None, "pattern": "write:*"}


def test_an_approval_shows_what_it_is_about() -> None:
    story = Story().begin()
    story.answered("", calls=[{"call": "1.1.0", "tool": "write", "arguments": '{"path": "a"}'}])
    choices = ["allow", "session", "always", "deny"]
    shown = story.happened("WaitOpened", **WAIT, purpose="approval", reason="write a needs…", choices=choices)
    assert story.view.state == "waiting"
    assert story.view.wait is not None
    assert shown == [QuestionBlock(story.view.wait, '{"path": "a"}')]
    assert (story.view.wait.reason, story.view.wait.choices) == ("write a needs…", choices)
    assert story.view.wait.wants_answer
    told = story.happened("WaitAnswered", turn=1, wait="w1", answer="deny", by="cli", note="not there")
    assert told == [NoticeBlock("→ deny (not there) · cli", "plain")]
    assert story.view.wait is None


def test_a_question_and_its_answer_are_not_shown_as_a_tool_call_too() -> None:
    story = Story().begin()
    story.answered("", calls=[{"call": "1.1.0", "tool": "question", "arguments": "{}"}])
    (shown,) = story.happened("WaitOpened", **WAIT, purpose="question", reason="Which?", choices=["a"])
    assert isinstance(shown, QuestionBlock)
    assert (shown.wait.reason, shown.wait.choices, shown.arguments) == ("Which?", ["a"], "")
    story.happened("WaitAnswered", turn=1, wait="w1", answer="a", by="cli")
    ended = {"turn": 1, "call": "1.1.0", "tool": "question", "outcome": "done", "output": "a", "duration_ms": 1}
    assert story.happened("ToolCallFinished", **ended) == []


def test_a_retry_wants_no_answer_and_its_end_is_not_shown() -> None:
    story = Story().begin()
    shown = story.happened("WaitOpened", turn=1, wait="w1", purpose="retry", reason="429.", until=9_000)
    assert shown == [NoticeBlock("waits and tries again: 429.", "warning")]
    assert story.view.wait is not None
    assert not story.view.wait.wants_answer
    assert story.happened("WaitAnswered", turn=1, wait="w1", answer="try again", by="the clock") == []


NO_KEY = {"code": "no_key", "message": "No key.", "hint": "Set it."}


@pytest.mark.parametrize(
    ("outcome", "reason", "problem", "words"),
    [
        ("stopped", "stopped by cli", None, "Turn 1 was stopped by cli."),
        ("stopped", "interrupted by a message", None, "Turn 1 was stopped: interrupted by a message."),
        ("failed", "No key.", NO_KEY, "Turn 1 failed: No key. Set it."),
    ],
)
def test_how_a_turn_ends(outcome: str, reason: str, problem: Json | None, words: str) -> None:
    (remark,) = Story().begin().finished(outcome=outcome, reason=reason, problem=problem)
    assert isinstance(remark, NoticeBlock)
    assert remark.text == words


def test_a_view_may_begin_in_the_middle() -> None:
    row: Json = {
        "id": "ab" * 8,
        "title": "T",
        "cwd": "/",
        "profile": "p",
        "model": "",
        "state": "running",
        "turn_state": None,
    }
    row |= dict.fromkeys(("parent", "task", "preview"), "") | dict.fromkeys(("archived", "pinned"), False)
    row |= dict.fromkeys(("created_at", "updated_at", "version", "message_count", "queued", "turn", "chapter"), 1)
    turn: Json = {
        "turn": 4,
        "state": "running",
        "started_at": 7,
        "finished_at": None,
        "input_tokens": 1,
        "output_tokens": 2,
    }
    turn |= {"steps": 1, "resumes": 0, "cost": None, "reason": ""}
    queue = [{"version": 3, "input": "i9", "text": "later", "mode": "queue", "by": "cli", "source": "message", "at": 1}]
    story = Story()
    story.view.seed(msgspec.convert({"session": row, "turns": [turn], "queue": queue}, SessionDetail))
    assert (story.view.state, story.view.cost.tokens) == ("running", 3)
    story.said("i9", "later")  # the snapshot knew it already
    assert len(story.view.queue) == 1
    assert story.finished(4) == []
    story.turn(5, "i9", "from long ago")
    assert story.blocks == [UserBlock("later")]


def test_events_of_the_future_and_of_the_past_do_no_harm() -> None:
    story = Story().begin()
    future = {"version": len(story.records) + 1, "at": 0, "event": {"kind": "SomethingNew", "x": 1}}
    assert story.view.apply_record(future) == []
    assert story.view.version == len(story.records) + 1
    (shown,) = story.happened("WaitOpened", turn=1, wait="w", purpose="resume", reason="old")
    assert isinstance(shown, QuestionBlock)
    assert shown.wait.reason == "old"


def test_what_happened_while_away() -> None:
    story = Story().begin()
    story.answered("one")
    story.answered(" ", calls=[{"call": "1", "tool": "read", "arguments": ""}])
    for purpose in ("question", "approval", "approval", "retry"):
        story.happened("WaitOpened", turn=1, wait="w", purpose=purpose, reason="?")
    story.finished(outcome="failed", reason="x")
    changes = [change for _, change in story.changes]
    assert while_away(changes) == "2 messages, 1 question, 2 approvals, 1 failed turn"
    assert while_away([]) == ""


def test_the_queue_follows_every_edit() -> None:
    story = Story().begin()
    for input in ("a", "b", "c"):
        story.said(input, f"text {input}")
    nothing: Json = {"text": None, "mode": None, "place": None, "by": "web"}
    assert story.happened("InputRevised", **nothing | {"input": "c", "place": 1}) == []
    story.happened("InputRevised", **nothing | {"input": "a", "text": "other", "mode": "steer"})
    assert story.happened("InputWithdrawn", input="b", by="web") == [NoticeBlock("withdrawn by web: text b")]
    story.happened("InputRevised", **nothing | {"input": "b", "text": "late"})
    waiting = [item for item in story.view.queue.values() if isinstance(item, MessageItem)]
    found = [(item.input, item.text, item.mode) for item in waiting]
    assert found == [("c", "text c", "queue"), ("a", "other", "steer")]
