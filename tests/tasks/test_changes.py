"""How the files that a task changed differ from the commit at which it began."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from holdfast.store.rows import TaskRow
from holdfast.tasks.changes import task_changes


def git(directory: Path, *arguments: str) -> str:
    options = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]
    found = subprocess.run(["git", *options, *arguments], cwd=directory, check=True, capture_output=True, text=True)
    return found.stdout.strip()


def test_names_count_from_the_top_and_from_the_directory_of_the_task(tmp_path: Path) -> None:
    below = tmp_path / "src"
    below.mkdir()
    for file in (tmp_path / "top.txt", below / "own.txt", below / "other.txt"):
        file.write_text("before\n")
    git(tmp_path, "init")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "c")
    for file in (tmp_path / "top.txt", below / "own.txt", below / "other.txt"):
        file.write_text("after\n")
    commit = git(tmp_path, "rev-parse", "HEAD")

    def changed(*files: str) -> tuple[list[str], str]:
        row = TaskRow("t", "process", "", "", [], str(below), "", "", "", "", False, "persist", None, False, 0, 1)
        found = task_changes(msgspec.structs.replace(row, files=[*files]), base_commit=commit)
        return [file.path for file in found.files], found.compared_with

    assert changed("top.txt", "own.txt")[0] == ["src/own.txt", "top.txt"]
    assert changed("src/own.txt", str(below / "own.txt"))[0] == ["src/own.txt"]
    assert changed("../../elsewhere.txt") == ([], "which files it changed is not known")
    assert changed() == ([], "it changed no file")
