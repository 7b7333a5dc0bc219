"""What the project tells every agent: read like a file of the working directory, bounded and never waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.domain.session import Session
from holdfast.runtime.drivers.builtin import AGENTS_LIMIT, model_request
from holdfast.runtime.tools.context import ToolContext


def told(cwd: Path) -> str:
    request = model_request(Session("0"), turn=1, instructions="Be kind.", context=ToolContext(cwd), tools=[])
    start = f"Be kind.\n\nYour working directory is {cwd}."
    assert request.instructions.startswith(start)
    return request.instructions.removeprefix(start).strip()


def test_a_project_may_say_something_or_nothing(tmp_path: Path) -> None:
    assert told(tmp_path) == ""
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    assert told(tmp_path) == "AGENTS.md in the working directory says:\nUse tabs."


@pytest.mark.parametrize("size", [AGENTS_LIMIT + 1, 5 * AGENTS_LIMIT])
def test_a_long_text_is_cut(tmp_path: Path, size: int) -> None:
    (tmp_path / "AGENTS.md").write_text("x" * size)
    text = told(tmp_path)
    assert text.endswith("x\n[… the rest is omitted]")
    assert text.count("x") == AGENTS_LIMIT


def test_a_file_without_an_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "AGENTS.md").open("wb") as file:
        file.write(b"x" * 10_000)
        file.truncate(1 << 40)
    assert "the rest is omitted" in told(tmp_path)


def test_what_is_no_file_of_the_directory_is_not_read(tmp_path: Path) -> None:
    """A pipe would be waited for by the whole gateway, and a link may lead to a key."""
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "key").write_text("the secret")
    os.mkfifo(work / "AGENTS.md")
    assert told(work).endswith("cannot be read: AGENTS.md is not a regular file.")
    for target in ("../key", "/dev/zero", "/proc/self/environ"):
        (work / "AGENTS.md").unlink()
        (work / "AGENTS.md").symlink_to(target)
        assert "cannot be read: AGENTS.md is outside" in told(work)


def test_a_directory_that_is_gone_is_said_to_be_gone(tmp_path: Path) -> None:
    assert told(tmp_path / "gone").endswith(f"The working directory {tmp_path / 'gone'} does not exist.")
