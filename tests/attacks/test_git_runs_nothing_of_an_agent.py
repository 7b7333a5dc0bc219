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
from holdfast.board.changes import changes_of
from holdfast.changed_files import changes_since_commit
from holdfast.domain.card import Card
from holdfast.domain.errors import Rejected
from holdfast.git import GitFailed, find_repository, status
from holdfast.tasks.git_snapshots import GitSnapshots

Plant = Callable[[Path, str], None]
KEY = "sk-a-key-of-a-provider"


def git(context: Path, *words: str, check: bool = True) -> str:
    plain = {"PATH": os.environ["PATH"], "HOME": str(context.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", "-C", context, *who, *words], env=plain, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    context = tmp_path / "project"
    context.mkdir()
    git(context, "init", "-q")
    (context / "a.txt").write_text("one\n")
    (context / ".gitattributes").write_text("*.txt filter=own diff=own\n*.bin filter=a=b\n")
    (context / "b.bin").write_text("two\n")
    git(context, "add", "-A")
    git(context, "commit", "-qm", "first")
    return context


def configure(context: Path, name: str, value: str) -> None:
    git(context, "config", name, value)


def fsmonitor(context: Path, canary: str) -> None:
    configure(context, "core.fsmonitor", canary)


def included(context: Path, canary: str) -> None:
    (context / "more").write_text(f"[core]\nfsmonitor = {canary}\n")
    configure(context, "include.path", "../more")


def hooks(context: Path, canary: str) -> None:
    for name in ("post-index-change", "post-checkout", "reference-transaction"):
        hook = context / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{canary}\n")
        hook.chmod(0o755)


def hooks_elsewhere(context: Path, canary: str) -> None:
    hooks(context, canary)
    (context / ".git" / "hooks").rename(context / "elsewhere")
    configure(context, "core.hooksPath", str(context / "elsewhere"))


def clean_filter(context: Path, canary: str) -> None:
    configure(context, "filter.own.clean", canary)


def smudge_filter(context: Path, canary: str) -> None:
    configure(context, "filter.own.smudge", canary)


def process_filter(context: Path, canary: str) -> None:
    configure(context, "filter.own.process", canary)


def filter_with_an_odd_name(context: Path, canary: str) -> None:
    configure(context, "filter.a=b.clean", canary)
    configure(context, "filter.a=b.smudge", canary)


def attributes_in_the_git_directory(context: Path, canary: str) -> None:
    (context / ".git" / "info").mkdir(exist_ok=True)
    (context / ".git" / "info" / "attributes").write_text("* filter=hidden\n")
    configure(context, "filter.hidden.clean", canary)


def textconv(context: Path, canary: str) -> None:
    configure(context, "diff.own.textconv", canary)


def diff_driver(context: Path, canary: str) -> None:
    configure(context, "diff.own.command", canary)


def external_diff(context: Path, canary: str) -> None:
    configure(context, "diff.external", canary)


def missing_object(context: Path, canary: str) -> None:
    blob = git(context, "rev-parse", "HEAD:a.txt").strip()
    (context / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    configure(context, "core.repositoryFormatVersion", "1")
    configure(context, "extensions.partialClone", "origin")
    configure(context, "protocol.ext.allow", "always")
    configure(context, "remote.origin.url", f"ext::{canary} once")
    configure(context, "remote.origin.promisor", "true")


def missing_object_over_ssh(context: Path, canary: str) -> None:
    missing_object(context, canary)
    configure(context, "remote.origin.url", "ssh://nobody@127.0.0.1/none")
    configure(context, "core.sshCommand", canary)


def submodule(context: Path, canary: str) -> None:
    inner = context / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-qm", "inner", "--allow-empty")
    git(context, "add", "inner")
    git(context, "commit", "-qm", "a repository in it")
    configure(inner, "core.fsmonitor", canary)


def another_git_directory(context: Path, canary: str) -> None:
    configure(context, "core.fsmonitor", canary)
    (context / ".git").rename(context / "moved")
    (context / ".git").write_text("gitdir: moved\n")


def bare_repository(context: Path, canary: str) -> None:
    configure(context, "core.fsmonitor", canary)
    configure(context, "core.bare", "false")
    configure(context, "core.worktree", str(context))
    for part in (context / ".git").iterdir():
        part.rename(context / part.name)
    (context / ".git").rmdir()


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


def use_plain_git(context: Path) -> None:
    """What Holdfast does with git, without Holdfast."""
    git(context, "status", check=False)
    git(context, "diff", check=False)
    git(context, "worktree", "add", str(context.parent / "plain"), "-b", "plain", check=False)


async def use_holdfast(context: Path, root: Path) -> None:
    """All that Holdfast does with git in a directory of an agent."""
    changes = GitSnapshots(root)
    await changes.take("c0ffee", context)
    seen = await changes.changes_since("c0ffee", context)
    if (repository := find_repository(context)) is not None:
        with suppress(GitFailed):
            await asyncio.to_thread(
                changes_since_commit, repository, seen.base_commit if seen is not None else "", ["a.txt"]
            )
    for kind in ("dir", "worktree"):
        card = Card(id="c0ffee00", workspace=f"{kind}:{context}")
        steps: tuple[Callable[[], object], ...] = (
            partial(workspace.check, card.workspace),
            partial(workspace.prepare, card, root, anew=True),
            partial(changes_of, card, root),
            partial(workspace.unsaved_work, card, root),
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
