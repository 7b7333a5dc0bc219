"""Where a card is worked on: a scratch directory, a directory of the user's, or a git worktree on a branch of its own.

Looked at before every run, and what was found is told to the worker. Nothing is ever removed with work in it.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from holdfast.config import command_environment
from holdfast.domain.card import Card
from holdfast.domain.errors import Rejected

GIT_SECONDS = 60.0


class Unusable(Exception):
    """The workspace cannot be worked in; says why."""


@dataclass(frozen=True, slots=True)
class Found:
    """A workspace, and how it was found."""

    path: Path
    words: str


def branch_of(card: str) -> str:
    """The branch of a card's worktree."""
    return f"holdfast/{card}"


def check(workspace: str) -> None:
    """Refuse what can never work, when the card is made."""
    kind, _, path = workspace.partition(":")
    if kind == "scratch":
        return
    place = Path(path).expanduser()
    if not place.is_absolute() or not place.is_dir():
        raise Rejected(f"{path!r} is not the absolute path of a directory.", hint="scratch, dir:PATH or worktree:REPO.")
    if kind == "worktree" and not _git_says(place, "rev-parse", "--git-dir"):
        raise Rejected(f"{path} is not a git repository.", hint="Make it one (`git init`), or use dir:PATH.")


def prepare(card: Card, root: Path, *, anew: bool) -> Found:
    """Make it if it is not there yet, and look at it. `anew`: nobody counts on what was in it."""
    kind, _, path = card.workspace.partition(":")
    if kind == "dir":
        place = Path(path).expanduser()
        if not place.is_dir():
            raise Unusable(f"the directory {path} is gone")
        return Found(place, f"{place}, {_state(place)}")
    own, anew = root / card.id, anew or not card.runs
    if kind == "worktree":
        return _worktree(card, Path(path).expanduser(), own, anew=anew)
    if own.is_dir():
        count = sum(1 for _ in own.iterdir())
        return Found(own, f"{own}, a scratch directory with {_some(count, 'entry', 'entries')}")
    if not anew:
        raise Unusable(f"the scratch directory {own} is gone")
    own.mkdir(parents=True)
    return Found(own, f"{own}, a new and empty scratch directory")


def _worktree(card: Card, repository: Path, own: Path, *, anew: bool) -> Found:
    branch = branch_of(card.id)
    if not repository.is_dir():
        raise Unusable(f"the repository {repository} is gone")
    if own.is_dir() and not card.runs:  # we were killed while it was made: it may be half there
        _git(repository, "worktree", "prune")
        _git_says(repository, "worktree", "remove", "--force", "--force", str(own))
    if own.is_dir():
        on = _git(own, "rev-parse", "--abbrev-ref", "HEAD")
        if on != branch:
            raise Unusable(f"the worktree {own} is on branch {on}, not on {branch}")
        return Found(own, f"{own}, a worktree of {repository} on branch {branch}, {_state(own)}")
    own.parent.mkdir(parents=True, exist_ok=True)
    _git(repository, "worktree", "prune")
    known = _git_says(repository, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
    if not known and not anew:
        raise Unusable(f"the worktree {own} and its branch {branch} are gone")
    _git(repository, "worktree", "add", str(own), *([branch] if known else ["-b", branch]))
    gone = "it was gone and was made again; what was not committed is lost"
    made = "new" if not card.runs else gone if not anew else "made again"
    return Found(own, f"{own}, a worktree of {repository} on branch {branch} ({made})")


def _state(place: Path) -> str:
    if not _git_says(place, "rev-parse", "--git-dir"):
        return "not under git"
    on = _git(place, "rev-parse", "--abbrev-ref", "HEAD") if _git_says(place, "rev-parse", "HEAD") else "no commit yet"
    changed = len(_git(place, "status", "--porcelain").splitlines())
    return f"branch {on}, " + (
        "clean" if not changed else f"{_some(changed, 'file', 'files')} changed and not committed"
    )


def _some(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def diff(card: Card, root: Path, limit: int) -> str:
    """What is different in it from where it began, as far as git knows."""
    kind, _, path = card.workspace.partition(":")
    place = Path(path).expanduser() if kind == "dir" else root / card.id
    if not place.is_dir() or not _git_says(place, "rev-parse", "HEAD"):
        return ""
    since = _git(Path(path).expanduser(), "rev-parse", "HEAD") if kind == "worktree" else "HEAD"
    base = _git(place, "merge-base", "HEAD", since) if kind == "worktree" else "HEAD"
    text = _git(place, "diff", "--no-color", "--no-ext-diff", base)
    extra = _git(place, "ls-files", "--others", "--exclude-standard")
    new = "".join(f"\nnew file: {name}" for name in extra.splitlines()[:200])
    return (text + new)[:limit]


def lost_with(card: Card, root: Path) -> str:
    """What would be lost with its workspace; nothing when it can go."""
    kind = card.workspace.partition(":")[0]
    own = root / card.id
    if kind == "dir" or not own.is_dir():
        return ""
    if kind == "scratch":
        names = sorted(entry.name for entry in own.iterdir())
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        return f"{', '.join(names[:5])}{more} in {own}" if names else ""
    changed = _git(own, "status", "--porcelain").splitlines()
    if changed:
        return f"{_some(len(changed), 'file', 'files')} changed and not committed in {own}"
    branch, head = branch_of(card.id), _git(own, "rev-parse", "HEAD")
    places = ("refs/heads", "refs/remotes", "refs/tags")
    elsewhere = _git(own, "for-each-ref", "--contains", head, "--format=%(refname)", *places).splitlines()
    if any(name != f"refs/heads/{branch}" for name in elsewhere):
        return ""
    return f"commits on {branch} that are neither merged nor pushed"


def remove(card: Card, root: Path) -> None:
    """Take it away after `lost_with` said that nothing is lost. What has work in it after all stays."""
    kind, _, path = card.workspace.partition(":")
    own = root / card.id
    if kind == "scratch" and own.is_dir():
        own.rmdir()  # which fails if something came into it since
    elif kind == "worktree" and own.is_dir():
        _git(Path(path).expanduser(), "worktree", "remove", str(own))


def _git(place: Path, *words: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 (our own words, and no shell)
            ["git", "-C", str(place), *words],  # noqa: S607
            env=command_environment(set()),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unusable(f"git does not answer: {error}") from error
    if done.returncode:
        raise Unusable(f"git {words[0]} failed: {' '.join(done.stderr.split())[-400:]}")
    return done.stdout.strip()


def _git_says(place: Path, *words: str) -> bool:
    try:
        _git(place, *words)
    except Unusable:
        return False
    return True
