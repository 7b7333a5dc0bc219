"""An event that this version cannot read stops its own stream, with a clear error; everything else works."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.config import Home
from holdfast.domain.errors import Corrupt
from holdfast.lifecycle.doctor import examine, rebuild
from holdfast.store.contract import Append, Write
from holdfast.store.reads import SessionCursor
from holdfast.store.sqlite.store import SqliteStore
from holdfast.timings import StoreTimings
from tests.eventually import eventually
from tests.store.conformance import created, said

A, B = "a" * 16, "b" * 16


def spoil(database: Path, *, text: str, checksum: bool) -> None:
    """Make the message with this text one from the future, or let a byte of it flip."""
    with closing(sqlite3.connect(database)) as db, db:
        [(seq, data)] = db.execute("SELECT seq, data FROM events WHERE instr(data, ?)", (text.encode(),)).fetchall()
        data = data.replace(b'"kind":"InputReceived"', b'"kind":"FromTheFuture"')
        crc = zlib.crc32(data) if checksum else 1
        db.execute("UPDATE events SET data = ?, crc = ? WHERE seq = ?", (data, crc, seq))


async def fill(store: SqliteStore) -> None:
    for session in (A, B):
        stream = f"session/{session}"
        await store.append(Append((Write(stream, (created(session), said(f"zebra {session}", "i"))),), 1))
    await store.append(Append((Write(f"session/{A}", (said("zebra later", "j"),)),), 1))


@pytest.mark.parametrize("checksum", [True, False], ids=["from the future", "damaged"])
async def test_one_unreadable_event_stops_its_own_stream_only(tmp_path: Path, checksum: bool) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    store = SqliteStore(home.database)
    await fill(store)
    await store.close()
    home.database.with_name("search.db").unlink()
    spoil(home.database, text=f"zebra {A}", checksum=checksum)
    store = SqliteStore(home.database)
    with pytest.raises(Corrupt, match="cannot be read by this version" if checksum else "checksum"):
        await store.load(f"session/{A}", after=0)
    assert len(await store.load(f"session/{B}", after=0)) == 2
    listed = await store.sessions(archived=False, before=SessionCursor(), limit=10)
    assert {row.id for row in listed} == {A, B}

    async def found() -> set[str]:
        return {hit.snippet for hit in await store.search("zebra", limit=10)}

    async def others() -> bool:
        return await found() == {f"zebra {B}", "zebra later"}

    await eventually(others)
    assert store.search_state.problem == ""
    await store.close()

    [events] = [finding for finding in examine(home) if finding.name == "events"]
    assert not events.ok
    assert f"session/{A}" in events.detail
    assert f"session/{A}" in rebuild(home)
    store = SqliteStore(home.database)
    rows = [await store.session(id) for id in (A, B)]
    assert [row.message_count for row in rows] == [0, 1], "what came before it is there"
    await store.close()


async def test_a_bug_in_the_search_does_not_end_its_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = [RuntimeError("a bug")]
    index = "holdfast.store.sqlite.search.SearchIndex._index"
    from holdfast.store.sqlite.search import SearchIndex

    before = SearchIndex._index

    def broken(self: SearchIndex, records: list[object]) -> None:
        if errors:
            raise errors.pop()
        before(self, records)  # type: ignore[arg-type]

    monkeypatch.setattr(index, broken)
    store = SqliteStore(tmp_path / "holdfast.db", StoreTimings(search_retry=0.01))
    await fill(store)

    async def found() -> bool:
        return len(await store.search("zebra", limit=10)) == 3

    await eventually(found)
    assert store.search_state.restarts == 1
    await store.close()
