"""A whole store is copied from one engine to the other and back: every row, or nothing."""

from __future__ import annotations

import asyncio
import resource
import secrets
import signal
import sqlite3
import tarfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import psycopg
import pytest

from holdfast.config import ConfigError, Home
from holdfast.domain.errors import Conflict, Corrupt, HoldfastError, NotFound, Rejected, Unavailable
from holdfast.lifecycle.store_copy import Copied, StorePlace, copy
from holdfast.store import copying
from holdfast.store.contract import CommandKey
from holdfast.store.home_lock import HomeLock
from holdfast.store.outbox_store import OutboxPlan
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.copying import open_target
from holdfast.store.postgres.migrate import prepare
from holdfast.store.postgres.store import open_store
from holdfast.store.rows import PartialText
from holdfast.store.sqlite.copying import open_source
from holdfast.store.sqlite.store import SqliteStore
from tests.postgres_server import shared_server
from tests.store.conformance import AT, OTHER, STREAM, A, B, created, let_in, pushed, said, session, started, write
from tests.store.conformance_outbox import delivery
from tests.store.test_postgres_faults import FULL_DISK

HOMES = Path(__file__).parents[1] / "homes"
LEFT_OUT = {"nodes", "leases", "schema_version", "texts", "inputs", "node_requests", "output_copies"} | {
    "shared_settings",
    "shared_keys",
    "looks",
}
"""Lives, leases and requests belong to processes, a search index is made anew, outputs are in the homes.

The settings and keys that nodes share are files of a home.
"""


@pytest.fixture
def database() -> Iterator[Database]:
    """A database of its own, empty."""
    name = f"c{secrets.token_hex(4)}"
    shared_server().sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    yield Database(shared_server().url(name))
    shared_server().sql(f"DROP DATABASE {name} WITH (FORCE)")


def quiet(what: str, done: int, of: int) -> None: ...


async def copied(home: Path, database: Database) -> Copied:
    return await asyncio.to_thread(copy, StorePlace(str(home)), StorePlace(database.url), quiet)


async def copied_back(home: Path, database: Database) -> Copied:
    return await asyncio.to_thread(copy, StorePlace(database.url), StorePlace(str(home)), quiet)


async def new_home(path: Path) -> Path:
    """One with little in it."""
    home = Home(path)
    home.prepare()
    store = SqliteStore(home.database)
    await session(store, A, "one")
    await store.close()
    return path


async def full_home(path: Path) -> Path:
    """One with a row in every table: that of an earlier version, and what it did not have."""
    with tarfile.open(next(HOMES.glob("*.tar.xz"))) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        packed.extractall(path)
    home = Home(path / "home")
    home.prepare()
    store = SqliteStore(home.database)
    await write(
        store, STREAM, created(A, title="a\0b"), said("c\0d"), started(1, "i"), command=CommandKey("c1", "d", "[1]")
    )
    await write(store, OTHER, created(B))
    lease = await store.claim(STREAM, holder="worker")
    await store.save_partial(lease, PartialText(turn=1, step=1, text="so far", thinking="hm", at=AT))
    await let_in(store, "d1", "d2")
    await store.devices.add_code("hash", expires_at=AT + 9_999, at=AT, device="d1")
    await store.devices.mark_seen("d1", A, 2, at=AT)
    await store.devices.save_push(pushed("d2", "https://push"))
    await store.outbox.begin()
    await store.outbox.plan(OutboxPlan(9, (delivery(3),)))
    await store.close()
    return home.path


def rows_of(file: Path) -> dict[str, list[tuple[object, ...]]]:
    """All that is copied, as it is stored."""
    with closing(sqlite3.connect(file)) as db:
        found = {
            table: db.execute(f"SELECT * FROM {table} ORDER BY {', '.join(key)}").fetchall()
            for table, key in copying.COPIED.items()
        }
    return {table: [copying.without_nul(row) for row in rows] for table, rows in found.items()}


