"""Finding the answer to one message in the log, and showing text that comes in pieces."""

from __future__ import annotations

from typing import Any

import pytest
from click import unstyle

from holdfast.cli.context import Cli
from holdfast.cli.render.answer import AGAIN, AnswerPrinter
from holdfast.cli.render.inbox import entry_lines
from holdfast.cli.render.transcript import arguments_text
from holdfast.client.events import TextDelta
from holdfast.client.turn import TurnWatch
from holdfast.schemas.inbox import InboxEntry, WaitView
from tests.records import record_json


class Told:
    """A log that a watch follows, and what a terminal would show of it."""

    def __init__(self, input: str = "mine", *, shown: bool = False) -> None:
        self.watch = TurnWatch(input)
        self._printer = AnswerPrinter(Cli()) if shown else None
        self._version = 0

    def __call__(self, kind: str, **fields: Any) -> bool:
        """Fold an event; whether it belongs to the turn."""
        self._version += 1
        changes = self.watch.apply(record_json(kind, version=self._version, **fields))
        for change in changes:
            if self._printer is not None:
                self._printer.show(change)
        return bool(changes)

    def spoken(self, step: int, offset: int, text: str) -> None:
        for change in self.watch.apply_delta(TextDelta(1, step, offset, text)):
            if self._printer is not None:
                self._printer.show(change)

    def begin(self) -> Told:
        self("InputReceived", input="mine", text="x")
        self("TurnStarted", turn=1, inputs=["mine"], profile="demo")
        return self

    def step(self, turn: int, step: int, text: str) -> None:
        self("ModelRequested", turn=turn, step=step, model="m")
        self("ModelResponded", turn=turn, step=step, text=text)


def test_a_watch_sees_only_the_turn_of_its_input() -> None:
    log = Told()
    log("InputReceived", input="other", text="x")
    assert not log("InputReceived", input="mine", text="x")
    assert not log("TurnStarted", turn=1, inputs=["other"])
    log.step(1, 1, "not this")
    assert not log("TurnFinished", turn=1, outcome="done", reason="")
    assert log.watch.turn is None
    log("TurnStarted", turn=2, inputs=["mine"], profile="demo")
    log.step(2, 1, "one")
    log.step(2, 2, "")
    log.step(2, 3, "two")
    assert log("TurnFinished", turn=2, outcome="done", reason="r")
    watch = log.watch
    assert (watch.turn, watch.outcome, watch.text, watch.version) == (2, "done", "one\n\ntwo", 14)
    assert (watch.profile, watch.model) == ("demo", "m")


def test_a_question_keeps_its_lines_and_the_command_that_answers_it(capsys: pytest.CaptureFixture[str]) -> None:
    question = f"allow it?\ncommand: {'x' * 200}\nanswer with: holdfast answer 3ee45ae72707 --allow"
    AnswerPrinter(Cli()).note(question)
    assert unstyle(capsys.readouterr().err) == question + "\n"


def test_a_message_that_joins_is_watched_from_there() -> None:
    log = Told()
    log.step(3, 1, "before")
    log("InputReceived", input="mine", text="x", mode="steer")
    log("InputsJoined", turn=3, inputs=["other", "mine"])
    log.step(3, 2, "after")
    assert (log.watch.turn, log.watch.text) == (3, "after")


def test_a_withdrawn_message_ends_the_watch_and_says_who_did_it() -> None:
    log = Told()
    log("InputReceived", input="mine", text="x")
    log("InputWithdrawn", input="mine", by="web")
    assert log.watch.outcome == "stopped"
    assert log.watch.reason == "web withdrew the message before a turn took it"


def test_text_that_comes_again_is_not_shown_again(capsys: pytest.CaptureFixture[str]) -> None:
    log = Told(shown=True).begin()
    log("ModelRequested", turn=1, step=1)
    for offset, text in ((0, "one "), (4, "two "), (0, "one two thr"), (0, "one"), (99, "far ahead")):
        log.spoken(1, offset, text)
    assert capsys.readouterr().out == "one two thr"
    log("ModelResponded", turn=1, step=1, text="one two three")
    assert capsys.readouterr().out == "ee\n"


