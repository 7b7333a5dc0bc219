"""The doctor looks at a database server."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from msgspec.structs import replace

from holdfast.config import Home
from holdfast.domain.errors import HoldfastError, Rejected, Unavailable
from holdfast.lifecycle import doctor
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.migrate import prepare
from holdfast.store.postgres.server_findings import (
    DeadRows,
    ServerState,
    connections_finding,
    replication_finding,
    vacuum_finding,
)
from holdfast.store.postgres.store import open_store
from tests.postgres_server import shared_server
from tests.store.conformance import STREAM, A, B, said, session, write


@pytest.fixture
def database() -> Iterator[Database]:
    """A database of its own, with the usual schema."""
    name = f"d{secrets.token_hex(4)}"
    shared_server().sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    yield Database(shared_server().url(name))
    shared_server().sql(f"DROP DATABASE {name} WITH (FORCE)")


def home_with(path: Path, line: str) -> Home:
    path.mkdir(mode=0o700)
    (path / "config.toml").write_text(f"[store]\n{line}\n")
    return Home(path)


def findings(home: Home) -> dict[str, tuple[bool, str]]:
    return {finding.name: (finding.ok, finding.detail) for finding in doctor.examine(home)}


async def test_a_database_is_checked_and_rebuilt(database: Database, tmp_path: Path) -> None:
    home = home_with(tmp_path / "home", f'url = "{database.url}"')
    assert findings(home)["database"] == (True, "empty; the next start of a gateway creates the tables")
    store = await open_store(database, home.tasks)
    await session(store, A, "one")
    await write(store, STREAM, said())
    found = findings(home)
    assert found["events"] == (True, "3 events, all checksums are correct")
    assert found["projections"] == (True, "agree with the events")
    assert found["connections"][0]
    assert found["replication"] == (True, "a commit waits for no standby")
    assert found["vacuum"] == (False, "autovacuum is off, so the database grows and gets slower")
    assert found["database size"][0]
    assert not found["postgres"][0], "this server is one for tests"
    assert "fsync and full_page_writes" in found["postgres"][1]
    await store.close()
    name = database.parameters()["dbname"]
    shared_server().sql("UPDATE holdfast.sessions SET message_count = 7", database=name)
    assert findings(home)["projections"] == (False, f"1 sessions differ from their events, the first is {A}")
    assert doctor.rebuild(home) == "The projections were rebuilt from 3 events."
    assert findings(home)["projections"][0]
    shared_server().sql("UPDATE holdfast.counters SET value = 99 WHERE name = 'messages'", database=name)
    assert findings(home)["projections"] == (False, "counts are wrong: messages")
    doctor.rebuild(home)
    assert findings(home)["projections"][0]
    shared_server().sql("UPDATE holdfast.events SET data = data || 'x' WHERE seq = 2", database=name)
    ok, detail = findings(home)["events"]
    assert not ok
    assert "does not match its checksum" in detail


@pytest.mark.parametrize("checksum", [True, False], ids=["from the future", "damaged"])
async def test_a_rebuild_names_the_stream_that_stops_and_makes_the_others(
    database: Database, tmp_path: Path, checksum: bool
) -> None:
    home = home_with(tmp_path / "home", f'url = "{database.url}"')
    store = await open_store(database, home.tasks)
    await session(store, A, "one", "later")
    await session(store, B, "two")
    await store.close()
    with psycopg.connect(database.url) as db:
        [(seq, data)] = db.execute("SELECT seq, data FROM holdfast.events WHERE seq = 2").fetchall()
        data = data.replace(b'"kind":"InputReceived"', b'"kind":"FromTheFuture"')
        crc = zlib.crc32(data) if checksum else 1
        db.execute("UPDATE holdfast.events SET data = %s, crc = %s WHERE seq = %s", (data, crc, seq))
    assert doctor.rebuild(home).endswith(
        f" An event cannot be read, so it and later events were skipped in: session/{A}."
    )
    store = await open_store(database, home.tasks)
    rows = [await store.session(id) for id in (A, B)]
    assert [row.message_count for row in rows] == [0, 1], "what came before it is there"
    await store.close()


def test_a_server_that_cannot_be_asked_is_a_finding(tmp_path: Path) -> None:
    ok, detail = findings(home_with(tmp_path / "one", 'url = "postgresql://127.0.0.1:1/db"'))["database"]
    assert (ok, detail) == (False, "db on 127.0.0.1:1 cannot be reached.")
    ok, detail = findings(home_with(tmp_path / "two", 'url_env = "NO_SUCH_VARIABLE"'))["database"]
    assert (ok, detail) == (False, "NO_SUCH_VARIABLE is not set here, but [store] takes the database address from it")


def test_a_rebuild_needs_a_server_and_a_log(tmp_path: Path, database: Database) -> None:
    with pytest.raises(Rejected, match="NO_SUCH_VARIABLE is not set"):
        doctor.rebuild(home_with(tmp_path / "one", 'url_env = "NO_SUCH_VARIABLE"'))
    with pytest.raises(Unavailable, match="cannot be reached"):
        doctor.rebuild(home_with(tmp_path / "two", 'url = "postgresql://127.0.0.1:1/db"'))
    with pytest.raises(HoldfastError, match="does not exist"):
        doctor.rebuild(home_with(tmp_path / "three", f'url = "{database.url}"'))


async def test_tables_of_an_older_version_are_named_and_not_read(tmp_path: Path, database: Database) -> None:
    await prepare(database)
    shared_server().sql("UPDATE holdfast.schema_version SET version = 0", database=database.parameters()["dbname"])
    ok, detail = findings(home_with(tmp_path / "home", f'url = "{database.url}"'))["database"]
    assert ok
    assert detail.startswith("schema 0; the next start of a gateway of this version brings it to")


def test_a_user_without_rights_can_be_asked_too(tmp_path: Path, database: Database) -> None:
    shared_server().sql("DROP ROLE IF EXISTS plain", "CREATE ROLE plain LOGIN")
    url = shared_server().url(database.parameters()["dbname"], user="plain")
    found = findings(home_with(tmp_path / "home", f'url = "{url}"'))
    assert found["connections"][0] and found["database"][0]
    shared_server().sql("DROP ROLE plain")


WELL = ServerState(
    used_connections=20,
    connections=97,
    standbys=1,
    synchronous_standbys=1,
    sees_standbys=True,
    kept_wal_bytes=0,
    database_bytes=1,
    transaction_age=1_000,
    oldest_transaction_seconds=1,
)


@pytest.mark.parametrize(
    ("changes", "names", "ok", "said"),
    [
        ({}, "", True, "a failover can lose the last commits"),
        ({}, "s1", True, "a commit waits for s1, which is connected"),
        ({"synchronous_standbys": 0}, "s1", False, "s1, which is not connected, so nothing can be written"),
        ({"synchronous_standbys": 0, "sees_standbys": False}, "s1", True, "may not see"),
        ({"kept_wal_bytes": 5 << 30}, "", False, "keeps 5.0 GiB of WAL"),
    ],
)
def test_replication_that_loses_or_blocks_commits_is_named(
    changes: dict[str, int], names: str, ok: bool, said: str
) -> None:
    found = replication_finding(replace(WELL, **changes), {"synchronous_standby_names": names})
    assert (found.ok, bool(found.hint)) == (ok, not ok)
    assert said in found.detail


@pytest.mark.parametrize(
    ("changes", "dead", "ok", "said"),
    [
        ({}, DeadRows("sessions", 10, 100_000), True, "keeps up"),
        ({}, DeadRows("sessions", 10, 100_001), False, "sessions has 100,001 dead rows and 10 others"),
        ({"transaction_age": 1_600_000_000}, None, False, "no VACUUM for 1,600,000,000 transactions"),
        ({"oldest_transaction_seconds": 7_200}, None, False, "open for 120 minutes"),
    ],
)
def test_what_keeps_the_server_from_cleaning_up_is_named(
    changes: dict[str, int], dead: DeadRows | None, ok: bool, said: str
) -> None:
    found = vacuum_finding(replace(WELL, **changes), {"autovacuum": "on"}, dead)
    assert (found.ok, bool(found.hint)) == (ok, not ok)
    assert said in found.detail


def test_connections_that_are_used_up_are_named() -> None:
    assert connections_finding(WELL).ok
    assert connections_finding(replace(WELL, used_connections=88)).hint.startswith("Raise max_connections")
