"""Notifications of several nodes: a person who looks on one is not notified by another; one key for all pushes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.notify.presence import Presence
from holdfast.notify.push_encryption import PushKey
from holdfast.store.postgres.connections import Database
from tests.eventually import eventually
from tests.postgres_server import schemas
from tests.store.test_nodes import opened


@pytest.fixture
def database() -> Iterator[Database]:
    database = schemas.take()
    yield database
    schemas.give_back(database)


async def test_a_look_on_one_node_is_known_to_another(database: Database) -> None:
    async with opened(database, "one") as one, opened(database, "two") as two:
        here, there = Presence(SystemClock(), one.exchange), Presence(SystemClock(), two.exchange)
        here.sharing.start()

        async def known(stream: str) -> bool:
            await there.refresh(stream)
            return there.until(stream) > SystemClock().now()

        try:
            assert not await known("session/a")
            here.look(["session/a"])
            await eventually(lambda: known("session/a"))
            with here.attached("session/b"):
                await eventually(lambda: known("session/b"))
            assert not await known("session/c")
        finally:
            await here.sharing.stop()


async def test_all_nodes_use_the_key_of_the_first(database: Database, tmp_path: Path) -> None:
    first, second = PushKey(tmp_path / "a.pem"), PushKey(tmp_path / "b.pem")
    own = first.public(), second.public()
    assert own[0] != own[1]
    async with opened(database, "one") as one, opened(database, "two") as two:
        assert one.settings is not None and two.settings is not None
        await first.share(one.settings)
        await second.share(two.settings)
    assert (first.public(), second.public()) == (own[0], own[0])
