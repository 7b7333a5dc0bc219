"""Quick because it imports little: click, msgspec and a handful of the standard library."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast.cli.commands import COMMANDS
from holdfast.cli.root import root
from tests.cli.commandline import CommandLine
from tests.eventually import PATIENCE

HEAVY = {"starlette", "pydantic", "httpx", "asyncio", "rich", "uvicorn", "sqlite3", "ssl"}
HEAVY |= {"http", "email", "urllib.request", "logging", "subprocess", "holdfast.store"}
HEAVY |= {"holdfast.domain.events", "holdfast.domain.commands"}
HEAVY |= {"holdfast.settings", "holdfast.runtime", "holdfast.gateway", "holdfast.lifecycle", "holdfast.app"}
QUICK = [
    ["--help"],
    ["--version"],
    ["run", "--help"],
    ["sessions", "list"],
    ["sessions", "show", "ffff"],
    ["status"],
    ["tasks"],
    ["tasks", "show", "ffff"],
    ["card", "list"],
    ["board"],
]
PROGRAM = """
import sys
from holdfast.cli.root import run
run(sys.argv[1:])
print("\\n".join(sys.modules), file=sys.stderr)
"""


def _imported(cli: CommandLine, arguments: list[str]) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        env=cli.environment(),
        timeout=PATIENCE,
        check=True,
    )
    return set(done.stderr.splitlines())


@pytest.mark.parametrize("arguments", QUICK, ids=" ".join)
def test_quick_paths_import_nothing_heavy(cli: CommandLine, arguments: list[str]) -> None:
    heavy = {*HEAVY} - ({"subprocess"} if arguments[0] == "run" else set())
    assert not _imported(cli, arguments) & heavy


def test_help_imports_no_verb_and_no_settings(cli: CommandLine) -> None:
    imported = _imported(cli, ["--help"])
    assert not {
        name for name in imported if name.startswith(("holdfast.cli.commands.", "holdfast.config", "json", "socket"))
    }


def test_following_imports_the_events_and_nothing_else_that_is_heavy(cli: CommandLine) -> None:
    assert not _imported(cli, ["run", "say x"]) & (HEAVY - {"subprocess", "msgspec", "holdfast.domain.events"})


def test_the_table_of_verbs_says_what_the_verbs_say() -> None:
    """The one-line helps stand in the table, so that they can be shown without an import."""
    context = root.make_context("holdfast", [], resilient_parsing=True)
    for verb in (verb for section in COMMANDS.values() for verb in section):
        command = root.get_command(context, verb)
        assert command is not None
        assert command.name == verb
        assert command.help
