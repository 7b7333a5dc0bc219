"""Changed files in responses: what a card made, what a task changed."""

from __future__ import annotations

import msgspec


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file that differs from what it is compared with."""

    path: str
    change: str
    """added, changed or deleted."""
    added: int | None
    removed: int | None
    """Lines; null if it is no text or too large."""


class FileChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The files that differ, and their lines."""

    compared_with: str
    """In words: the commit, the empty scratch directory, or why there is nothing to compare with."""
    files: list[FileChange]
    diff: str
    left_out: str
    """In words: what is missing here because there is too much of it; empty when nothing is."""