def is_empty(database: Database) -> bool:
    """Also without tables."""
    with psycopg.connect(database.url) as db:
        if db.execute("SELECT to_regclass('holdfast.events')").fetchone() == (None,):
            return True
        counts = [db.execute(f"SELECT count(*) FROM holdfast.{table}".encode()).fetchone() for table in copying.COPIED]
    return all(count == (0,) for count in counts[:-1])


async def test_everything_is_the_same_after_the_way_there_and_back(tmp_path: Path, database: Database) -> None:
    home, back = await full_home(tmp_path), Home(tmp_path / "back")
    back.prepare()
    back.path.joinpath("search.db").write_bytes(b"of another log")
    there = (await copied(home, database)).report
    again = (await copied_back(back.path, database)).report
    before, after = rows_of(home / "holdfast.db"), rows_of(back.database)
    assert [table for table, rows in before.items() if not rows] == []
    assert after == before
    with closing(sqlite3.connect(home / "holdfast.db")) as db:
        lines = [data for (data,) in db.execute("SELECT CAST(data AS BLOB) FROM events ORDER BY seq")]
    assert there == again
    assert there.digest == sha256(b"".join(line + b"\n" for line in lines)).hexdigest()
    assert (there.events, there.damaged) == (len(lines), 0)
    assert sorted(path.name for path in back.path.glob("*.db*")) == ["holdfast.db"]


async def test_both_engines_continue_where_the_other_was(tmp_path: Path, database: Database) -> None:
    home = await full_home(tmp_path)
    await copied(home, database)
    server, file = await open_store(database, home / "tasks"), SqliteStore(home / "holdfast.db")
    for store in (server, file):
        assert await store.partial(STREAM) == PartialText(turn=1, step=1, text="so far", thinking="hm", at=AT)
        assert (await write(store, STREAM, said(), command=CommandKey("c1", "d"))).reply == "[1]", (
            "it was accepted before"
        )
    tokens = [(await store.claim(STREAM, holder="next")).token for store in (server, file)]
    ends = [await write(store, STREAM, said(input="later")) for store in (server, file)]
    assert tokens[0] == tokens[1]
    assert (ends[0].seq, ends[0].version) == (ends[1].seq, ends[1].version)
    await server.close()
    await file.close()


SETTINGS = '# of all\ndefault_profile = "mine"\n[profiles.mine]\nmodel = "demo"  # a remark\n'
MACHINE = "[gateway]\nport = 4711  # of this machine\n"
KEY = b"-----BEGIN PRIVATE KEY-----\nabc\n"


async def home_with(path: Path, *, settings: str = "", key: bytes = b"") -> Home:
    home = Home(await new_home(path))
    home.config.write_text(settings + MACHINE)
    if key:
        home.push_key.write_bytes(key)
    return home


def shared_rows(database: Database) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    with psycopg.connect(database.url) as db:
        settings = db.execute("SELECT version, text, changed_by FROM holdfast.shared_settings ORDER BY 1").fetchall()
        return settings, db.execute("SELECT name, key FROM holdfast.shared_keys").fetchall()


async def test_shared_settings_and_the_push_key_go_along_both_ways(tmp_path: Path, database: Database) -> None:
    home = await home_with(tmp_path / "home", settings=SETTINGS, key=KEY)
    there = await copied(home.path, database)
    assert (there.settings, there.push_key, there.kept) == (True, True, ())
    settings, keys = shared_rows(database)
    assert settings == [(1, SETTINGS, f"the copy of {home.path}")]
    assert keys == [("push.pem", KEY)]
    assert home.config.read_text() == SETTINGS + MACHINE

    new = Home(tmp_path / "new")
    back = await copied_back(new.path, database)
    assert (back.settings, back.push_key, back.kept) == (True, True, ())
    assert (new.config.read_text(), new.push_key.read_bytes()) == (SETTINGS, KEY)
    assert {path.stat().st_mode & 0o777 for path in (new.config, new.push_key)} == {0o600}

    (home.path / "holdfast.db").unlink()
    assert (await copied_back(home.path, database)).kept == ()
    assert home.config.read_text() == SETTINGS + MACHINE, "it says that already"


