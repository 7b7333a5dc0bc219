"""Finding the answer to one message in the log, and showing text that comes in pieces."""

from __future__ import annotations

from typing import Any

import pytest
from click import unstyle

from holdfast.cli.answer import AGAIN, LiveAnswer, StreamingText, Watch, arguments_line
from holdfast.cli.inbox import entry_lines
from holdfast.client.events import RecordReceived, TextDelta


def _happened(version: int, kind: str, **fields: Any) -> RecordReceived:
    return RecordReceived({"version": version, "event": {"kind": kind, **fields}})


def _responded(text: str, *, turn: int = 1, step: int = 1) -> dict[str, Any]:
    return {"kind": "ModelResponded", "turn": turn, "step": step, "text": text, "calls": []}


def test_a_watch_sees_only_the_turn_of_its_input() -> None:
    watch = Watch("mine")
    assert not watch.see(_happened(1, "TurnStarted", turn=1, inputs=["other"]))
    assert not watch.see(_happened(2, "ModelResponded", turn=1, text="not this"))
    assert not watch.see(_happened(3, "TurnFinished", turn=1, outcome="done", reason=""))
    assert watch.see(_happened(4, "TurnStarted", turn=2, inputs=["mine"]))
    watch.see(_happened(5, "ModelResponded", turn=2, text="one"))
    watch.see(_happened(6, "ModelResponded", turn=2, text=""))
    watch.see(_happened(7, "ModelResponded", turn=2, text="two"))
    watch.see(_happened(8, "TurnFinished", turn=2, outcome="done", reason="r"))
    assert (watch.turn, watch.outcome, watch.text, watch.version) == (2, "done", "one\n\ntwo", 8)


def test_a_message_that_joins_is_watched_from_there() -> None:
    watch = Watch("mine")
    watch.see(_happened(1, "ModelResponded", turn=3, text="before"))
    watch.see(_happened(2, "InputsJoined", turn=3, inputs=["other", "mine"]))
    watch.see(_happened(3, "ModelResponded", turn=3, text="after"))
    assert (watch.turn, watch.text) == (3, "after")


def test_text_that_comes_again_is_not_shown_again() -> None:
    live = StreamingText()
    assert live.spoken(TextDelta(1, 1, 0, "one ")) == "one "
    assert live.spoken(TextDelta(1, 1, 4, "two ")) == "two "
    assert live.spoken(TextDelta(1, 1, 0, "one two thr")) == "thr"
    assert live.spoken(TextDelta(1, 1, 0, "one")) == ""
    assert live.spoken(TextDelta(1, 1, 99, "far ahead")) == ""
    assert live.responded(_responded("one two three")) == ("ee", True)
    assert live.spoken(TextDelta(1, 2, 0, "next")) == "next"
    assert live.responded(_responded("something else", step=2)) == ("something else", False)


def test_a_cut_answer_is_marked_only_when_it_begins_again(capsys: pytest.CaptureFixture[str]) -> None:
    live = LiveAnswer()
    live.spoken(TextDelta(1, 1, 0, "a b"))
    live.happened({"kind": "ModelInterrupted", "turn": 1, "step": 1})
    assert AGAIN not in capsys.readouterr().err
    live.spoken(TextDelta(1, 1, 0, "a b c"))
    live.happened(_responded("a b c d"))
    out, err = capsys.readouterr()
    assert (out, err) == ("a b c d\n", AGAIN + "\n")


def test_two_answers_of_a_turn_stand_apart(capsys: pytest.CaptureFixture[str]) -> None:
    live = LiveAnswer()
    live.happened(_responded("first"))
    live.spoken(TextDelta(1, 2, 0, "sec"))
    live.happened(_responded("second", step=2))
    live.happened(_responded("", step=3))
    live.happened({"kind": "TurnFinished"})
    assert capsys.readouterr().out == "first\n\nsecond\n"


def test_arguments_are_told_briefly() -> None:
    assert arguments_line('{"path": "a", "content": "x\\ny"}') == "path=a content=x y"
    assert arguments_line("not json " * 10) == "not json not json not json not json not…"
    assert arguments_line("[1]") == "[1]"
    assert arguments_line("") == ""


def test_the_inbox_shows_the_rule_that_an_answer_would_set() -> None:
    entry = {
        "kind": "approval",
        "stream": "session/a",
        "since": 0,
        "title": "t",
        "what": "w",
        "id": "1f",
        "commands": [],
    }
    assert unstyle(entry_lines(entry, [], "terminal:ls *")[-1]).endswith("--session or --always allows terminal:ls *")
    assert len(entry_lines(entry, [])) == 2
