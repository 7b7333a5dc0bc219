"""The text that another node generates, for clients that have the events up to the moment at which it was read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.gateway.remote_texts import RemoteTexts
from holdfast.store.postgres.connections import Database
from holdfast.store.rows import PartialText
from tests.eventually import eventually
from tests.postgres_server import schemas
from tests.store.conformance import AT, STREAM, A, asked, session, started, versions, write
from tests.store.test_nodes import opened


@pytest.fixture
def database() -> Iterator[Database]:
    database = schemas.take()
    yield database
    schemas.give_back(database)


async def test_text_of_another_node_grows_and_is_never_shown_behind_a_later_event(database: Database) -> None:
    async with opened(database, "worker") as worker, opened(database, "viewer") as viewer:
        await session(worker, A, "hello")
        lease = await worker.claim(STREAM, holder="t")
        await write(worker, STREAM, started(), lease=lease)
        texts, own = RemoteTexts(viewer, 0.01), RemoteTexts(worker, 0.01)
        last = (await versions(worker, STREAM))[-1]

        async def says(text: str, after: int) -> None:
            async def is_shown() -> bool:
                found = texts.get(STREAM, after=after)
                return found is not None and found.text == text

            await eventually(is_shown)

        with texts.watching(STREAM), own.watching(STREAM):
            for step, text in ((1, "ab"), (1, "abcd"), (1, "abcdef"), (2, "xy"), (2, "xyz")):
                await worker.save_partial(lease, PartialText(1, step, text, "", AT))
                await says(text, last)
            assert texts.get(STREAM, after=last - 1) is None
            assert texts.get(STREAM, after=last + 1) is None
            assert own.get(STREAM, after=last) is None, "it has the text in memory"
            await write(worker, STREAM, asked(), lease=lease)
            await says("xyz", last + 1)
            assert texts.get(STREAM, after=last) is None, "it has not got the new event"
        assert texts.get(STREAM, after=last + 1) is None, "nobody watches"
        await texts.close()