async def test_settings_of_the_database_are_written_beside_those_of_the_machine(
    tmp_path: Path, database: Database
) -> None:
    await copied((await home_with(tmp_path / "home", settings=SETTINGS)).path, database)
    new = Home(tmp_path / "new")
    new.prepare()
    new.config.write_text(MACHINE)
    assert (await copied_back(new.path, database)).kept == ()
    assert new.config.read_text() == f"{SETTINGS}\n{MACHINE}"


async def test_files_that_say_something_else_are_kept_on_the_way_back(tmp_path: Path, database: Database) -> None:
    await copied((await home_with(tmp_path / "home", settings=SETTINGS, key=KEY)).path, database)
    new = await home_with(tmp_path / "new", settings="[board]\nmax_running = 7\n", key=b"another key")
    (new.path / "holdfast.db").unlink()
    former = new.config.read_bytes()
    kept = (new.config.with_name("config.toml.old"), new.push_key.with_name("push.pem.old"))

    kept[1].write_bytes(b"somebody's")
    with pytest.raises(Conflict, match=r"push\.pem differs .* exists already\. Nothing was changed") as refused:
        await copied_back(new.path, database)
    assert f"mv {kept[1]}" in refused.value.hint
    assert (new.config.read_bytes(), new.push_key.read_bytes()) == (former, b"another key")
    assert not new.database.exists() and not kept[0].exists()

    kept[1].unlink()
    assert (await copied_back(new.path, database)).kept == kept
    assert new.config.read_text() == f"{SETTINGS}\n{MACHINE}"
    assert (new.push_key.read_bytes(), kept[0].read_bytes(), kept[1].read_bytes()) == (KEY, former, b"another key")
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}


async def test_a_home_without_shared_settings_leaves_them_to_the_first_gateway(
    tmp_path: Path, database: Database
) -> None:
    there = await copied((await home_with(tmp_path / "home")).path, database)
    assert (there.settings, there.push_key, shared_rows(database)) == (False, False, ([], []))


async def test_wrong_settings_end_a_copy_before_it_begins(tmp_path: Path, database: Database) -> None:
    home = await home_with(tmp_path / "home", settings="[board]\nmax_running = -1\n")
    with pytest.raises(ConfigError, match="max_running"):
        await copied(home.path, database)
    assert is_empty(database)
    home.config.write_text(SETTINGS)
    await copied(home.path, database)
    new = await home_with(tmp_path / "new", settings="[board]\nmax_running = -1\n")
    (new.path / "holdfast.db").unlink()
    with pytest.raises(ConfigError, match="max_running"):
        await copied_back(new.path, database)
    assert not new.database.exists()


async def test_settings_that_a_database_has_are_not_overwritten(tmp_path: Path, database: Database) -> None:
    await prepare(database)
    row = "INSERT INTO holdfast.shared_settings VALUES (1, '', 'somebody', 1)"
    shared_server().sql(row, database=database.parameters()["dbname"])
    with pytest.raises(Conflict, match="has rows in shared_settings"):
        await copied((await home_with(tmp_path / "home", settings=SETTINGS)).path, database)


def test_every_table_is_copied_or_left_out_for_a_reason() -> None:
    for engine in ("sqlite", "postgres"):
        schema = (files(f"holdfast.store.{engine}") / "schema.sql").read_text("utf-8")
        words = [line.split() for line in schema.splitlines() if line.startswith(("CREATE TABLE", "CREATE UNLOGGED"))]
        tables = {line[line.index("TABLE") + 1] for line in words}
        assert tables - LEFT_OUT == copying.COPIED.keys(), engine


# --- refused --------------------------------------------------------------------------------------


async def test_a_damaged_event_is_copied_as_it_is(tmp_path: Path, database: Database) -> None:
    home = await new_home(tmp_path / "home")
    with closing(sqlite3.connect(home / "holdfast.db")) as db:
        db.execute("UPDATE events SET data = data || 'x' WHERE seq = 2")
        db.commit()
    report = (await copied(home, database)).report
    assert (report.events, report.damaged) == (2, 1)


