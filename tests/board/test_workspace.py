"""Where cards are worked on, with real git: looked at before every run, and nothing is removed with work in it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.board import workspace
from holdfast.config import command_environment
from holdfast.domain.commands import ArchiveCard, RetryCard, UnblockCard
from holdfast.domain.errors import Rejected
from tests.board.rig import BoardRig, ManualWorker

CARD = "c0ffee01"


def git(context: Path, *words: str) -> str:
    env = os.environ | {
        "GIT_AUTHOR_NAME": "t",
        "GIT_AUTHOR_EMAIL": "t@example.org",
        "GIT_COMMITTER_NAME": "t",
        "GIT_COMMITTER_EMAIL": "t@example.org",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    done = subprocess.run(["git", "-C", str(context), *words], capture_output=True, text=True, check=True, env=env)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    context = tmp_path / "repository"
    context.mkdir()
    git(context, "init", "-q", "-b", "main")
    (context / "a.txt").write_text("one\n")
    git(context, "add", ".")
    git(context, "commit", "-qm", "first")
    return context


async def run_once(rig: BoardRig, **more: Any) -> ManualWorker:
    """The first run gets somewhere, and blocks."""
    await rig.create(CARD, **more)
    await rig.look()
    hand = await rig.worker(CARD)
    await hand.begin()
    await hand.calls("kanban_heartbeat")
    return hand


async def block(hand: ManualWorker) -> None:
    await hand.calls("kanban_block", reason="a question")
    await hand.end()


async def task_log(rig: BoardRig) -> str:
    await rig.tell(CARD, ArchiveCard())
    return await rig.dispatcher.cleanup.clean(await rig.card(CARD))


async def found(rig: BoardRig) -> str:
    await rig.tell(CARD, UnblockCard())
    await rig.look()
    card = await rig.card(CARD)
    return card.run.started.workspace_state if card.run is not None else f"{card.status}: {card.reason}"


async def test_a_worktree_on_a_branch_of_its_own(rig: BoardRig, repository: Path) -> None:
    hand = await run_once(rig, workspace=f"worktree:{repository}")
    own = rig.home / "workspaces" / CARD
    assert (git(own, "rev-parse", "--abbrev-ref", "HEAD"), (own / "a.txt").read_text()) == (f"holdfast/{CARD}", "one\n")
    assert "(new)" in hand.run.workspace_state
    (own / "b.txt").write_text("x")
    await block(hand)
    assert await found(rig) == (
        f"{own}, a worktree of {repository} on branch holdfast/{CARD}, branch holdfast/{CARD}, "
        "1 file with uncommitted changes"
    )


async def test_a_gateway_that_a_git_hook_started_works_in_the_right_repository(
    rig: BoardRig, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a hook the environment names the repository of the hook, and git believes it before everything else."""
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "one")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    hand = await run_once(rig, workspace=f"worktree:{repository}")
    assert "GIT_DIR" not in command_environment(set()), "the worker's own commands, too"
    monkeypatch.undo()
    assert f"holdfast/{CARD}" in git(repository, "branch")
    assert f"holdfast/{CARD}" not in git(other, "branch")
    assert (Path(hand.run.workspace) / "a.txt").read_text() == "one\n"


async def test_another_branch_blocks(rig: BoardRig, repository: Path) -> None:
    hand = await run_once(rig, workspace=f"worktree:{repository}")
    git(rig.home / "workspaces" / CARD, "checkout", "-q", "-b", "elsewhere")
    await block(hand)
    assert "is on branch elsewhere, not on holdfast/" in await found(rig)
    assert (await rig.card(CARD)).status == "blocked"


async def test_a_worktree_that_is_gone_is_made_again_and_that_is_said(rig: BoardRig, repository: Path) -> None:
    hand = await run_once(rig, workspace=f"worktree:{repository}")
    await block(hand)
    own = rig.home / "workspaces" / CARD
    git(repository, "worktree", "remove", "--force", str(own))
    assert "recreated because it was missing; uncommitted changes are lost" in await found(rig)
    assert own.is_dir()


async def test_a_worktree_that_is_gone_with_its_branch_blocks(rig: BoardRig, repository: Path) -> None:
    hand = await run_once(rig, workspace=f"worktree:{repository}")
    await block(hand)
    git(repository, "worktree", "remove", "--force", str(rig.home / "workspaces" / CARD))
    git(repository, "branch", "-D", f"holdfast/{CARD}")
    assert "and its branch" in await found(rig) and (await rig.card(CARD)).status == "blocked"
    await rig.tell(CARD, UnblockCard(fresh=True))
    await rig.look()
    assert (await rig.card(CARD)).run is not None, "who begins anew counts on nothing"


async def test_a_worktree_that_was_half_made_when_we_were_killed(rig: BoardRig, repository: Path) -> None:
    own = rig.home / "workspaces" / CARD
    own.parent.mkdir()
    git(repository, "worktree", "add", "-q", "--no-checkout", str(own), "-b", f"holdfast/{CARD}")
    await run_once(rig, workspace=f"worktree:{repository}")
    assert (own / "a.txt").read_text() == "one\n"
    assert git(own, "status", "--porcelain") == ""


