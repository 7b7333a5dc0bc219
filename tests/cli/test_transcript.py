"""The log as a conversation, line by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import click
import pytest

from holdfast.cli.transcript import Transcript
from holdfast.domain.events.chapter import ChapterEvent


def _line(capsys: pytest.CaptureFixture[str], kind: str, **fields: Any) -> str:
    """The one line that an event becomes, without its day, version and time."""
    if isinstance(fields.get("by"), str):
        fields["by"] = {"type": "person", "client": fields["by"]}
    Transcript(live=False).happened({"version": 7, "at": 0, "event": {"kind": kind, **fields}})
    return click.unstyle(capsys.readouterr().out.splitlines()[1])[len("    7  00:00:00  ") :]


def test_every_label_stands_apart_from_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert _line(capsys, "TurnSuspended", turn=1, reason="goodbye") == "suspended turn 1: goodbye"
    assert _line(capsys, "InputReceived", text="hello", mode="queue") == "you       hello"


@pytest.mark.parametrize(("attempt", "words"), [(0, ""), (1, ", attempt 1"), (2, ", attempt 2")])
def test_only_a_crash_is_an_attempt(capsys: pytest.CaptureFixture[str], attempt: int, words: str) -> None:
    shown = _line(capsys, "TurnResumed", turn=1, attempt=attempt, reason="it was stopped", away_ms=1500)
    assert shown == f"resumed   turn 1 after 1.5 s away{words}: it was stopped"


def test_edits_of_the_queue_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    nothing: dict[str, Any] = {"text": None, "mode": None, "place": None, "input": "i", "by": "web"}
    moved = _line(capsys, "InputRevised", **nothing | {"place": 1})
    assert moved == "queue     a waiting message was moved to place 1 by web"
    assert _line(capsys, "InputWithdrawn", input="i", by="web") == "queue     a waiting message was withdrawn by web"
    assert _line(capsys, "InputRevised", **nothing | {"text": "new"}) == "you       new (reworded by web)"
    assert _line(capsys, "SessionPinned", pinned=False, by="web") == "session   not pinned any more by web"


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
def test_a_command_that_failed_looks_failed(
    capsys: pytest.CaptureFixture[str], how: dict[str, Any], words: str
) -> None:
    ended = {"turn": 1, "call": "1.1.0", "tool": "terminal", "outcome": "done", "output": "", "duration_ms": 12}
    assert f"terminal · {words} · 12 ms" in _line(capsys, "ToolCallFinished", **ended | how)


SURVIVOR: dict[str, Any] = {"pid": 7, "activity": "serving in use", "evidence": "e", "age_ms": 120_000, "rule": "r"}


def test_a_chapter_says_why_what_became_of_what_ran_and_how_to_undo_it(capsys: pytest.CaptureFixture[str]) -> None:
    event = {
        "kind": "ChapterOpened",
        "chapter": 2,
        "rule": "idle",
        "reason": "nobody said anything",
        "kept": [SURVIVOR | {"task": "a" * 16, "title": "serve"}],
        "stopped": [SURVIVOR | {"task": "b" * 16, "title": "watch", "rule": "its lifetime is the chapter"}],
        "hand_over": "all\nis well",
        "hand_over_from": "digest",
    }
    Transcript(live=False).happened({"version": 7, "at": 0, "stream": "session/" + "c" * 16, "event": event})
    lines = [line.strip() for line in click.unstyle(capsys.readouterr().out).splitlines()[1:]]
    assert lines[0].endswith("chapter   2 begins: nobody said anything")
    assert lines[1:] == [
        "handed over: aaaaaaaa serve (serving in use, 2 min)",
        "stopped: bbbbbbbb watch (its lifetime is the chapter)",
        "digest, made by a rule: all is well",
        "undo: holdfast sessions undo-reset cccccccc",
    ]


def test_every_event_of_a_chapter_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A new kind that nobody words fails here."""
    for path in sorted((Path(__file__).parent.parent / "golden" / "events").glob("*.json")):
        event = json.loads(path.read_text())
        if event.get("kind") in {kind.__name__ for kind in get_args(ChapterEvent)}:
            Transcript(live=False).happened({"version": 7, "at": 0, "stream": "session/x", "event": event})
            assert len(capsys.readouterr().out.splitlines()) > 1, event["kind"]


def test_the_board_and_its_workers_are_told_in_plain_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    bound = _line(capsys, "RunBound", card="ab12cd34", run=2)
    assert bound == "card      run 2 of card ab12cd34 works here; what is said here is a comment on it"
    released = _line(capsys, "RunReleased", card="ab12cd34", run=2)
    assert released == "card      run 2 of card ab12cd34 is over; this is a session like any other again"
    assert _line(capsys, "InputReceived", text="do it", mode="queue", source="run") == "board     do it"
    said = _line(capsys, "InputReceived", text="hi", mode="steer", by="cli", source="comment", ref="1")
    assert said == "you       hi (comment)"
