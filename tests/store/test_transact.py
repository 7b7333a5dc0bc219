"""Read, decide, append, and again after a lost race."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.domain.errors import Conflict, VersionConflict
from holdfast.domain.events import session_stream
from holdfast.domain.events.session import SessionRenamed
from holdfast.store.contract import Append, Appended, CommandKey, Write
from holdfast.store.sqlite.store import SqliteStore
from tests.actors import person
from tests.store.conformance import created

STREAM = session_stream("s1")
KEY = CommandKey("c1", "digest")


class Renaming:
    """Names the session after the version that it was decided on."""

    def __init__(self, store: SqliteStore, *, rivals: int = 0) -> None:
        self.store = store
        self.rivals = rivals
        self.decided_on: list[int] = []

    async def writes(self) -> tuple[Write, ...]:
        version = len(await self.store.load(STREAM, after=0))
        self.decided_on.append(version)
        if len(self.decided_on) <= self.rivals:
            await self.store.append(Append((Write(STREAM, (self._renamed("rival"),)),), at=1))
        return (Write(STREAM, (self._renamed(f"after {version}"),), expect=version),)

    def _renamed(self, title: str) -> SessionRenamed:
        return SessionRenamed(title=title, by=person("ann"))

    async def run(self, command: CommandKey | None = None) -> Appended:
        return await self.store.transact(SystemClock(), self.writes, command=command)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "state.db")
    await opened.append(Append((Write(STREAM, (created("s1"),)),), at=1))
    yield opened
    await opened.close()


async def test_it_decides_again_after_each_lost_race(store: SqliteStore) -> None:
    renaming = Renaming(store, rivals=3)
    appended = await renaming.run()
    assert renaming.decided_on == [1, 2, 3, 4] and appended.version == 5
    assert appended.records[0].event == SessionRenamed(title="after 4", by=person("ann"))


async def test_a_refusal_of_a_retry_returns_what_the_first_try_stored(store: SqliteStore) -> None:
    first = await Renaming(store).run(KEY)

    async def refuse() -> tuple[Write, ...]:
        raise Conflict("It has that name already.")

    again = await store.transact(SystemClock(), refuse, command=KEY)
    assert (again.version, again.duplicate, again.records) == (first.version, True, ())
    with pytest.raises(Conflict, match="has that name"):
        await store.transact(SystemClock(), refuse, command=CommandKey("c2", "digest"))
    with pytest.raises(Conflict, match="has that name"):
        await store.transact(SystemClock(), refuse)


async def test_a_command_id_that_means_something_else_is_not_tried_again(store: SqliteStore) -> None:
    await Renaming(store).run(KEY)
    other = Renaming(store)
    with pytest.raises(Conflict):
        await other.run(CommandKey("c1", "another digest"))
    assert len(other.decided_on) == 1


async def test_a_version_that_never_was_ends_after_the_second_try(store: SqliteStore) -> None:
    tries = 0

    async def wrong() -> tuple[Write, ...]:
        nonlocal tries
        tries += 1
        return (Write(STREAM, (), expect=7),)

    with pytest.raises(VersionConflict):
        await store.transact(SystemClock(), wrong)
    assert tries == 2
