"""What goes wrong with a database server: nothing is lost or stored twice, and the message says what to do."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from holdfast.domain.errors import Conflict, Corrupt, Fenced, HoldfastError, NotReady, Rejected, Unavailable
from holdfast.domain.events import decode
from holdfast.store.contract import Append, CommandKey, Write
from holdfast.store.postgres import migrate
from holdfast.store.postgres.connections import SESSION, TURN, Database, connect
from holdfast.store.postgres.migrate import prepare
from holdfast.store.postgres.queries import migrations, statement
from holdfast.store.postgres.readers import READERS
from holdfast.store.postgres.steps import Steps
from holdfast.store.postgres.store import PostgresStore, open_store
from holdfast.store.postgres.wire import ConnectionEnded, SqlStatement
from holdfast.timings import StoreTimings
from tests.eventually import PATIENCE, eventually
from tests.postgres_server import PostgresServer, new_schema, own_server, schemas, shared_server
from tests.store.conformance import AT, OTHER, STREAM, A, B, asked, created, said, session, started, versions, write
from tests.store.postgres_proxy import proxy_of

IMPATIENT = StoreTimings(lock=0.3, probe=0.05, answer=5.0, look=0.05)
PATIENT = StoreTimings(lock=PATIENCE, probe=0.05, look=0.05)


@pytest.fixture
def database() -> Iterator[Database]:
    database = schemas.take()
    yield database
    schemas.give_back(database)


@asynccontextmanager
async def opened(
    database: Database, timings: StoreTimings = PATIENT, node: str = "local"
) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(database, Path("/nowhere"), timings, node)
    try:
        await store.announce()
        yield store
    finally:
        await store.close()


# --- it cannot be opened --------------------------------------------------------------------------


async def refusal(database: Callable[[], Database]) -> HoldfastError:
    with pytest.raises(HoldfastError) as refused:
        store = await open_store(database(), Path("/nowhere"), IMPATIENT)
        await store.close()
    assert refused.value.hint
    assert "hunter2" not in f"{refused.value} {refused.value.hint} {refused.value.__cause__!r}"
    return refused.value


@pytest.mark.parametrize(
    "url",
    ["postgresql://me:hunter2@[::1/db", "postgresql://me:hunter2@h/db?nonsense=1", "hunter2", "mysql://hunter2@h/d"],
)
async def test_an_address_that_cannot_be_read_is_refused_without_showing_it(url: str) -> None:
    problem = await refusal(lambda: Database(url))
    assert isinstance(problem, Rejected)
    assert "cannot be read" in problem.message
    assert "postgresql://user@host" in problem.hint


async def test_nobody_listens_there() -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        problem = await refusal(lambda: Database(f"postgresql://me:hunter2@127.0.0.1:{port}/db"))
    assert isinstance(problem, Unavailable)
    assert problem.message == f"db on 127.0.0.1:{port} cannot be reached."


async def test_there_is_no_such_database() -> None:
    problem = await refusal(lambda: Database(shared_server().url("nothing")))
    assert isinstance(problem, Rejected)
    assert "There is no such database: nothing on" in problem.message
    assert "createdb --encoding UTF8 nothing" in problem.hint


async def test_a_database_in_another_encoding_is_refused() -> None:
    shared_server().sql("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'")
    problem = await refusal(lambda: Database(shared_server().url("latin")))
    assert isinstance(problem, Rejected)
    assert "encoded in LATIN1" in problem.message
    assert "--encoding UTF8" in problem.hint
    shared_server().sql("DROP DATABASE latin WITH (FORCE)")


async def test_there_is_no_such_user() -> None:
    problem = await refusal(lambda: Database(shared_server().url(user="stranger")))
    assert isinstance(problem, Rejected)
    assert "does not let us in" in problem.message


async def test_a_user_without_rights_gets_a_hint_for_the_administrator() -> None:
    shared_server().sql("DROP ROLE IF EXISTS weak", "CREATE ROLE weak LOGIN")
    schema = new_schema()
    problem = await refusal(lambda: Database(shared_server().url(user="weak"), schema))
    assert isinstance(problem, Rejected)
    assert f"CREATE SCHEMA {schema} AUTHORIZATION user" in problem.hint
    shared_server().sql(f"CREATE SCHEMA {schema} AUTHORIZATION weak")
    store = await open_store(Database(shared_server().url(user="weak"), schema), Path("/nowhere"))
    await session(store, A)
    await store.close()
    shared_server().sql(f"DROP SCHEMA {schema} CASCADE", "DROP ROLE weak")


async def test_no_connection_is_free() -> None:
    shared_server().sql("DROP ROLE IF EXISTS many", "CREATE ROLE many LOGIN CONNECTION LIMIT 0")
    problem = await refusal(lambda: Database(shared_server().url(user="many")))
    assert isinstance(problem, NotReady)
    assert "max_connections" in problem.hint


async def test_a_pooler_in_between_is_refused() -> None:
    async with proxy_of(shared_server()) as proxy:
        proxy.is_pooler = True
        problem = await refusal(lambda: Database(proxy.url()))
    assert isinstance(problem, Rejected)
    assert "pgbouncer" in problem.message


async def test_tls_that_is_demanded_by_one_side_and_missing_on_the_other() -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with own_server({"listen_addresses": "127.0.0.1", "port": port, "fsync": "off"}) as server:
        where = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        problem = await refusal(lambda: Database(f"{where}?sslmode=require"))
        assert isinstance(problem, Rejected)
        assert "offers no TLS" in problem.message
        rules = server.data / "pg_hba.conf"
        rules.write_text("hostnossl all all all reject\n" + rules.read_text())
        server.sql("SELECT pg_reload_conf()")
        problem = await refused_by(Database(f"{where}?sslmode=disable"))
        assert "without TLS" in problem.message
        assert "sslmode=verify-full" in problem.hint


async def refused_by(database: Database) -> HoldfastError:
    while True:  # until the rules are read
        try:
            await prepare(database)
        except HoldfastError as problem:
            return problem


async def test_two_gateways_with_one_name_are_refused(database: Database) -> None:
    async with opened(database, IMPATIENT, "gpu") as store:
        with pytest.raises(Unavailable, match=r"Another gateway on .* is called gpu") as refused:
            await open_store(database, Path("/nowhere"), IMPATIENT, node="gpu")
        assert "--node NAME" in refused.value.hint
        await session(store, A)
    async with opened(database, IMPATIENT, "gpu") as store:
        assert await versions(store, STREAM) == [1]


async def test_tables_of_an_older_version_are_migrated(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(database) as store:
        await session(store, A)
    later = [*migrations(), (len(migrations()) + 1, "later", "CREATE TABLE later (x BIGINT)")]
    monkeypatch.setattr(migrate, "migrations", lambda: later)
    await asyncio.gather(*(prepare(database) for _ in range(3)))
    with psycopg.connect(database.url, options=f"-c search_path={database.schema}") as db:
        now = db.execute("SELECT version, (SELECT count(*) FROM later) FROM schema_version").fetchall()
        assert now == [(len(later), 0)]
        db.execute("DROP TABLE later")
        db.execute(f"UPDATE schema_version SET version = {len(later) - 1}".encode())


# --- the connection is cut ------------------------------------------------------------------------


async def test_a_commit_that_was_cut_is_answered_once_under_its_command_id(database: Database) -> None:
    async with proxy_of(shared_server()) as proxy, opened(replace(database, url=proxy.url())) as store:
        await session(store, A)
        proxy.swallow_commit = True
        appended = await write(store, STREAM, said(), command=CommandKey("c1", "digest"))
        assert proxy.cuts == 1
        assert (appended.version, appended.duplicate) == (2, True)
        assert await versions(store, STREAM) == [1, 2]
        assert store.health.writable


async def test_a_commit_that_was_cut_without_a_command_id_is_not_repeated(database: Database) -> None:
    async with proxy_of(shared_server()) as proxy, opened(replace(database, url=proxy.url())) as store:
        await session(store, A)
        proxy.swallow_commit = True
        with pytest.raises(Unavailable, match="may have happened"):
            await write(store, STREAM, said())
        assert proxy.cuts == 1
        assert await versions(store, STREAM) == [1, 2], "it has happened"
        assert (await write(store, STREAM, said())).version == 3


async def test_a_commit_in_doubt_is_refused_only_when_everybody_can_see_whether_it_happened() -> None:
    """The server is still at it when the connection is cut: it waits for a standby that there is not."""
    calm = replace(PATIENT, lease=PATIENCE, answer=PATIENCE)
    async with AsyncExitStack() as closing:
        server = closing.enter_context(own_server({"fsync": "off"}))
        proxy = await closing.enter_async_context(proxy_of(server))
        database = Database(proxy.url())
        await prepare(database)
        store = await closing.enter_async_context(opened(database, calm))
        await session(store, A)
        without = ("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        closing.callback(server.sql, *without)
        server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
        observer = closing.enter_context(psycopg.connect(server.url(), autocommit=True))
        at_it = f"""SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
            WHERE l.locktype = 'advisory' AND l.classid = {TURN} AND l.granted AND a.wait_event = 'SyncRep'"""

        async def is_through_or_at_it() -> bool:
            return writing.done() or await _found(observer, at_it)

        while True:  # until the server has heard that it has to wait
            before = await versions(store, STREAM)
            writing = asyncio.create_task(write(store, STREAM, said()))
            await eventually(is_through_or_at_it)
            if not writing.done():
                break
        await proxy.cut()
        waits = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"

        async def is_settled_or_waits() -> bool:
            return writing.done() or await _found(observer, waits)

        await eventually(is_settled_or_waits)
        assert not writing.done()
        assert await versions(store, STREAM) == before, "nobody can see it yet"
        server.sql(*without)
        with pytest.raises(Unavailable, match="may have happened"):
            await writing
        assert await versions(store, STREAM) == [*before, len(before) + 1]


async def _found(observer: psycopg.Connection[tuple[object, ...]], query: str) -> bool:
    return observer.execute(query.encode()).fetchone() is not None


async def test_what_never_reached_the_server_is_refused_without_a_command_id_and_repeated_with_one(
    database: Database,
) -> None:
    async with proxy_of(shared_server()) as proxy, opened(replace(database, url=proxy.url())) as store:
        await session(store, A)
        proxy.drop_commit = True
        appended = await write(store, STREAM, said(), command=CommandKey("c1", "digest"))
        assert (appended.version, appended.duplicate) == (2, False)
        proxy.drop_commit = True
        with pytest.raises(Unavailable, match="may have happened"):
            await write(store, STREAM, said())
        assert proxy.cuts == 2
        assert await versions(store, STREAM) == [1, 2]


async def test_a_network_that_is_silent_is_given_up_and_tried_again(database: Database) -> None:
    async with proxy_of(shared_server()) as proxy, opened(replace(database, url=proxy.url())) as store:
        await session(store, A)
        store.writer._timings = replace(PATIENT, answer=0.3, lock=0.3)  # before and after, a slow machine may be silent
        proxy.silent.set()
        with pytest.raises(Unavailable, match="no answer within"):
            await write(store, STREAM, said(), command=CommandKey("c1", "digest"))
        assert not store.health.writable
        store.writer._timings = PATIENT
        proxy.silent.clear()
        await write(store, STREAM, said(), command=CommandKey("c1", "digest"))
        assert await versions(store, STREAM) == [1, 2]


# --- the server is restarted, crashes, has no space -------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["restarted", "crashed"])
async def test_promise_1_nothing_acknowledged_is_lost_or_doubled_when_the_server_stops(how: signal.Signals) -> None:
    with own_server() as server:
        database = Database(server.url())
        await prepare(database)
        async with opened(database) as store:
            await session(store, A)
            acknowledged: list[str] = []
            enough = asyncio.Event()

            async def work(number: int) -> None:
                for step in range(40):
                    input = f"{number}-{step}"
                    await write(store, STREAM, said(input=input), command=CommandKey(input, "digest"))
                    acknowledged.append(input)
                    if len(acknowledged) == 60:
                        enough.set()

            jobs = asyncio.gather(*(work(number) for number in range(8)))
            await enough.wait()
            await asyncio.to_thread(_stop_and_start, server, how)
            await jobs
            found = [record.event.input for record in await store.load(STREAM, after=1)]  # type: ignore[union-attr]
            assert sorted(found) == sorted(acknowledged)
            assert len(set(found)) == 320
            assert await versions(store, STREAM) == list(range(1, 322))
            assert store.health.writable


def _stop_and_start(server: PostgresServer, how: signal.Signals) -> None:
    server.stop(how)
    server.start()


async def test_a_follower_gets_commits_after_the_server_was_restarted() -> None:
    with own_server({"fsync": "off"}) as server:
        database = Database(server.url())
        await prepare(database)
        async with opened(database, node="one") as one, opened(database, node="two") as two:
            await session(one, A)
            await asyncio.to_thread(_stop_and_start, server, signal.SIGINT)
            async with asyncio.timeout(PATIENCE):
                with two.subscribe(STREAM) as changes:
                    await write(one, STREAM, said(), command=CommandKey("c1", "digest"))
                    while await versions(two, STREAM) != [1, 2]:
                        await changes.wait()
                        changes.drain()


FULL_DISK = """
CREATE FUNCTION {where}.full_disk() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON {where}.events EXECUTE FUNCTION {where}.full_disk();
"""


async def test_a_full_disk_refuses_writes_and_recovers_by_itself(database: Database) -> None:
    """The server says so of itself here: to fill its disk takes a file system of its own."""
    async with opened(database) as store:
        await session(store, A)
        shared_server().sql(FULL_DISK.format(where=database.schema))
        with pytest.raises(Unavailable, match=r"The disk of .* is full") as refused:
            await write(store, STREAM, said())
        assert "Free some space" in refused.value.hint
        assert not store.health.writable
        assert await versions(store, STREAM) == [1]
        shared_server().sql(f"DROP FUNCTION {database.schema}.full_disk CASCADE")
        await eventually(lambda: _healthy(store))
        await write(store, STREAM, said())


async def _healthy(store: PostgresStore) -> bool:
    return store.health.writable


async def test_the_holder_of_the_lock_is_waited_for_and_then_named(database: Database) -> None:
    take = f"SELECT pg_advisory_lock({TURN}, hashtext('{database.schema}'))".encode()
    async with opened(database, IMPATIENT) as store:
        await session(store, A)
        with psycopg.connect(database.url, autocommit=True) as other:
            other.execute(take)
            with pytest.raises(NotReady, match=r"keeps the log of .* locked"):
                await write(store, STREAM, said())
            assert not store.health.writable
            assert await versions(store, STREAM) == [1], "reads go on"
        await eventually(lambda: _healthy(store))
        await write(store, STREAM, said())
    async with opened(database) as store:
        with psycopg.connect(database.url, autocommit=True) as other:
            other.execute(take)
            job = asyncio.create_task(write(store, STREAM, said()))
            await _until_somebody_waits(other)
            other.execute(b"SELECT pg_advisory_unlock_all()")
            assert (await job).version == 3


async def test_a_gateway_that_is_frozen_with_the_lock_loses_it(database: Database) -> None:
    """Here after a moment instead of some seconds: before those who wait for the lock refuse a write."""
    assert 0 < int(SESSION["idle_in_transaction_session_timeout"]) <= StoreTimings().lock * 1_000 - 2_000
    frozen = await connect(database, {"idle_in_transaction_session_timeout": 100})
    turn = statement("take_turn", {"key": TURN, "schema": database.schema})
    await frozen.run([SqlStatement("BEGIN"), turn], within=PATIENCE)
    async with opened(database) as store:
        await session(store, A)
    with pytest.raises(ConnectionEnded):
        await frozen.run([SqlStatement("COMMIT")], within=PATIENCE)


async def test_writes_continue_when_no_further_connection_is_free(database: Database) -> None:
    shared_server().sql("DROP ROLE IF EXISTS few", "CREATE ROLE few SUPERUSER LOGIN")
    async with opened(replace(database, url=shared_server().url(user="few"))) as store:
        await session(store, A)
        shared_server().sql(
            "ALTER ROLE few NOSUPERUSER CONNECTION LIMIT 0", f"GRANT ALL ON SCHEMA {database.schema} TO few"
        )
        shared_server().sql(f"GRANT ALL ON ALL TABLES IN SCHEMA {database.schema} TO few")
        assert (await write(store, STREAM, said())).version == 2
        reads = await asyncio.gather(*(store.load(STREAM, after=0) for _ in range(READERS)), return_exceptions=True)
        for problem in reads:
            assert isinstance(problem, list | NotReady)
        shared_server().sql("ALTER ROLE few CONNECTION LIMIT -1")
        assert await versions(store, STREAM) == [1, 2]
    shared_server().sql("DROP OWNED BY few", "DROP ROLE few")


async def _until_somebody_waits(other: psycopg.Connection[tuple[object, ...]]) -> None:
    async def waits() -> bool:
        return bool(other.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").fetchall())

    await eventually(waits)


# --- the log is not what it was -------------------------------------------------------------------


async def test_a_log_that_is_shorter_than_what_was_acknowledged_stops_the_store(database: Database) -> None:
    """As after a failover to a standby that had not received everything."""
    async with opened(database) as store:
        await session(store, A, "one", "two")
        shared_server().sql(f"DELETE FROM {database.schema}.events WHERE seq = 3")
        for attempt in (write(store, STREAM, said()), store.claim(STREAM, holder="t"), store.load(STREAM, after=0)):
            with pytest.raises(Corrupt, match="ends at event 2, but event 3 was acknowledged"):
                await attempt
        assert not store.health.writable
        assert "event 3" in store.health.problem
    with psycopg.connect(database.url) as db:
        rows = db.execute(f"SELECT count(*) FROM {database.schema}.events".encode()).fetchone()
    assert rows == (2,)


async def test_promise_2_a_store_whose_place_was_taken_stops_writing(database: Database) -> None:
    async with opened(database) as old:
        await session(old, A)
        lease = await old.claim(STREAM, holder="t")
        new = PostgresStore(database, Path("/nowhere"), PATIENT)  # a process that did not see the first one
        try:
            await session(new, B)
            for attempt in (write(old, STREAM, asked(), lease=lease), write(old, STREAM, said())):
                with pytest.raises(Fenced, match="is called local now"):
                    await attempt
            assert await versions(new, STREAM) == [1]
        finally:
            await new.close()


# --- several nodes --------------------------------------------------------------------------------


async def test_a_commit_of_one_node_wakes_the_followers_on_another(database: Database) -> None:
    unhurried = replace(PATIENT, look=PATIENCE)
    async with opened(database, unhurried, "one") as one, opened(database, unhurried, "two") as two:
        await session(two, B)
        await session(one, A)
        async with asyncio.timeout(PATIENCE):
            with two.subscribe(STREAM) as changes, two.subscribe(None) as everything:
                await two._hints.listening.wait()
                for version in range(2, 12):
                    await write(one, STREAM, said(input=str(version)))
                    while (await versions(two, STREAM))[-1] < version or not changes.drain():
                        await changes.wait()
                    assert two.recent(STREAM, after=version - 1) is None, "it is read"
                await everything.wait()
                assert "InputReceived" in everything.drain()[STREAM]


async def test_a_commit_without_a_hint_is_found_by_looking(database: Database) -> None:
    async with opened(database, PATIENT, "one") as one, opened(database, PATIENT, "two") as two:
        one._hints.committed = lambda stored, known: None  # type: ignore[method-assign]
        await session(two, A)
        async with asyncio.timeout(PATIENCE):
            with two.subscribe(STREAM) as changes:
                await write(one, STREAM, said())
                await changes.wait()
                assert changes.drain() == {STREAM: {"InputReceived"}}


async def test_promise_2_a_stream_is_worked_on_by_one_node(database: Database) -> None:
    async with opened(database, node="one") as one, opened(database, node="two") as two:
        await session(one, A)
        lease = await one.claim(STREAM, holder="t")
        with pytest.raises(Conflict, match="Another node works on"):
            await two.claim(STREAM, holder="u")
        await write(one, STREAM, asked(), lease=lease)
    async with opened(database, node="one") as one, opened(database, node="two") as two:
        await session(one, B)  # its first commit ends the life before
        assert (await two.claim(STREAM, holder="u")).token > lease.token
        assert [row.name for row in await two.nodes() if row.ended_at is None] == ["two", "one"]


async def test_nodes_that_write_at_once_leave_no_gap(database: Database) -> None:
    async with opened(database, node="one") as one, opened(database, node="two") as two:
        await session(one, A)
        await session(two, B)

        async def work(store: PostgresStore, number: int) -> None:
            for step in range(15):
                await write(store, (STREAM, OTHER)[(number + step) % 2], said(input=f"{number}-{step}"))

        await asyncio.gather(*(work((one, two)[number % 2], number) for number in range(8)))
        lines = (await one.read_all(after=0, limit=1000)).lines
        assert [decode(line).seq for line in lines] == list(range(1, 123))
        for stream in (STREAM, OTHER):
            assert await versions(two, stream) == list(range(1, 62))


# --- what is particular about the engine ----------------------------------------------------------


async def test_promise_1_a_commit_is_on_the_disk_although_the_server_is_set_up_otherwise(database: Database) -> None:
    async with opened(database) as store:
        await session(store, A)
        with psycopg.connect(database.url) as db:
            assert db.execute("SHOW synchronous_commit").fetchone() == ("off",)
        assert await _ask(store, "SHOW synchronous_commit") == "on"


async def test_an_operation_that_breaks_a_constraint_fails_alone(database: Database) -> None:
    async with opened(database) as store:
        await session(store, A, "one", "two")
        await write(store, STREAM, started(1, "i"))
        jobs = [write(store, STREAM, said(input=str(n)) if n != 3 else started(2, "j")) for n in range(8)]
        results = await asyncio.gather(*jobs, return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        assert len(failures) == 1, "two turns may not be open at once"
        assert isinstance(failures[0], psycopg.IntegrityError)
        assert await versions(store, STREAM) == list(range(1, 12))
        assert store.health.writable


async def test_a_value_that_cannot_be_sent_fails_alone(database: Database) -> None:
    async with opened(database) as store:
        await session(store, A)
        for _ in range(READERS + 1):  # it costs no connection
            with pytest.raises(UnicodeEncodeError):
                await store.search("\ud800 is half a letter", limit=1)
        with pytest.raises(struct.error):
            await write(store, STREAM, said(), at=2**63)
        async with asyncio.timeout(PATIENCE):
            assert await store.search("nothing", limit=1) == []
            assert (await write(store, STREAM, said())).version == 2


async def test_statements_are_prepared_once_also_while_the_server_refuses_them(database: Database) -> None:
    async with opened(database) as store:
        await session(store, A)
        shared_server().sql(FULL_DISK.format(where=database.schema))
        counts = []
        for _ in range(3):
            with pytest.raises(Unavailable):  # what takes the lease is sent before what is refused
                await store.append(Append((Write(STREAM, (said(),)),), AT, claim="worker"))
            counts.append(await _ask(store, "SELECT count(*) FROM pg_prepared_statements"))
        shared_server().sql(f"DROP FUNCTION {database.schema}.full_disk CASCADE")
        assert counts[0] == counts[2]


async def test_a_server_that_is_set_up_otherwise_changes_nothing(database: Database) -> None:
    """What is read under the lock must be as it is then, and a commit on the disk; nobody ends an idle connection."""
    shared_server().sql(
        "DROP ROLE IF EXISTS odd",
        "CREATE ROLE odd SUPERUSER LOGIN",
        "ALTER ROLE odd SET default_transaction_isolation = 'repeatable read'",
        "ALTER ROLE odd SET idle_session_timeout = '1ms'",
    )
    odd = replace(database, url=shared_server().url(user="odd"))
    async with opened(odd, node="one") as one, opened(odd, node="two") as two:
        await session(one, A)
        await session(two, B)
        jobs = [write((one, two)[number % 2], STREAM, said(input=str(number))) for number in range(20)]
        await asyncio.gather(*jobs)
        assert await versions(one, STREAM) == list(range(1, 22))
        assert await _ask(one, "SELECT current_setting('synchronous_commit')") == "on"
    shared_server().sql("DROP ROLE odd")


async def _ask(store: PostgresStore, sql: str) -> object:
    async def run(steps: Steps) -> object:
        (found,) = await steps._wire.run([SqlStatement(sql)], within=PATIENCE)
        return found.rows[0][0]

    return await store.writer.do_alone(run, repeatable=True)


NO_HINTS, NO_ANSWER = "hints of other nodes cannot be received", "other nodes get no answer"


@contextmanager
def _heard(message: str, enough: asyncio.Event, *, times: int) -> Iterator[None]:
    """Set the event when something was logged so often."""
    handler, found = logging.Handler(), []

    def emit(record: logging.LogRecord) -> None:
        found.append(message in record.getMessage())
        if sum(found) == times:
            enough.set()

    handler.emit = emit  # type: ignore[method-assign]
    logging.getLogger("holdfast").addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger("holdfast").removeHandler(handler)


async def test_hints_leave_no_connection_behind_when_reading_on_fails(database: Database) -> None:
    async with opened(database) as store:
        await session(store, A)
        await store._hints.listening.wait()
        with psycopg.connect(database.url, autocommit=True) as db:
            db.execute(f"ALTER TABLE {database.schema}.events RENAME TO elsewhere".encode())
            listening = (
                b"SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%%' OR query LIKE 'SELECT seq, stream%%'"
            )
            before = len(db.execute(listening).fetchall())
            failed = asyncio.Event()
            store._hints._look.set()
            with _heard(NO_HINTS, failed, times=4):
                await asyncio.wait_for(failed.wait(), PATIENCE)
            db.execute(f"ALTER TABLE {database.schema}.elsewhere RENAME TO events".encode())

            async def as_many_as_before() -> bool:  # the server notices a moment later
                return len(db.execute(listening).fetchall()) <= before

            await eventually(as_many_as_before)


async def test_a_server_that_is_gone_is_not_asked_again_and_again_without_a_pause(database: Database) -> None:
    """Else a gateway would use a whole CPU and fill its log, until the server is back. Its writer does look for it."""
    calm, once, again = replace(PATIENT, reconnect=PATIENCE), asyncio.Event(), asyncio.Event()
    async with proxy_of(shared_server()) as proxy, opened(replace(database, url=proxy.url()), calm) as store:
        await session(store, A)
        await store._hints.listening.wait()
        with (
            _heard(NO_HINTS, once, times=1),
            _heard(NO_HINTS, again, times=2),
            _heard(NO_ANSWER, again, times=2),
            proxy.away(),
        ):
            await proxy.cut()
            writing = asyncio.create_task(write(store, STREAM, said(), command=CommandKey("c1", "digest")))

            async def writer_has_looked_often() -> bool:
                return proxy.refused >= 20

            await eventually(writer_has_looked_often)
            await asyncio.wait_for(once.wait(), PATIENCE)
            assert not again.is_set()
        await asyncio.gather(writing, return_exceptions=True)


async def test_a_text_with_a_nul_is_stored_and_counted(database: Database) -> None:
    async with opened(database) as store:
        await write(store, STREAM, created(A, title="a\0b"), said("c\0d"), at=AT)
        assert (await store.session(A)).title == "a\ufffdb"
        assert [record.event.text for record in await store.load(STREAM, after=1)] == ["c\0d"]  # type: ignore[union-attr]
        assert (await store.devices.since(A, after=0, upto=9)).messages == 0
        assert await store.search("c\0d", limit=1) == []
