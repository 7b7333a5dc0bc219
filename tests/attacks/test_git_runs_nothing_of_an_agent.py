"""An agent that can write files tries to make Holdfast's own git start a program of its choice.

Each way is shown to work against plain git first, so that a way that stops working is noticed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from holdfast.board import workspace
from holdfast.domain.card import Card
from holdfast.domain.errors import Rejected
from holdfast.git import GitFailed, find_repository, status
from holdfast.tasks.git_snapshots import GitSnapshots

Plant = Callable[[Path, str], None]
KEY = "sk-a-key-of-a-provider"


def git(place: Path, *words: str, check: bool = True) -> str:
    plain = {"PATH": os.environ["PATH"], "HOME": str(place.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", "-C", place, *who, *words], env=plain, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    git(place, "init", "-q")
    (place / "a.txt").write_text("one\n")
    (place / ".gitattributes").write_text("*.txt filter=own diff=own\n*.bin filter=a=b\n")
    (place / "b.bin").write_text("two\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")
    return place


def configure(place: Path, name: str, value: str) -> None:
    git(place, "config", name, value)


def fsmonitor(place: Path, canary: str) -> None:
    configure(place, "core.fsmonitor", canary)


def included(place: Path, canary: str) -> None:
    (place / "more").write_text(f"[core]\nfsmonitor = {canary}\n")
    configure(place, "include.path", "../more")


def hooks(place: Path, canary: str) -> None:
    for name in ("post-index-change", "post-checkout", "reference-transaction"):
        hook = place / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{canary}\n")
        hook.chmod(0o755)


def hooks_elsewhere(place: Path, canary: str) -> None:
    hooks(place, canary)
    (place / ".git" / "hooks").rename(place / "elsewhere")
    configure(place, "core.hooksPath", str(place / "elsewhere"))


def clean_filter(place: Path, canary: str) -> None:
    configure(place, "filter.own.clean", canary)


def smudge_filter(place: Path, canary: str) -> None:
    configure(place, "filter.own.smudge", canary)


def process_filter(place: Path, canary: str) -> None:
    configure(place, "filter.own.process", canary)


def filter_with_an_odd_name(place: Path, canary: str) -> None:
    configure(place, "filter.a=b.clean", canary)
    configure(place, "filter.a=b.smudge", canary)


def attributes_in_the_git_directory(place: Path, canary: str) -> None:
    (place / ".git" / "info").mkdir(exist_ok=True)
    (place / ".git" / "info" / "attributes").write_text("* filter=hidden\n")
    configure(place, "filter.hidden.clean", canary)


def textconv(place: Path, canary: str) -> None:
    configure(place, "diff.own.textconv", canary)


def diff_driver(place: Path, canary: str) -> None:
    configure(place, "diff.own.command", canary)


def external_diff(place: Path, canary: str) -> None:
    configure(place, "diff.external", canary)


def missing_object(place: Path, canary: str) -> None:
    blob = git(place, "rev-parse", "HEAD:a.txt").strip()
    (place / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    configure(place, "core.repositoryFormatVersion", "1")
    configure(place, "extensions.partialClone", "origin")
    configure(place, "protocol.ext.allow", "always")
    configure(place, "remote.origin.url", f"ext::{canary} once")
    configure(place, "remote.origin.promisor", "true")


def missing_object_over_ssh(place: Path, canary: str) -> None:
    missing_object(place, canary)
    configure(place, "remote.origin.url", "ssh://nobody@127.0.0.1/none")
    configure(place, "core.sshCommand", canary)


def submodule(place: Path, canary: str) -> None:
    inner = place / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-qm", "inner", "--allow-empty")
    git(place, "add", "inner")
    git(place, "commit", "-qm", "a repository in it")
    configure(inner, "core.fsmonitor", canary)


def another_git_directory(place: Path, canary: str) -> None:
    configure(place, "core.fsmonitor", canary)
    (place / ".git").rename(place / "moved")
    (place / ".git").write_text("gitdir: moved\n")


def bare_repository(place: Path, canary: str) -> None:
    configure(place, "core.fsmonitor", canary)
    configure(place, "core.bare", "false")
    configure(place, "core.worktree", str(place))
    for part in (place / ".git").iterdir():
        part.rename(place / part.name)
    (place / ".git").rmdir()


PLANTS: list[Plant] = [
    fsmonitor,
    included,
    hooks,
    hooks_elsewhere,
    clean_filter,
    smudge_filter,
    process_filter,
    filter_with_an_odd_name,
    attributes_in_the_git_directory,
    textconv,
    diff_driver,
    external_diff,
    missing_object,
    missing_object_over_ssh,
    submodule,
    another_git_directory,
    bare_repository,
]


def use_plain_git(place: Path) -> None:
    """What Holdfast does with git, without Holdfast."""
    git(place, "status", check=False)
    git(place, "diff", check=False)
    git(place, "worktree", "add", str(place.parent / "plain"), "-b", "plain", check=False)


async def use_holdfast(place: Path, root: Path) -> None:
    """All that Holdfast does with git in a directory of an agent."""
    changes = GitSnapshots(root)
    await changes.take("c0ffee", place)
    await asyncio.to_thread(changes.changes_since, "c0ffee", place)
    for kind in ("dir", "worktree"):
        card = Card(id="c0ffee00", workspace=f"{kind}:{place}")
        steps: tuple[Callable[[], object], ...] = (
            partial(workspace.check, card.workspace),
            partial(workspace.prepare, card, root, anew=True),
            partial(workspace.diff, card, root, 10_000),
            partial(workspace.lost_with, card, root),
            partial(workspace.remove, card, root),
        )
        for step in steps:
            with suppress(workspace.Unusable, Rejected):
                await asyncio.to_thread(step)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: str(plant.__name__))
async def test_git_runs_no_program_of_an_agent(plant: Plant, repository: Path, tmp_path: Path) -> None:
    root = tmp_path / "home"
    root.mkdir()
    ran, script = tmp_path / "ran", tmp_path / "canary"
    script.write_text(f"#!/bin/sh\necho x >> {ran}\n[ $# -gt 0 ] || cat\n")
    script.chmod(0o755)
    plant(repository, str(script))
    (repository / "a.txt").write_text("changed\n")
    ran.unlink(missing_ok=True)  # planting may have set it off already

    await use_holdfast(repository, root)
    assert not ran.exists()

    use_plain_git(repository)
    assert ran.exists(), "against plain git this does not work any more"


async def test_git_is_given_no_key_and_no_variable_of_somebody_elses_git(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "environment"
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\nenv >> {said}\nexec {shutil.which("git")} "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f".:{fake.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("MY_PROVIDER_KEY", KEY)
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(fake))
    monkeypatch.setenv("GIT_DIR", str(tmp_path))

    await use_holdfast(repository, tmp_path)

    text = said.read_text()
    assert "GIT_TERMINAL_PROMPT=0" in text
    assert KEY not in text and "GIT_EXTERNAL_DIFF" not in text and f"GIT_DIR={tmp_path}\n" not in text
    assert ".:" not in text


async def test_git_does_not_look_into_another_directory(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "private").write_text("x")
    git(repository, "config", "core.worktree", str(tmp_path / "elsewhere"))
    found = find_repository(repository)
    assert found is not None
    assert "private" not in status(found)


def test_what_cannot_be_read_is_refused_and_not_waited_for(repository: Path) -> None:
    found = find_repository(repository)
    assert found is not None
    git(repository, "config", "extensions.unheardOf", "true")
    with pytest.raises(GitFailed, match="extensions that Holdfast does not know"):
        status(found)
    (repository / ".git" / "config").unlink()
    os.mkfifo(repository / ".git" / "config")
    with pytest.raises(GitFailed, match="not a regular file"):
        status(found)
    (repository / ".git" / "config").unlink()
    (repository / ".git" / "index").unlink()
    os.mkfifo(repository / ".git" / "index")
    with pytest.raises(GitFailed, match="did not answer within"):
        status(found, seconds=0.2)