async def test_neither_side_may_be_in_use(tmp_path: Path, database: Database) -> None:
    home = await new_home(tmp_path / "home")
    lock = HomeLock(Home(home).lock)
    for attempt in (copied(home, database), copied_back(home, database)):
        with pytest.raises(Conflict, match="is already running"):
            await attempt
    lock.release()
    store = await open_store(database, tmp_path)
    for attempt in (copied(home, database), copied_back(tmp_path / "new", database)):
        with pytest.raises(Conflict, match="A gateway uses"):
            await attempt
    await store.close()


async def test_a_gateway_that_starts_meanwhile_ends_the_copy(tmp_path: Path, database: Database) -> None:
    await copied(await new_home(tmp_path / "home"), database)

    def interrupt(table: str) -> None:
        if table == "counters":
            holder.execute("SELECT pg_advisory_lock(46902, 1)")

    with psycopg.connect(database.url, autocommit=True) as holder, interrupted(interrupt):
        with pytest.raises(Conflict, match="A gateway uses"):
            await copied_back(tmp_path / "new", database)
    assert not [*(tmp_path / "new").glob("*.db*")]


async def test_a_target_that_is_not_empty_is_refused(tmp_path: Path, database: Database) -> None:
    home, other = await new_home(tmp_path / "home"), await new_home(tmp_path / "other")
    await copied(home, database)
    with pytest.raises(Conflict, match="is not empty") as refused:
        await copied(other, database)
    assert "DROP SCHEMA holdfast CASCADE" in refused.value.hint
    before = rows_of(other / "holdfast.db")
    with pytest.raises(Conflict, match="exists already") as refused:
        await copied_back(other, database)
    assert f"mv {other}/holdfast.db" in refused.value.hint
    assert rows_of(other / "holdfast.db") == before


@pytest.mark.parametrize(
    ("source", "target", "kind", "said"),
    [
        ("HOME", "postgresql://me:hunter2@h/db", Rejected, "holds a password"),
        ("HOME", "env:NO_SUCH_VARIABLE", Rejected, "NO_SUCH_VARIABLE is not set"),
        ("HOME", "/elsewhere", Rejected, "are both homes with SQLite"),
        ("postgresql://h/a", "postgresql://h/b", Rejected, "are both PostgreSQL databases"),
        ("/no/such/home", "DATABASE", NotFound, "There is no /no/such/home/holdfast.db"),
        ("DATABASE", "NEW", NotFound, "There is no log of Holdfast in"),
        ("HOME", "postgresql://127.0.0.1:1/db", Unavailable, "db on 127.0.0.1:1 cannot be reached"),
        ("HOME", "postgresql://[::1/db", Rejected, "cannot be read"),
    ],
)
async def test_what_cannot_be_copied_is_explained(
    tmp_path: Path, database: Database, source: str, target: str, kind: type[HoldfastError], said: str
) -> None:
    words = {"HOME": str(await new_home(tmp_path / "home")), "DATABASE": database.url, "NEW": str(tmp_path / "new")}
    first, second = (StorePlace(words.get(word, word)) for word in (source, target))
    with pytest.raises(kind, match=said) as refused:
        await asyncio.to_thread(copy, first, second, quiet)
    assert refused.value.hint
    assert "hunter2" not in f"{refused.value} {refused.value.hint}"
    assert is_empty(database)
    assert not [*(tmp_path / "new").glob("*.db*")]


# --- cut ------------------------------------------------------------------------------------------


@contextmanager
def interrupted(at: Callable[[str], None]) -> Iterator[None]:
    """Do something whenever a table of the source begins to be compared."""
    before = copying._paired

    def paired(
        ours: AsyncIterator[copying.RowValues], theirs: AsyncIterator[copying.RowValues]
    ) -> AsyncIterator[tuple[copying.RowValues | None, copying.RowValues | None]]:
        at(next(tables))
        return before(ours, theirs)

    tables = iter(copying.COPIED)
    copying._paired = paired
    try:
        yield
    finally:
        copying._paired = before


def cut(database: Database) -> Callable[[str], None]:
    """End the connections to the database when almost everything is done."""
    name = database.parameters()["dbname"]
    end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    return lambda table: shared_server().sql(end) if table == "counters" else None