@pytest.mark.parametrize("what", ["directory", "repository"])
async def test_what_is_gone_blocks(rig: BoardRig, repository: Path, what: str) -> None:
    kind = "dir" if what == "directory" else "worktree"
    hand = await run_once(rig, workspace=f"{kind}:{repository}")
    await block(hand)
    repository.rename(repository.with_name("moved"))
    assert f"blocked: its workspace cannot be used: the {what}" in await found(rig)


async def test_a_scratch_directory_that_is_gone_blocks_until_a_fresh_start(rig: BoardRig) -> None:
    hand = await run_once(rig)
    await block(hand)
    Path(hand.run.workspace).rmdir()
    assert "the scratch directory" in await found(rig) and (await rig.card(CARD)).status == "blocked"
    await rig.tell(CARD, UnblockCard(fresh=True))
    await rig.look()
    assert (await rig.card(CARD)).run is not None


async def test_a_directory_of_the_user_is_described_and_never_removed(rig: BoardRig, repository: Path) -> None:
    hand = await run_once(rig, workspace=f"dir:{repository}")
    assert hand.run.workspace_state == f"{repository}, branch main, clean"
    await block(hand)
    assert await task_log(rig) == ""
    assert repository.is_dir()


async def test_an_archived_card_keeps_what_would_be_lost(rig: BoardRig, repository: Path) -> None:
    hand = await run_once(rig, workspace=f"worktree:{repository}")
    own = Path(hand.run.workspace)
    (own / "b.txt").write_text("x")
    await block(hand)
    assert "1 file with uncommitted changes" in await task_log(rig)
    git(own, "add", ".")
    git(own, "commit", "-qm", "work")
    assert "neither merged nor pushed" in await rig.dispatcher.cleanup.clean(await rig.card(CARD))
    git(repository, "merge", "-q", "--ff-only", f"holdfast/{CARD}")
    assert await rig.dispatcher.cleanup.clean(await rig.card(CARD)) == ""
    assert not own.exists()


async def test_pushed_is_as_good_as_merged_and_a_detached_head_is_not(
    rig: BoardRig, repository: Path, tmp_path: Path
) -> None:
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    git(repository, "remote", "add", "origin", str(remote))
    hand = await run_once(rig, workspace=f"worktree:{repository}")
    own = Path(hand.run.workspace)
    git(own, "commit", "-q", "--allow-empty", "-m", "work")
    await block(hand)
    git(repository, "checkout", "-q", "--detach", f"holdfast/{CARD}")
    assert "neither merged nor pushed" in await task_log(rig)
    git(own, "push", "-q", "origin", f"holdfast/{CARD}")
    assert await rig.dispatcher.cleanup.clean(await rig.card(CARD)) == ""


async def test_scratch_is_removed_when_it_is_empty_and_made_again_when_the_card_comes_back(rig: BoardRig) -> None:
    hand = await run_once(rig)
    own = Path(hand.run.workspace)
    (own / "a.txt").write_text("x")
    await block(hand)
    assert await task_log(rig) == f"a.txt in {own}"
    (own / "a.txt").unlink()
    assert await rig.dispatcher.cleanup.clean(await rig.card(CARD)) == "" and not own.exists()
    await rig.tell(CARD, RetryCard())
    await rig.look()
    card = await rig.card(CARD)
    assert card.run is not None and "a new, empty scratch directory" in card.run.started.workspace_state


async def test_no_workspace_of_a_running_worker_is_removed(rig: BoardRig) -> None:
    hand = await run_once(rig)
    own = Path(hand.run.workspace)
    assert "its worker is still active" in await task_log(rig)
    assert own.is_dir()
    await hand.end("stopped")
    await rig.look()
    assert not own.exists(), "it is checked again when the worker has left"


async def test_what_came_into_a_scratch_directory_after_the_look_stays(rig: BoardRig) -> None:
    hand = await run_once(rig)
    (Path(hand.run.workspace) / "late.txt").write_text("x")
    with pytest.raises(OSError, match="not empty"):
        workspace.remove(await rig.card(CARD), rig.cards.root)
    assert (Path(hand.run.workspace) / "late.txt").read_text() == "x"


async def test_a_start_looks_at_what_a_kill_left_and_trouble_with_one_spares_the_others(
    rig: BoardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = await run_once(rig)
    await block(hand)
    await rig.tell(CARD, ArchiveCard())  # and killed before its workspace was looked at
    (rig.cards.root / "a stranger").mkdir()
    next_life = BoardRig(rig.home, store=rig.store, clock=rig.clock)
    clean_later, tried = next_life.dispatcher.cleanup.clean_later, list[str]()

    async def with_a_bug(card: str) -> None:
        tried.append(card)
        if card != CARD:
            raise ValueError("a bug")
        await clean_later(card)

    monkeypatch.setattr(next_life.dispatcher.cleanup, "clean_later", with_a_bug)
    await next_life.look()
    assert tried == ["a stranger", CARD]
    assert not Path(hand.run.workspace).exists()
    assert (rig.cards.root / "a stranger").is_dir()
    await next_life.agents.close()


async def test_a_workspace_that_can_never_work_is_refused_at_once(rig: BoardRig, tmp_path: Path) -> None:
    for wish in ("dir:relative", f"dir:{tmp_path}/missing", f"worktree:{tmp_path}"):
        with pytest.raises(Rejected):
            await rig.create(CARD, workspace=wish)
