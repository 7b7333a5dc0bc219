"""Rows are made of events alone: when they are written, and what failed in between, changes nothing."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.domain.card import Card, fold_card
from holdfast.domain.errors import Fenced
from holdfast.domain.events import AnyEvent, Record
from holdfast.domain.events.card import CardBlocked, CardCommented, CardCompleted, CardEdited, CardMoved, CardUnblocked
from holdfast.domain.events.session import SessionPinned, WaitAnswered, WaitOpened
from holdfast.store.contract import Lease, Store
from holdfast.store.projection import project
from holdfast.store.rows import CardRow, PartialText, SessionRow
from holdfast.store.sqlite.migrate import migrate
from holdfast.store.sqlite.projected_rows import RememberedRows, SqliteRows
from holdfast.store.sqlite.queries import migrations
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.tables import PROJECTIONS
from tests.actors import person
from tests.store.conformance import STREAM, A, asked, created, finished, responded, said, started, write
from tests.store.conformance_board import card, run, run_over
from tests.store.test_sqlite import SqliteEngine, directory, engine  # noqa: F401

ME = person("me")
SCHEMA = (files("holdfast.store.sqlite") / "schema.sql").read_text("utf-8")
SESSION: list[AnyEvent] = [
    created(A),
    said(input="i"),
    started(1, "i"),
    asked(),
    WaitOpened(turn=1, wait="w", purpose="question", reason="which?"),
    WaitAnswered(turn=1, wait="w", answer="this", by=ME),
    responded("first"),
    WaitOpened(turn=1, wait="v", purpose="question", reason="and?"),
    finished(1),
    said(input="j"),
    started(2, "j"),
    SessionPinned(pinned=True, by=ME),
]
CARD: list[AnyEvent] = [card(A), run(A), run_over(A), run(A, 2)]


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.executescript(SCHEMA)
        yield db


def tables(db: sqlite3.Connection) -> list[list[tuple[object, ...]]]:
    return [db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in PROJECTIONS]


@pytest.mark.parametrize("every", [1, 3, 100])
@pytest.mark.parametrize("remembered", [0, 100])
def test_rows_are_the_same_whenever_they_are_written(db: sqlite3.Connection, every: int, remembered: int) -> None:
    rows = SqliteRows(db, RememberedRows(most=remembered))
    for stream, events in ((STREAM, SESSION), (f"card/{A}", CARD)):
        for version, event in enumerate(events, 1):
            project(Record(seq=version, stream=stream, version=version, at=version, event=event), rows)
            if version % every == 0:
                rows.flush()
    rows.flush()
    sessions, turns, waits, answers, *_ = tables(db)
    assert len(sessions) == 1
    assert [turn[:3] for turn in turns] == [(A, 1, "done"), (A, 2, "running")]
    assert [wait[11] for wait in waits] == ["closed", "answered"]
    assert answers == [(A, 7, 7)]
    row = rows.get(SessionRow, A)
    assert row is not None
    assert (row.version, row.updated_at, row.message_count, row.queued, row.person_turn) == (12, 11, 3, 0, 2)
    assert rows.get(SessionRow, "b") is None


def test_only_the_columns_that_changed_are_written(db: sqlite3.Connection) -> None:
    rows = SqliteRows(db, RememberedRows())
    project(Record(seq=1, stream=STREAM, version=1, at=1, event=created(A)), rows)
    rows.flush()
    written: list[str] = []
    db.set_trace_callback(written.append)
    project(Record(seq=2, stream=STREAM, version=2, at=2, event=asked()), rows)
    rows.flush()
    assert written == [f"UPDATE sessions SET version = 2 WHERE id = '{A}'"], "no index is touched"


async def test_a_batch_that_fails_leaves_no_trace_in_what_is_remembered(engine: SqliteEngine) -> None:  # noqa: F811
    store: Store = await engine.open()
    await write(store, STREAM, created(A), said(input="i"), said(input="j"), started(1, "i"))
    second_turn = write(store, STREAM, started(2, "j"))
    results = await asyncio.gather(write(store, STREAM, said()), second_turn, return_exceptions=True)
    assert isinstance(results[1], sqlite3.IntegrityError), "one turn at a time, says the database"
    await write(store, STREAM, asked())
    row = await store.session(A)
    assert (row.message_count, row.queued, row.turn, row.version) == (3, 2, 1, 6)
    await store.close()


async def test_a_wait_whose_answer_was_not_stored_is_still_open(engine: SqliteEngine) -> None:  # noqa: F811
    store: Store = await engine.open()
    wait = WaitOpened(turn=1, wait="w", purpose="question", reason="which?")
    answer = WaitAnswered(turn=1, wait="w", answer="this", by=ME)
    await write(store, STREAM, created(A), said(input="i"), said(input="j"), started(1, "i"), wait)
    with pytest.raises(sqlite3.IntegrityError):
        await write(store, STREAM, answer, started(2, "j"))
    assert [row.id for row in await store.waits()] == ["w"]
    await write(store, STREAM, finished(1))
    assert await store.waits() == [], "the end of its turn ends it"
    await store.close()


async def test_what_exists_is_not_created_again(engine: SqliteEngine) -> None:  # noqa: F811
    store = await engine.open()
    await write(store, STREAM, created(A), said())
    for again in ((created(A),), (created("b"), created("b"))):
        with pytest.raises((sqlite3.IntegrityError, ValueError)):
            await write(store, STREAM, *again)
    assert (await store.session(A)).message_count == 1
    await store.close()


async def test_a_home_with_the_earlier_columns_opens(engine: SqliteEngine) -> None:  # noqa: F811
    engine.path.unlink()
    with closing(sqlite3.connect(engine.path, isolation_level=None)) as db:
        for number, _, statements in migrations()[:8]:
            db.executescript(f"{statements};PRAGMA user_version={number}")
        db.execute(
            "INSERT INTO sessions (id, title, profile, cwd, created_at, updated_at, version, begun_at, fresh_at, "
            "asked_turn, compacting) VALUES ('a', '', 'demo', '/', 1, 1, 1, 7, 8, 9, 2), "
            "('b', '', 'demo', '/', 1, 1, 1, 0, 0, 0, 1)"
        )
        db.execute("INSERT INTO spoken (session, version, at) VALUES ('a', 1, 5)")
        db.execute("INSERT INTO leases (stream, token, holder) VALUES ('session/a', 1, 'before')")
        db.execute("INSERT INTO devices (id, hash, name, created_at, seen_at, looked_at) VALUES ('d', '', '', 1, 1, 9)")
        db.execute(
            "INSERT INTO cards (id, board, title, profile, workspace, priority, status, again_at, created_by, "
            "created_at, moved_at, updated_at, version) VALUES ('c', '', '', '', '', 0, 'ready', 6, '', 1, 1, 1, 1)"
        )
        migrate(db)
    store = SqliteStore(engine.path)
    a, b = await store.session("a"), await store.session("b")
    assert a == SessionRow(
        "a", "", "demo", "/", 1, 1, 1, first_input_at=7, last_active_at=8, person_turn=9, compaction_running=True
    )
    assert b == replace(b, compaction_requested=True, compaction_running=False)
    assert (await store.cards.card("c")).retry_at == 6
    assert await store.devices.reviewed_at("d") == 9
    assert await store.devices.unread("d", ["a"]) == {"a": 1}
    with pytest.raises(Fenced):
        await store.save_partial(Lease("session/a", 1), PartialText(1, 1, "", "", 1))
    await store.close()


# --- the row of a card and the card of the rules --------------------------------------------------

MOVES: list[AnyEvent] = [
    CardMoved(card=A, status="scheduled", reason="later", by=ME, at=99),
    CardMoved(card=A, status="archived", reason="enough", by=ME),
    CardMoved(card=A, status="todo", reason="again", by=ME, at=7),
    CardBlocked(card=A, block_kind="needs_input", reason="which?", by=ME),
    CardUnblocked(card=A, by=ME, reason="this one"),
    CardCompleted(card=A, summary="all of it", by=ME),
    CardEdited(card=A, by=ME, title="other", priority=4),
    CardCommented(card=A, comment="c", text="hm", by=ME),
]


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from([*range(len(MOVES)), -1]), max_size=12))
def test_the_row_of_a_card_says_what_its_fold_says(choices: list[int]) -> None:
    """-1 starts a run, or ends the open one."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.executescript(SCHEMA)
        rows, folded = SqliteRows(db, RememberedRows()), Card(A)
        for version, choice in enumerate([None, *choices], 1):
            event = card(A, "triage") if choice is None else MOVES[choice]
            if choice == -1:
                open_run = folded.run
                event = run(A, len(folded.runs) + 1) if open_run is None else run_over(A, open_run.number, retry_at=5)
            record = Record(seq=version, stream=f"card/{A}", version=version, at=version, event=event)
            project(record, rows)
            folded = fold_card(folded, [record])
            row = rows.get(CardRow, A)
            assert row is not None
            assert (row.status, row.reason, row.moved_at) == (folded.status, folded.reason, folded.moved.at)
            assert row.block_kind == ("" if folded.block is None else folded.block.block_kind)
            assert (row.scheduled_at, row.comments) == (folded.scheduled_at, len(folded.comments))
            assert (row.title, row.priority, row.version) == (folded.title, folded.priority, folded.version)
        rows.flush()
