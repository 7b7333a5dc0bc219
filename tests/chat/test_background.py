"""What is meant behind /bg: a prompt for an agent, and never one by accident."""

from __future__ import annotations

import pytest

from holdfast.cli.chat.slash import TASK_WORDS, InvalidInput, ParsedLine, Slash, parse_line
from holdfast.cli.commands.tasks import tasks


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("/bg write_the tests", Slash("background", "write_the tests")),
        ("/bg explain", Slash("background", "explain")),
        ("/background two\nlines", Slash("background", "two\nlines")),
        ("/bg -- status of the build?", Slash("background", "status of the build?")),
        ("/bg stopping is hard, explain why", Slash("background", "stopping is hard, explain why")),
        ("/tasks", Slash("tasks")),
        ("/tasks log 3bc3", Slash("tasks", "log 3bc3")),
    ],
)
def test_what_is_meant(typed: str, meant: ParsedLine) -> None:
    assert parse_line(typed, None) == meant


@pytest.mark.parametrize("verb", [*tasks.commands, *sorted(TASK_WORDS)])
@pytest.mark.parametrize("rest", ["", " of the build", " 3bc3", " all files below src and count them"])
def test_a_verb_never_starts_an_agent(verb: str, rest: str) -> None:
    for typed in (f"/bg {verb}{rest}", f"/background {verb.upper()}{rest}"):
        assert isinstance(parse_line(typed, None), InvalidInput)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("/bg stauts", "for running tasks use /tasks. To start an agent: /bg -- stauts"),
        ("/bg kil 3bc3", "use /tasks"),
        ("/bg kill", "use /tasks"),
        ("/bg list all files", "To start an agent: /bg -- list all files"),
        ("/bg", "/bg needs a prompt for an agent"),
        ("/bg --", "/bg needs a prompt for an agent"),
    ],
)
def test_what_is_probably_meant_for_tasks_is_asked_back(typed: str, said: str) -> None:
    found = parse_line(typed, None)
    assert isinstance(found, InvalidInput)
    assert said in found.message
