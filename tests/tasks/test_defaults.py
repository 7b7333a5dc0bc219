"""A task as a command: its arguments and limits as it was started, and defaults for the rest."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from holdfast.domain.events.task import TaskStarted
from holdfast.processes.command import HEAD_BYTES, TAIL_BYTES
from holdfast.profiles import Profiles
from holdfast.tasks.defaults import CommandDefaults
from tests.actors import person

STARTED = TaskStarted(task="t", task_kind="process", title="x", command="ls '-l'", cwd="/", by=person("ann"))


@pytest.fixture
def defaults(tmp_path: Path) -> CommandDefaults:
    return CommandDefaults(tmp_path, Profiles(tmp_path / "config.toml"), 0o027, None)


def test_a_command_line_is_for_the_shell_and_words_are_a_program_with_its_arguments(defaults: CommandDefaults) -> None:
    assert defaults.spec(STARTED, {}).run == "ls '-l'"
    assert defaults.spec(msgspec.structs.replace(STARTED, argv=["ls", "-l"]), {}).run == ("ls", "-l")


def test_as_much_output_is_kept_as_it_was_started_with(defaults: CommandDefaults) -> None:
    usual = defaults.spec(STARTED, {})
    assert (usual.head, usual.tail, usual.umask) == (HEAD_BYTES, TAIL_BYTES, 0o027)
    own = defaults.spec(msgspec.structs.replace(STARTED, head=0, tail=7), {})
    assert (own.head, own.tail) == (0, 7)
