"""The doctor looks at a database server."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.config import Home
from holdfast.lifecycle import doctor
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.store import open_store
from tests.postgres_server import shared_server
from tests.store.conformance import STREAM, A, said, session, write


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
    assert not found["postgres"][0], "this server is one for tests"
    assert "fsync and full_page_writes" in found["postgres"][1]
    await store.close()
    name = database.parameters()["dbname"]
    shared_server().sql("UPDATE holdfast.sessions SET message_count = 7", database=name)
    assert findings(home)["projections"] == (False, f"1 sessions differ from their events, the first is {A}")
    assert doctor.rebuild(home) == "The projections were rebuilt from 3 events."
    assert findings(home)["projections"][0]
    shared_server().sql("UPDATE holdfast.events SET data = data || 'x' WHERE seq = 2", database=name)
    ok, detail = findings(home)["events"]
    assert not ok
    assert "does not match its checksum" in detail


def test_a_server_that_cannot_be_asked_is_a_finding(tmp_path: Path) -> None:
    ok, detail = findings(home_with(tmp_path / "one", 'url = "postgresql://127.0.0.1:1/db"'))["database"]
    assert (ok, detail) == (False, "db on 127.0.0.1:1 cannot be reached.")
    ok, detail = findings(home_with(tmp_path / "two", 'url_env = "NO_SUCH_VARIABLE"'))["database"]
    assert (ok, detail) == (False, "NO_SUCH_VARIABLE is not set, but [store] names it")