async def test_a_copy_that_is_cut_leaves_nothing(tmp_path: Path, database: Database) -> None:
    home = await full_home(tmp_path)
    before = rows_of(home / "holdfast.db")
    with interrupted(cut(database)), pytest.raises(Unavailable, match=r"was lost. Nothing was changed\."):
        await copied(home, database)
    assert is_empty(database)
    assert rows_of(home / "holdfast.db") == before
    await copied(home, database)
    with interrupted(cut(database)), pytest.raises(Unavailable, match=r"was lost. Nothing was changed\."):
        await copied_back(tmp_path / "new", database)
    assert not [*(tmp_path / "new").glob("*.db*")]


async def test_what_a_killed_copy_left_is_not_in_the_way(tmp_path: Path, database: Database) -> None:
    home, new = await new_home(tmp_path / "home"), Home(tmp_path / "new")
    await copied(home, database)
    new.prepare()
    new.database.with_name("holdfast.db.copying").write_bytes(b"half of it")
    await copied_back(new.path, database)
    assert rows_of(new.database) == rows_of(home / "holdfast.db")


async def test_a_full_disk_is_named_and_nothing_is_left(tmp_path: Path, database: Database) -> None:
    home = await full_home(tmp_path)
    await prepare(database)
    shared_server().sql(FULL_DISK.format(where="holdfast"), database=database.parameters()["dbname"])
    with pytest.raises(Unavailable, match=r"The disk of .* is full. Nothing was changed"):
        await copied(home, database)
    shared_server().sql("DROP FUNCTION holdfast.full_disk CASCADE", database=database.parameters()["dbname"])
    await copied(home, database)
    with no_large_files(), pytest.raises(Unavailable, match="does not take the copy") as refused:
        await copied_back(tmp_path / "new", database)
    assert "Free some space" in refused.value.hint
    assert not [*(tmp_path / "new").glob("*.db*")]


@contextmanager
def no_large_files() -> Iterator[None]:
    """As on a disk that is almost full."""
    limit, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)


async def test_a_difference_is_found_and_nothing_is_kept(tmp_path: Path, database: Database) -> None:
    """A server that stores something else than it was given."""
    await prepare(database)
    other = """
    CREATE FUNCTION holdfast.other() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN NEW.at = NEW.at + 1; RETURN NEW; END $$;
    CREATE TRIGGER other BEFORE INSERT ON holdfast.events FOR EACH ROW WHEN (NEW.seq = 2)
        EXECUTE FUNCTION holdfast.other();
    """
    shared_server().sql(other, database=database.parameters()["dbname"])
    home = await new_home(tmp_path / "home")
    with pytest.raises(Corrupt, match=r"differs from its source in events \(2\)"):
        await copied(home, database)
    assert is_empty(database)


async def test_settings_that_the_server_changes_end_the_copy(tmp_path: Path, database: Database) -> None:
    await prepare(database)
    other = """
    CREATE FUNCTION holdfast.other() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN NEW.text = NEW.text || ' '; RETURN NEW; END $$;
    CREATE TRIGGER other BEFORE INSERT ON holdfast.shared_settings FOR EACH ROW EXECUTE FUNCTION holdfast.other();
    """
    shared_server().sql(other, database=database.parameters()["dbname"])
    home = await home_with(tmp_path / "home", settings=SETTINGS, key=KEY)
    with pytest.raises(Corrupt, match="differs from its source in the settings"):
        await copied(home.path, database)
    assert is_empty(database) and shared_rows(database) == ([], [])


async def test_progress_is_reported(tmp_path: Path, database: Database) -> None:
    home = await new_home(tmp_path / "home")
    heard: list[tuple[str, int, int]] = []
    with open_source(home / "holdfast.db") as source:
        async with open_target(database) as target:
            await copying.copy_store(source, target, lambda what, done, of: heard.append((what, done, of)))
    assert heard[0] == ("copying events", 0, 2)
    assert ("comparing events", 0, 2) in heard
