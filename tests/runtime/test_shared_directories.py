"""Directories that are the same on every node, and those that only look so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.profiles import Profiles
from holdfast.shared_directories import MARKER, SharedDirectories
from holdfast.store.postgres.connections import Database
from tests.postgres_server import schemas
from tests.store.test_nodes import opened


@pytest.fixture
def database() -> Iterator[Database]:
    database = schemas.take()
    yield database
    schemas.give_back(database)


def profiles(directory: Path, *shared: Path) -> Profiles:
    config = directory / "config.toml"
    roots = ", ".join(f'"{root}"' for root in shared)
    config.write_text(f"[cluster]\nshared = [{roots}]\n")
    return Profiles(config)


async def test_a_directory_is_shared_when_both_nodes_find_the_same_number(database: Database, tmp_path: Path) -> None:
    root = tmp_path / "team"
    (root / "project").mkdir(parents=True)
    known = profiles(tmp_path, root)
    async with opened(database, "one") as one, opened(database, "two") as two:
        for store in (one, two):
            assert await SharedDirectories(store, known).why_private(str(root / "project")) == ""
        number = (root / MARKER).read_text()
        assert int(number) > 0
        (root / MARKER).write_text("7\n")  # as if another disk were mounted there
        assert "other nodes have another directory" in await SharedDirectories(two, known).why_private(str(root))
        (root / MARKER).write_text(number)
        assert await SharedDirectories(two, known).why_private(str(root)) == ""


async def test_what_is_not_under_a_shared_directory_is_private(database: Database, tmp_path: Path) -> None:
    root, other = tmp_path / "team", tmp_path / "team2"
    root.mkdir()
    other.mkdir()
    (root / "way-out").symlink_to(other)
    known = profiles(tmp_path, root)
    async with opened(database, "one") as one:
        shared = SharedDirectories(one, known)
        for directory in (other, root / "way-out", root / ".." / "team2"):
            assert "is not under `shared`" in await shared.why_private(str(directory))


@pytest.mark.parametrize("text", ["", "abc", "9" * 40])
async def test_a_marker_that_cannot_be_read_shares_nothing(database: Database, tmp_path: Path, text: str) -> None:
    (tmp_path / MARKER).write_text(text)
    async with opened(database, "one") as one:
        found = await SharedDirectories(one, profiles(tmp_path, tmp_path)).why_private(str(tmp_path))
        assert "is not known to be shared" in found


async def test_a_marker_is_not_looked_for_behind_a_link(database: Database, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("7\n")
    (tmp_path / MARKER).symlink_to(tmp_path / "elsewhere")
    async with opened(database, "one") as one:
        found = await SharedDirectories(one, profiles(tmp_path, tmp_path)).why_private(str(tmp_path))
        assert "is not known to be shared" in found
