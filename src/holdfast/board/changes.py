"""What a card made: the files that differ from what its workspace began with, and how.

A worktree is compared with the commit that its branch left, a directory of the user with its last commit. A scratch
directory began empty, so all that is in it was made.

Blocks: call it in a thread.
"""

from __future__ import annotations

from pathlib import Path

from holdfast.board.workspace import Unusable
from holdfast.changed_files import USUAL, ChangeLimits, Changes, all_files, changes_in_repository
from holdfast.domain.card import Card
from holdfast.git import GitFailed, find_repository


def changes_of(card: Card, root: Path, limits: ChangeLimits = USUAL) -> Changes:
    """Return what the card made. Unusable if its workspace cannot be read."""
    kind, _, path = card.workspace.partition(":")
    place = Path(path).expanduser() if kind == "dir" else root / card.id
    if not place.is_dir():
        return Changes("its workspace does not exist" if card.runs else "it has not run yet")
    if kind == "scratch":
        return all_files(place, "its scratch directory, which began empty", limits=limits)
    try:
        repository = find_repository(place)
        if repository is None:
            return Changes("its directory is not a git repository, so what changed there is not known")
        origin = Path(path).expanduser() if kind == "worktree" else None
        return changes_in_repository(repository, origin=origin, limits=limits)
    except GitFailed as error:
        raise Unusable(str(error)) from error
