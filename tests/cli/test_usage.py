"""Wrong use, wrong ids, wrong values: an exit code, a message, a hint, and never a traceback."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cli.commandline import CommandLine
from tests.e2e.gateway import GatewayProcess

USAGE = {
    "an unknown verb": (["rnu", "x"], "No such command 'rnu'. Did you mean 'run'?"),
    "an unknown option": (
        ["run", "x", "--jsno"],
        "No such option '--jsno'. (Did you mean one of: '--json', '--node'?)",
    ),
    "a missing argument": (["send", "abcd"], "Missing argument 'TEXT'"),
    "a wrong choice": (["send", "abcd", "x", "--mode", "shout"], "'shout' is not one of"),
    "an empty prompt": (["run", ""], "the text is empty"),
    "a blank prompt": (["run", " \n\t"], "the text is empty"),
    "an empty standard input": (["run", "-"], "the text is empty"),
    "an empty id": (["sessions", "show", ""], "it is empty; `holdfast sessions` lists the IDs"),
    "a negative cursor": (["sessions", "log", "abcd", "--after", "-1"], "-1 is not in the range"),
    "a directory that is not there": (["run", "x", "--cwd", "/nowhere/at/all"], "does not exist"),
}


@pytest.mark.parametrize("case", USAGE)
def test_wrong_use_is_2(cli: CommandLine, case: str) -> None:
    arguments, message = USAGE[case]
    done = cli(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert "hint: See `" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("card", "HF-1"), "card show HF-1"),
        (("board", "hf-1"), "card show hf-1"),
        (("tasks", "2b863e91"), "tasks show 2b863e91"),
        (("sessions", "2CEC"), "sessions show 2CEC"),
    ],
)
def test_an_id_instead_of_a_verb_is_2_with_the_verb_that_shows_it(
    cli: CommandLine, arguments: tuple[str, ...], meant: str
) -> None:
    done = cli(*arguments)
    assert (done.returncode, f"hint: Did you mean: holdfast {meant}\n" in done.stderr) == (2, True)


def test_invalid_utf8_is_2(cli: CommandLine) -> None:
    done = cli("run", b"say \xff")
    assert (done.returncode, done.stderr) == (2, "error: The argument 'say \ufffd' is not valid UTF-8.\n")
    done = cli("run", "-", stdin=b"say \xff")
    assert done.returncode == 2
    assert "standard input is not valid UTF-8 (byte 4)" in done.stderr


def test_values_that_the_gateway_refuses_are_2(cli: CommandLine) -> None:
    done = cli("run", "x", "--profile", "nobody")
    assert done.returncode == 2
    assert done.stderr == "error: There is no profile 'nobody'.\n  hint: The profiles are: demo.\n"
    for megabytes in (2, 10):
        done = cli("run", "-", stdin=b"x" * megabytes * 1_000_000)
        assert done.returncode == 2, done.stderr
        assert "Write long text into a file" in done.stderr


def test_not_found_is_4(cli: CommandLine) -> None:
    verbs = (["sessions", "show"], ["stop"], ["why"], ["send"], ["sessions", "log", "--follow"])
    ids = ("ffffffffffff", "abc", "../../etc", "ünïcode", "a b%00")
    for verb, id in zip(verbs, ids, strict=True):
        arguments = ["send", id, "x"] if verb[0] == "send" else [*verb, id]
        done = cli(*arguments)
        assert done.returncode == 4, done
        assert done.stderr.startswith("error: ")


def test_deleted_is_4(cli: CommandLine) -> None:
    session = cli.json("run", "say x")["session"]
    cli.ok("sessions", "delete", session, "--yes")
    done = cli("sessions", "log", session)
    assert done.returncode == 4
    assert "deleted" in done.stderr


def test_conflict_is_5(cli: CommandLine) -> None:
    session = cli.json("run", "say x")["session"]
    done = cli("stop", session)
    assert (done.returncode, done.stderr) == (5, "error: No turn is running, so there is nothing to stop.\n")
    assert cli("sessions", "restore", session).returncode == 5


def test_ids_may_be_shortened_as_long_as_they_are_unique(gateway: GatewayProcess) -> None:
    """Sessions are made until two of them begin alike."""
    cli = CommandLine(gateway.home)
    ids: list[str] = []
    twins: list[str] = []
    with ThreadPoolExecutor(16) as pool:
        while not twins:
            ids += pool.map(lambda _: gateway.create(), range(100))
            beginnings = Counter(id[:4] for id in ids)
            twins = [id for id in ids if beginnings[id[:4]] > 1]
    session, twin = sorted(twins)[:2]
    done = cli("sessions", "show", session[:4])
    assert done.returncode == 5
    assert "error: " in done.stderr
    length = next(length for length in range(4, 17) if session[:length] != twin[:length])
    assert cli.json("sessions", "show", session[:length])["session"]["id"] == session
    listed = cli("sessions", "list", "--limit", "2")
    assert listed.stdout.count("\n") == 3
    assert "more: holdfast sessions list --before " in listed.stderr
    cursor = listed.stderr.split()[-1]
    assert len(cli.json("sessions", "--before", cursor, "--limit", "500")["sessions"]) == min(500, len(ids) - 2)


def test_bare_holdfast_and_help_teach(cli: CommandLine) -> None:
    assert cli().returncode == 2
    assert "holdfast run" in cli().stderr
    for arguments in (["--help"], ["-h"], ["run", "--help"], ["sessions", "--help"], ["sessions", "log", "-h"]):
        assert cli.ok(*arguments).startswith("Usage: holdfast")
    assert cli.ok("--version").startswith("holdfast 0.")


def test_the_home_may_be_named_before_or_after_the_verb(cli: CommandLine, alone: CommandLine) -> None:
    for arguments in (["--home", str(cli.home), "status"], ["status", "--home", str(cli.home)]):
        assert alone.json(*arguments)["home"] == str(cli.home)
    assert alone("--home", str(cli.home), "sessions", "--home", str(alone.home)).returncode == 3
