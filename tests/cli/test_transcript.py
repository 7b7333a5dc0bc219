"""The log as a conversation, line by line."""

from __future__ import annotations

import tracemalloc
from typing import Any

import click
import pytest

from holdfast.cli.context import Cli, Terminal
from holdfast.cli.hints import program
from holdfast.cli.render.transcript import LogPrinter
from holdfast.client.events import RecordReceived
from tests.records import record_json


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


class Printed:
    """A log that is printed, without its days, versions and times."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._printer = LogPrinter(Cli())
        self._version = 1

    def __call__(self, kind: str, **fields: Any) -> list[str]:
        """The lines that an event becomes; the first of them has the label."""
        self._version += 1
        self._printer.show(RecordReceived(record_json(kind, version=self._version, **fields)))
        lines = click.unstyle(self._capsys.readouterr().out).splitlines()
        return [line[17:] for line in lines if not line.strip().startswith("1970-")]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    return Printed(capsys)


def test_every_label_is_separated_from_its_text(printed: Printed) -> None:
    (line,) = printed("TurnSuspended", turn=1, reason="goodbye")
    assert line == "suspended Turn 1 was suspended: goodbye. It resumes automatically."
    assert printed("InputReceived", input="i", text="hello", mode="queue") == ["you       hello"]


@pytest.mark.parametrize(("attempt", "words"), [(0, ""), (1, ", attempt 1"), (2, ", attempt 2")])
def test_only_a_crash_is_an_attempt(printed: Printed, attempt: int, words: str) -> None:
    (line,) = printed("TurnResumed", turn=1, attempt=attempt, reason="it was stopped", away_ms=1500)
    assert line == f"resumed   Turn 1 resumed after 1 s{words}: it was stopped."


def test_what_becomes_of_a_queued_message_is_shown(printed: Printed) -> None:
    for input in ("a", "b", "c"):
        printed("InputReceived", input=input, text=input, mode="queue")
    moved = printed("InputRevised", input="c", place=1, by="web")
    assert moved == ["queue     Message 4 was moved to place 1 by web."]
    assert printed("InputRevised", input="a", text="new", by="web") == ["you       new (reworded by web)"]
    withdrawn = printed("InputWithdrawn", input="b", by="web")
    assert withdrawn == ["queue     Message 3 was withdrawn by web."]
    taken = printed("TurnStarted", turn=1, inputs=["c"])
    assert taken == ["queue     Turn 1 took message 4."]
    assert printed("InputsJoined", turn=1, inputs=["a"]) == ["queue     Message 2 joined turn 1."]


def test_a_message_that_did_not_wait_is_one_line(printed: Printed) -> None:
    printed("InputReceived", input="a", text="a", mode="queue")
    assert printed("TurnStarted", turn=1, inputs=["a"]) == []


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"exit_code": 3}, "failed, exit code 3"),
        ({"signal": "SIGKILL"}, "failed, SIGKILL"),
        ({"outcome": "unknown", "stopped": True}, "stopped"),
        ({"task": "t1", "running": True}, "started"),
        ({"exit_code": 0}, "done"),
    ],
)
def test_a_command_that_failed_looks_failed(printed: Printed, how: dict[str, Any], words: str) -> None:
    ended = {"turn": 1, "call": "1.1.0", "tool": "terminal", "outcome": "done", "output": "", "duration_ms": 12}
    assert f"terminal · {words} · 12 ms" in printed("ToolCallFinished", **ended | how)[0]


def test_a_failed_model_call_shows_what_it_said(printed: Printed) -> None:
    printed("ModelRequested", turn=1, step=1)
    problem = {"code": "network", "message": "It was cut."}
    assert printed("ModelFailed", turn=1, step=1, text="half", problem=problem) == ["partial   half — cut: It was cut."]


def test_waits_and_answers_are_shown(printed: Printed) -> None:
    question = printed("WaitOpened", turn=1, wait="w", purpose="question", reason="Which?", choices=["a", "b"])
    assert question == ["waiting   Turn 1 waits for an answer: Which? (a, b)"]
    answered = printed("WaitAnswered", turn=1, wait="w", answer="a", note="for now", by="web")
    assert answered == ["answered  web answered: a (for now)"]


SURVIVOR: dict[str, Any] = {"pid": 7, "activity": "serving in use", "evidence": "e", "age_ms": 120_000, "rule": "r"}


def test_a_chapter_says_why_what_became_of_what_ran_and_how_to_undo_it(printed: Printed) -> None:
    first, *lines = printed(
        "ChapterOpened",
        stream="session/" + "c" * 16,
        chapter=2,
        rule="idle",
        reason="nobody said anything",
        kept=[SURVIVOR | {"task": "a" * 16, "title": "serve"}],
        stopped=[SURVIVOR | {"task": "b" * 16, "title": "watch", "rule": "its lifetime is the chapter"}],
        hand_over="all is well",
        hand_over_from="digest",
    )
    assert first == "chapter   2 begins: nobody said anything"
    assert [line.strip() for line in lines] == [
        "Kept: aaaaaaaa serve (serving in use, for 2 min 0 s)",
        "Stopped: bbbbbbbb watch (its lifetime is the chapter)",
        "Digest, made by a rule: all is well",
        f"undo: {program()} sessions undo-reset cccccccc",
    ]


def test_the_board_and_its_workers_are_described_in_plain_words(printed: Printed) -> None:
    (bound,) = printed("RunBound", card="ab12cd34", run=2)
    assert bound.startswith(
        "card      Run 2 of card ab12cd34 works in this session. Messages become comments on the card"
    )
    (released,) = printed("RunReleased", card="ab12cd34", run=2)
    assert released == "card      Run 2 of card ab12cd34 is over. Messages no longer reach the card."
    assert printed("InputReceived", input="r", text="do it", mode="queue", source="run") == ["board     do it"]
    said = printed("InputReceived", input="c", text="hi", mode="steer", by="cli", source="comment", ref="1")
    assert said == ["you       hi (comment)"]


def test_a_kind_of_a_newer_gateway_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    printer = LogPrinter(Cli())
    found = {"seq": 7, "stream": "session/s", "version": 7, "at": 0, "event": {"kind": "SomethingNew"}}
    printer.show(RecordReceived(found))
    printer.end()
    assert capsys.readouterr() == ("", "")


class NoTerminal(Terminal):
    """Prints nowhere."""

    def echo(self, text: str | bytes, *, nl: bool = True) -> None:
        pass


def test_a_long_log_is_not_held_in_memory() -> None:
    printer = LogPrinter(Cli(terminal=NoTerminal()))
    tracemalloc.start()
    try:
        for version in range(1, 100):
            printer.show(RecordReceived(record_json("NoteReceived", version=version, text="a word " * 4_000)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_000_000