def test_an_answer_that_was_stored_otherwise_is_shown_again(capsys: pytest.CaptureFixture[str]) -> None:
    log = Told(shown=True).begin()
    log("ModelRequested", turn=1, step=1)
    log.spoken(1, 0, "next")
    log("ModelResponded", turn=1, step=1, text="something else")
    assert capsys.readouterr() == ("next\nsomething else\n", AGAIN + "\n")


def test_a_cut_answer_is_marked_only_when_it_begins_again(capsys: pytest.CaptureFixture[str]) -> None:
    log = Told(shown=True).begin()
    log("ModelRequested", turn=1, step=1)
    log.spoken(1, 0, "a b")
    log("ModelInterrupted", turn=1, step=1, text="a b")
    assert capsys.readouterr() == ("a b\n", "")
    log("ModelRequested", turn=1, step=1)
    log.spoken(1, 0, "a b c")
    log("ModelResponded", turn=1, step=1, text="a b c d")
    assert capsys.readouterr() == ("a b c d\n", AGAIN + "\n")


def test_two_answers_of_a_turn_are_separated(capsys: pytest.CaptureFixture[str]) -> None:
    log = Told(shown=True).begin()
    log.step(1, 1, "first")
    log("ModelRequested", turn=1, step=2)
    log.spoken(2, 0, "sec")
    log("ModelResponded", turn=1, step=2, text="second")
    log.step(1, 3, "")
    log("TurnFinished", turn=1)
    assert capsys.readouterr().out == "first\n\nsecond\n"


def test_what_a_failed_model_call_said_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    log = Told(shown=True).begin()
    log("ModelRequested", turn=1, step=1)
    log("ModelFailed", turn=1, step=1, text="half", problem={"code": "network", "message": "m"})
    assert capsys.readouterr().out == "half\n"


def test_arguments_are_shown_briefly() -> None:
    assert arguments_text('{"path": "a", "content": "x\\ny"}') == "path=a content=x y"
    assert arguments_text("not json " * 10) == "not json not json not json not json not…"
    assert arguments_text("[1]") == "[1]"
    assert arguments_text("") == ""


def test_the_inbox_shows_the_rule_that_an_answer_would_set() -> None:
    entry = InboxEntry(
        kind="approval",
        stream="session/a",
        version=1,
        session="a",
        since=0,
        title="t",
        what="w",
        id="1f",
        commands=[],
        link="",
    )
    wait = WaitView(
        id="1f",
        session="a",
        title="t",
        turn=1,
        version=1,
        purpose="approval",
        reason="w",
        call="1",
        choices=[],
        pattern="terminal:ls *",
        until=None,
        opened_at=0,
        shown=[],
    )
    line = unstyle(entry_lines(entry, wait)[-1])
    assert line == "  --session or --always instead of --allow: allows terminal:ls * from now on"
    assert len(entry_lines(entry, None)) == 2


def test_a_question_in_the_inbox_lists_its_choices_by_number() -> None:
    entry = InboxEntry(
        kind="question",
        id="0123456789ab",
        title="t",
        what="which?",
        since=0,
        commands=["holdfast answer 0123456789ab TEXT"],
        link="",
        stream="session/1",
        version=1,
        session="1",
    )
    wait = WaitView(
        id=entry.id,
        session="1",
        title="t",
        turn=1,
        version=1,
        purpose="question",
        reason="which?",
        call="c",
        choices=["English", "French"],
        pattern="",
        until=None,
        opened_at=0,
        shown=[],
    )
    assert [unstyle(line).strip() for line in entry_lines(entry, wait)[1:]] == [
        "which?",
        "1 English · 2 French",
        "holdfast answer 0123456789ab TEXT",
    ]
