"""What a typed line means."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.chat.slash import COMMANDS, Answer, ChatMessage, InvalidInput, ParsedLine, Slash, parse_line
from holdfast.domain.events.session import Purpose
from holdfast.domain.transcript_items import WaitItem


def wait(id: str, purpose: Purpose, *choices: str) -> WaitItem:
    return WaitItem(version=1, at=0, wait=id, turn=1, purpose=purpose, reason="", choices=[*choices])


APPROVAL = wait("w1", "approval", "allow", "session", "always", "deny")
QUESTION = wait("w2", "question", "red", "blue")
RESUME = wait("w3", "resume")
RETRY = wait("w4", "retry")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("hello", ChatMessage("hello")),
        ("two\nlines", ChatMessage("two\nlines")),
        ("/help", Slash("help")),
        ("  /stop  ", Slash("stop")),
        ("/rename  A title ", Slash("rename", "A title")),
        ("/steer two\nlines", Slash("steer", "two\nlines")),
        ("/fork", Slash("fork")),
        ("/fork 12", Slash("fork", "12")),
        ("/etc/hosts is broken", ChatMessage("/etc/hosts is broken")),
        ("//help is a word", ChatMessage("/help is a word")),
        ("/", ChatMessage("/")),
    ],
)
def test_a_line_means(typed: str, meant: ParsedLine) -> None:
    assert parse_line(typed, None) == meant


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("/hepl", "There is no /hepl. Did you mean /help?"),
        ("/resume", "/resume needs an argument: /resume ID"),
        ("/stop now", "/stop takes no argument"),
    ],
)
def test_what_cannot_be_meant_is_explained(typed: str, said: str) -> None:
    found = parse_line(typed, None)
    assert isinstance(found, InvalidInput)
    assert said in found.message


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("1", Answer("w1", "allow")),
        ("allow", Answer("w1", "allow")),
        ("Yes", Answer("w1", "allow")),
        ("2", Answer("w1", "session")),
        ("always", Answer("w1", "always")),
        ("4 use docs instead", Answer("w1", "deny", "use docs instead")),
        ("no, not there", Answer("w1", "deny", "not there")),
    ],
)
def test_an_approval_is_answered_by_number_or_name(typed: str, answer: Answer) -> None:
    assert parse_line(typed, APPROVAL) == answer


@pytest.mark.parametrize("typed", ["maybe", "5", "0", "allowed", "²"])
def test_an_approval_is_never_guessed(typed: str) -> None:
    assert isinstance(parse_line(typed, APPROVAL), InvalidInput)


def test_plain_text_answers_a_question_and_nothing_else_does() -> None:
    assert parse_line(" green, please ", QUESTION) == Answer("w2", "green, please")
    assert parse_line("2", QUESTION) == Answer("w2", "2")
    assert parse_line("/steer wait", QUESTION) == Slash("steer", "wait")
    assert parse_line("go on", RESUME) == ChatMessage("go on")
    assert parse_line("later", RETRY) == ChatMessage("later")


def test_every_command_of_the_chat_has_a_name_and_a_purpose() -> None:
    names = [verb.name for verb in COMMANDS]
    asked_for = "help sessions resume new fork rename stop why detach model profile inbox context export undo quit"
    assert set(asked_for.split()) <= set(names)
    assert len(names) == len(set(names))
    page = (Path(__file__).parents[2] / "docs" / "chat.md").read_text("utf-8")
    assert [verb.name for verb in COMMANDS if not verb.does or f"`/{verb.name}" not in page] == []
