"""What a card made: its files, how they differ, and nothing that an agent put there to be read or run instead."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.board.changes import changes_of
from holdfast.changed_files import USUAL, ChangeLimits, Changes
from holdfast.domain.commands import ArchiveCard
from tests.board.rig import BoardRig
from tests.board.test_workspace import CARD, block, git, run_once
from tests.board.test_workspace import repository as repository  # noqa: PLC0414  # a fixture


async def made(rig: BoardRig, limits: ChangeLimits = USUAL) -> Changes:
    return changes_of(await rig.card(CARD), rig.cards.root, limits)


def listed(found: Changes) -> dict[str, tuple[object, ...]]:
    return {file.path: (file.change, file.added, file.removed) for file in found.files}


async def test_a_worktree_is_compared_with_where_its_branch_began(rig: BoardRig, repository: Path) -> None:
    (repository / "bä.txt").write_text("b\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "second")
    hand = await run_once(rig, workspace=f"worktree:{repository}")
    place = Path(hand.run.workspace)
    (place / "a.txt").write_bytes("größer\ntwo\n".encode("latin-1"))
    git(place, "commit", "-qam", "by the worker")
    (place / "bä.txt").unlink()
    (place / "new").mkdir()
    (place / "new" / "näme.txt").write_text("x\ny")
    (place / ".gitignore").write_text("*.o\n")
    (place / "left.o").write_bytes(b"\0")
    found = await made(rig)
    assert listed(found) == {
        "a.txt": ("changed", 2, 1),
        "bä.txt": ("deleted", 0, 1),
        ".gitignore": ("added", 1, 0),
        "new/näme.txt": ("added", 2, 0),
    }
    assert (
        "-one\n" in found.diff
        and "+two\n" in found.diff
        and "+++ b/new/näme.txt\n@@ -0,0 +1,2 @@\n+x\n+y\n" in found.diff
    )
    assert "--- a/bä.txt\n" in found.diff, "a name is not quoted"
    assert found.compared_with.endswith("where its branch began") and not found.left_out


async def test_all_that_is_in_a_scratch_directory_was_made(rig: BoardRig) -> None:
    assert (await rig.create(CARD), await made(rig))[1].compared_with == "it has not run yet"
    await rig.look()
    place = Path((await rig.card(CARD)).runs[0].started.workspace)
    (place / "sub").mkdir()
    (place / "sub" / "b.py").write_text("one\ntwo\n")
    (place / "a.bin").write_bytes(b"\0\1")
    (place / "empty").touch()
    git(place, "init", "-q")
    found = await made(rig)
    assert listed(found) == {
        "a.bin": ("added", None, None),
        "empty": ("added", 0, 0),
        "sub/b.py": ("added", 2, 0),
    }
    assert "+++ b/sub/b.py\n@@ -0,0 +1,2 @@\n+one\n+two\n" in found.diff and "It is no text" in found.diff
    assert found.compared_with == "its scratch directory, which began empty"


async def test_what_lies_in_a_scratch_directory_cannot_make_the_gateway_read_or_run_something_else(
    rig: BoardRig, tmp_path: Path
) -> None:
    hand = await run_once(rig)
    place = Path(hand.run.workspace)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("the secret key")
    (place / "link").symlink_to(secret / "key")
    (place / "behind").symlink_to(secret)
    (place / "loop").symlink_to(place)
    os.mkfifo(place / "pipe")
    deep = place
    for _ in range(60):
        deep = deep / "d"
        deep.mkdir()
    (deep / "deep.txt").write_text("x")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    program.chmod(0o755)
    git(place, "init", "-q")
    git(place, "config", "core.fsmonitor", str(program))
    git(place, "config", "diff.external", str(program))
    (tmp_path / "was-run").unlink(missing_ok=True)
    found = await made(rig)
    assert listed(found) == dict.fromkeys(("behind", "link", "loop", "pipe"), ("added", None, None))
    assert "secret key" not in found.diff
    assert not (tmp_path / "was-run").exists()


async def test_it_is_bounded_and_says_so(rig: BoardRig) -> None:
    hand = await run_once(rig)
    place = Path(hand.run.workspace)
    for number in range(20):
        (place / f"{number:02}.txt").write_text("line\n" * 50)
    (place / "large").write_text("x" * 5_000)
    found = await made(rig, ChangeLimits(files=10))
    assert (len(found.files), found.left_out) == (10, "There are more than 10 files.")
    found = await made(rig, ChangeLimits(characters=700, file_bytes=1_000))
    assert len(found.diff) <= 700 and found.diff.endswith("+line\n")
    assert (len(found.files), found.left_out) == (21, "The differences are cut after 700 characters.")
    assert listed(found)["large"] == ("added", None, None)
    found = await made(rig, ChangeLimits(seconds=-1))
    assert found.files == [] and "could be read within" in found.left_out


async def test_a_directory_of_the_user_is_compared_with_its_last_commit(
    rig: BoardRig, repository: Path, tmp_path: Path
) -> None:
    await run_once(rig, workspace=f"dir:{repository}")
    (repository / "a.txt").write_text("two\n")
    found = await made(rig)
    assert listed(found) == {"a.txt": ("changed", 1, 1)} and found.compared_with.startswith("the last commit, ")
    (repository / ".git").rename(tmp_path / "elsewhere")
    assert "not a git repository" in (await made(rig)).compared_with
    git(repository, "init", "-q")
    assert (await made(rig)).compared_with == "the repository has no commit yet"


async def test_a_workspace_that_was_removed_has_no_changes(rig: BoardRig) -> None:
    hand = await run_once(rig)
    await block(hand)
    await rig.tell(CARD, ArchiveCard())
    assert not await rig.dispatcher.cleanup.clean(await rig.card(CARD))
    found = await made(rig)
    assert (found.files, found.diff, found.compared_with) == ([], "", "its workspace does not exist")
