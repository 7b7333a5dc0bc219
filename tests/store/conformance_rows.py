"""What every store must return: rows of the type that the contract names, with values of the types of their fields.

See `conformance.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from holdfast.domain.card import Board
from holdfast.domain.events import board_stream, session_stream, task_stream
from holdfast.domain.events.card import BoardCreated, CardCommented
from holdfast.domain.events.chapter import ResetPolicy, ResetPolicySet, SummaryRequested
from holdfast.domain.events.parts import Rights, ShownArgument
from holdfast.domain.events.session import SessionCreated, SessionPinned, WaitOpened
from holdfast.schemas.gateway import TaskCount, WorkSlot
from holdfast.store.contract import Store
from holdfast.store.reads import CardFilter, SessionCursor, StartQuery
from holdfast.store.rows import (
    CardRow,
    EndedTask,
    FailedTurn,
    OpenRun,
    PartialText,
    ResettableSession,
    RunRow,
    RunWithCost,
    SessionRow,
    StartableCard,
    StoreCounts,
    TaskRow,
    TitledWait,
    TurnRow,
)
from tests.actors import person
from tests.store.conformance import (
    AT,
    EVERYTHING,
    STREAM,
    A,
    B,
    C,
    Engine,
    ended,
    responded,
    said,
    started,
    task,
    write,
)
from tests.store.conformance_board import card, put, run, then
from tests.store.conformance_work import at_work, failed

ME = person("me")


def checked(row_type: type[msgspec.Struct], *rows: object) -> None:
    """The rows are of this type, and each value is one that its field allows: a number is no bool, a text no list."""
    assert rows
    for row in rows:
        assert type(row) is row_type
        assert msgspec.json.decode(msgspec.json.encode(row), type=row_type) == row


class RowsContract:
    """Every read returns its row type."""

    @pytest.fixture
    async def store(self, engine: Engine) -> AsyncIterator[Store]:
        store = await engine.open()
        yield store
        await store.close()

    async def test_sessions_turns_and_waits(self, store: Store) -> None:
        rights = Rights(ancestors=[B, C])
        made = SessionCreated(session=A, profile="demo", cwd="/", title="", by=ME, rights=rights)
        policy = ResetPolicySet(policy=ResetPolicy(mode="daily", at_hour=4), by=ME)
        shown = [ShownArgument(name="path", value="/x", usual=True)]
        waits = WaitOpened(
            turn=1, wait="a0a0", purpose="approval", reason="?", call="c", choices=["yes", "no"], shown=shown
        )
        events = (said(), started(1, "i"), responded(), policy, SessionPinned(pinned=True, by=ME), waits)
        await write(store, STREAM, made, *events, SummaryRequested(instructions="", by=ME))
        row = await store.session(A)
        listed = await store.sessions(archived=False, before=SessionCursor(), limit=9)
        checked(SessionRow, row, *listed, *await store.sessions_in("/", limit=9), *await store.unfinished_sessions())
        assert (row.pinned, row.archived, row.compaction_requested, row.compaction_running) == (
            True,
            False,
            True,
            False,
        )
        assert row.reset_policy == ResetPolicy(mode="daily", at_hour=4) and row.ancestors == [B, C]
        assert row.state == "waiting"
        checked(ResettableSession, *await store.resettable_sessions(own_policy=True))
        checked(TurnRow, *await store.turns(A))
        wait = await store.wait("a0")
        checked(TitledWait, wait, *await store.waits())
        assert (wait.choices, wait.shown, wait.state) == (["yes", "no"], shown, "open")
        checked(StoreCounts, await store.counts())

    async def test_the_session_of_a_chat_is_the_one_that_began_last(self, store: Store) -> None:
        assert await store.session_of_chat("telegram:42") is None
        for session, chat, at in ((A, "telegram:42", AT), (B, "telegram:42", AT - 99), (C, "telegram:42:7", AT)):
            made = SessionCreated(session=session, profile="demo", cwd="/", title="", by=ME, chat=chat)
            await write(store, session_stream(session), made, at=at)  # the clock was set back before the second
        found = [await store.session_of_chat(chat) for chat in ("telegram:42", "telegram:42:7", "telegram:4", "")]
        checked(SessionRow, *found[:2])
        assert [None if row is None else row.id for row in found] == [B, C, None, None]

    async def test_what_failed_and_what_nobody_uses(self, store: Store) -> None:
        await at_work(store)
        await write(store, STREAM, failed(), at=AT + 5)
        checked(FailedTurn, *await store.failed_turns())
        checked(SessionRow, *await store.unused_sessions(archived=False, before=AT + 9))
        lease = await store.claim(STREAM, holder="me")
        await store.save_partial(lease, PartialText(2, 1, "so far", "", AT))
        checked(PartialText, await store.partial(STREAM))

    async def test_tasks(self, store: Store) -> None:
        await write(store, task_stream(A), task(A, argv=["make", "all"], notify=True, lifetime="until", until=AT + 9))
        await write(store, task_stream(B), task(B), ended(B, files=["a.py"], survivors=["7 sleep"]), at=AT + 1)
        running, over = await store.task(A), (await store.tasks_by_id([A, B]))[B]
        page = await store.tasks(EVERYTHING, before=SessionCursor(), limit=9)
        checked(TaskRow, running, over, *page, *await store.running_tasks())
        assert (running.argv, running.files, running.survivors) == (["make", "all"], None, [])
        assert (running.notify, running.pinned, running.foreground) == (True, False, False)
        assert (over.files, over.survivors) == (["a.py"], ["7 sleep"])
        checked(EndedTask, *await store.ended_tasks())
        checked(TaskCount, *await store.count_tasks())
        checked(WorkSlot, *await store.work_since(AT, step=10))
        assert await store.task_ids() == {A: False, B: False}

    async def test_cards_runs_and_boards(self, store: Store) -> None:
        await write(store, board_stream("home"), BoardCreated(board="home", title="Home", by=ME))
        await put(store, card(A), card(B, parents=(A,)), card(C, "blocked"))
        checked(Board, *await store.cards.boards())
        wanted = StartQuery(boards=["home"], profiles=["demo"], limit=9, exclude=[])
        checked(StartableCard, *await store.cards.to_start(wanted, now=AT + 1))
        await then(store, A, run(A), CardCommented(card=A, comment="c", text="go", by=ME))
        one, all_of_them = await store.cards.card(A), await store.cards.cards(CardFilter(), offset=0, limit=9)
        related = [
            *await store.cards.parents(B),
            *await store.cards.children(A),
            *await store.cards.for_people(["demo"]),
        ]
        checked(CardRow, one, *all_of_them, *related)
        assert (one.done, one.retry_at, one.status) == (False, None, "running")
        checked(OpenRun, *await store.cards.open_runs())
        checked(RunRow, await store.cards.open_run_of(A))
        checked(RunWithCost, *await store.cards.runs(A))
        assert await store.cards.links() == [(A, B)]
