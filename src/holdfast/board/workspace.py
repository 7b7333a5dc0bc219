"""Workspaces of cards: a scratch directory, a directory of the user, or a git worktree on a branch of its own.

A workspace is checked before every run, and the worker is given its state. Unsaved work is never removed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.domain.card import Card
from holdfast.domain.errors import Rejected
from holdfast.git import GitFailed, Repository, as_text, find_repository, manage_worktrees, read_git, status


class Unusable(Exception):
    """The workspace cannot be used, for this reason."""


@dataclass(frozen=True, slots=True)
class WorkspaceState:
    """A workspace, and its state as a phrase for the worker."""

    path: Path
    words: str


def branch_of(card: str) -> str:
    """Return the branch of a card's worktree."""
    return f"holdfast/{card}"


def check(workspace: str) -> None:
    """Reject a workspace that cannot be used, when the card is created."""
    kind, _, path = workspace.partition(":")
    if kind == "scratch":
        return
    place = Path(path).expanduser()
    if not place.is_absolute() or not place.is_dir():
        raise Rejected(
            f"{path!r} is not the absolute path of a directory.",
            hint="A workspace is `scratch`, `dir:PATH` or `worktree:REPO`.",
        )
    if kind == "worktree" and not _is_repository(place):
        raise Rejected(f"{path} is not a git repository.", hint="Run `git init` there, or use `dir:PATH`.")


def _is_repository(place: Path) -> bool:
    try:
        return find_repository(place) is not None
    except GitFailed:
        return False


def prepare(card: Card, root: Path, *, anew: bool) -> WorkspaceState:
    """Return the workspace. It is created for a first run or with `anew`; otherwise it must exist."""
    kind, _, path = card.workspace.partition(":")
    if kind == "dir":
        place = Path(path).expanduser()
        if not place.is_dir():
            raise Unusable(f"the directory {path} no longer exists")
        return WorkspaceState(place, f"{place}, {_state(place)}")
    own, anew = root / card.id, anew or not card.runs
    if kind == "worktree":
        return _worktree(card, Path(path).expanduser(), own, anew=anew)
    if own.is_dir():
        count = sum(1 for _ in own.iterdir())
        return WorkspaceState(own, f"{own}, a scratch directory with {_some(count, 'entry', 'entries')}")
    if not anew:
        raise Unusable(f"the scratch directory {own} no longer exists")
    own.mkdir(parents=True)
    return WorkspaceState(own, f"{own}, a new, empty scratch directory")


def _worktree(card: Card, repository: Path, own: Path, *, anew: bool) -> WorkspaceState:
    branch = branch_of(card.id)
    if not repository.is_dir():
        raise Unusable(f"the repository {repository} no longer exists")
    origin = _repository(repository)
    if own.is_dir() and not card.runs:  # a killed gateway may have left it incomplete
        _manage(origin, "prune")
        with suppress(Unusable):
            _manage(origin, "remove", str(own))
    if own.is_dir():
        on = _git(_repository(own), "rev-parse", "--abbrev-ref", "HEAD")
        if on != branch:
            raise Unusable(f"the worktree {own} is on branch {on}, not on {branch}")
        return WorkspaceState(own, f"{own}, a worktree of {repository} on branch {branch}, {_state(own)}")
    own.parent.mkdir(parents=True, exist_ok=True)
    _manage(origin, "prune")
    known = _git_succeeds(origin, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
    if not known and not anew:
        raise Unusable(f"the worktree {own} and its branch {branch} no longer exist")
    _manage(origin, "add", str(own), *([branch] if known else ["-b", branch]))
    _git(_repository(own), "read-tree", "--reset", "-u", "HEAD")
    gone = "recreated because it was missing; uncommitted changes are lost"
    made = "new" if not card.runs else gone if not anew else "recreated"
    return WorkspaceState(own, f"{own}, a worktree of {repository} on branch {branch} ({made})")


def _state(place: Path) -> str:
    try:
        repository = find_repository(place)
        if repository is None:
            return "not a git repository"
        committed = _git_succeeds(repository, "rev-parse", "HEAD")
        on = _git(repository, "rev-parse", "--abbrev-ref", "HEAD") if committed else "no commit yet"
        changed = _uncommitted(repository)
    except (GitFailed, Unusable) as error:
        return f"a git repository that could not be read: {error}"
    return f"branch {on}, " + (
        "clean" if not changed else f"{_some(changed, 'file', 'files')} with uncommitted changes"
    )


def _some(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def unsaved_work(card: Card, root: Path) -> str:
    """Return the unsaved work in the workspace; empty when it can be removed."""
    kind = card.workspace.partition(":")[0]
    own = root / card.id
    if kind == "dir" or not own.is_dir():
        return ""
    if kind == "scratch":
        names = sorted(entry.name for entry in own.iterdir())
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        return f"{', '.join(names[:5])}{more} in {own}" if names else ""
    repository = _repository(own)
    if changed := _uncommitted(repository):
        return f"{_some(changed, 'file', 'files')} with uncommitted changes in {own}"
    branch, head = branch_of(card.id), _git(repository, "rev-parse", "HEAD")
    places = ("refs/heads", "refs/remotes", "refs/tags")
    elsewhere = _git(repository, "for-each-ref", "--contains", head, "--format=%(refname)", *places).splitlines()
    if any(name != f"refs/heads/{branch}" for name in elsewhere):
        return ""
    return f"commits on {branch} that are neither merged nor pushed"


def remove(card: Card, root: Path) -> None:
    """Remove a workspace without unsaved work. It is kept if work was added meanwhile."""
    kind, _, path = card.workspace.partition(":")
    own = root / card.id
    if kind == "scratch" and own.is_dir():
        own.rmdir()  # fails if a file was added since
    elif kind == "worktree" and own.is_dir():
        if changed := _uncommitted(_repository(own)):
            raise Unusable(f"{_some(changed, 'file', 'files')} with uncommitted changes in {own}")
        _manage(_repository(Path(path).expanduser()), "remove", str(own))


def _uncommitted(repository: Repository) -> int:
    """Return how many files are changed or new."""
    try:
        return status(repository, "-z").count("\0")
    except GitFailed as error:
        raise Unusable(str(error)) from error


def _repository(place: Path) -> Repository:
    try:
        repository = find_repository(place)
    except GitFailed as error:
        raise Unusable(str(error)) from error
    if repository is None:
        raise Unusable(f"{place} is not in a git repository")
    return repository


def _git(repository: Repository, *words: str) -> str:
    try:
        return as_text(read_git(repository, *words)).strip()
    except GitFailed as error:
        raise Unusable(str(error)) from error


def _git_succeeds(repository: Repository, *words: str) -> bool:
    try:
        _git(repository, *words)
    except Unusable:
        return False
    return True


def _manage(repository: Repository, *words: str) -> None:
    try:
        manage_worktrees(repository, *words)
    except GitFailed as error:
        raise Unusable(str(error)) from error
