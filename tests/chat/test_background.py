"""What is meant behind /bg and /tasks: a verb is never the beginning of a prompt."""

from __future__ import annotations

import pytest

from holdfast.cli.chat.background import SAME, VERBS
from holdfast.cli.chat.slash import InvalidInput, ParsedLine, Slash, parse_line


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("/bg", Slash("tasks", "list")),
        ("/bg status", Slash("tasks", "list")),
        ("/bg  Status ", Slash("tasks", "list")),
        ("/background list", Slash("tasks", "list")),
        ("/bg log 3bc3", Slash("tasks", "log 3bc3")),
        ("/bg kill 3bc31234", Slash("tasks", "kill 3bc31234")),
        ("/bg cancel 3bc3", Slash("tasks", "stop 3bc3")),
        ("/bg history", Slash("tasks", "history")),
        ("/bg prune", Slash("tasks", "prune")),
        ("/bg prune yes", Slash("tasks", "prune yes")),
        ("/bg search for the needle", Slash("tasks", "search for the needle")),
        ("/bg write the tests", Slash("background", "write the tests")),
        ("/background two\nlines", Slash("background", "two\nlines")),
        ("/bg -- status of the build?", Slash("background", "status of the build?")),
        ("/bg stopping is hard, explain why", Slash("background", "stopping is hard, explain why")),
        ("/tasks", Slash("tasks", "list")),
        ("/tasks show 3bc3", Slash("tasks", "show 3bc3")),
        ("/tasks show 3BC3", Slash("tasks", "show 3bc3")),
        ("/tasks wait 3bc3", Slash("tasks", "wait 3bc3")),
        ("/tasks pin 3bc3", Slash("tasks", "pin 3bc3")),
        ("/tasks prune --yes", Slash("tasks", "prune --yes")),
    ],
)
def test_what_is_meant(typed: str, meant: ParsedLine) -> None:
    assert parse_line(typed, None) == meant


@pytest.mark.parametrize("verb", [*VERBS, *SAME])
@pytest.mark.parametrize("rest", ["", " of the build", " 3bc3", " all files below src and count them"])
def test_a_verb_never_starts_an_agent(verb: str, rest: str) -> None:
    for typed in (f"/bg {verb}{rest}", f"/background {verb.upper()}{rest}"):
        found = parse_line(typed, None)
        assert isinstance(found, InvalidInput) or (isinstance(found, Slash) and found.name == "tasks")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("/bg stauts", "Did you mean /bg status? To let an agent do it: /bg -- stauts"),
        ("/bg kil 3bc3", "Did you mean /bg kill?"),
        ("/bg kill", "/bg kill needs the id of a task; /tasks lists them."),
        ("/bg list all files", "To let an agent do it: /bg -- list all files"),
        ("/bg kill the zombie process", "is none; /tasks lists them. To let an agent do it"),
        ("/bg --", "A prompt is missing"),
        ("/tasks hsitory", "Did you mean /tasks history?"),
        ("/tasks make coffee", "There is no /tasks make."),
        ("/tasks prune everything", "`/tasks prune yes` deletes it"),
    ],
)
def test_what_cannot_be_meant_is_asked_back(typed: str, said: str) -> None:
    found = parse_line(typed, None)
    assert isinstance(found, InvalidInput)
    assert said in found.message
