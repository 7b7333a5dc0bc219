"""The session machine on a real store: the same rules, plus restarts and projections."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import invariant, rule

from holdfast.config import Home
from holdfast.domain.events import AnyEvent, Record, session_stream
from holdfast.domain.session import Session
from holdfast.domain.session_fold import fold
from holdfast.store.contract import Append, CommandKey, Lease, Store, Write
from holdfast.store.rows import SessionRow
from tests.domain.book import ID
from tests.domain.machine import Log, SessionMachine
from tests.engines import EngineName, engines, open_store
from tests.memory import MEMORY
from tests.store.rebuilt import check_projections

STREAM = session_stream(ID)


class StoreLog:
    """A store as the machine knows it."""

    def __init__(self, engine: EngineName) -> None:
        engines.name = engine
        self._home = tempfile.TemporaryDirectory(dir=MEMORY)
        self.path = Path(self._home.name) / "holdfast.db"
        self._loop = asyncio.Runner()
        self._store = self._loop.run(self._open())

    async def _open(self) -> Store:
        return open_store(Home(self.path.parent))

    def reopen(self) -> None:
        self._loop.run(self._store.close())
        self._store = self._loop.run(self._open())

    def claim(self) -> int:
        return self._loop.run(self._store.claim(STREAM, holder="machine")).token

    def append(self, events: list[AnyEvent], *, at: int, token: int | None = None, command: str | None = None) -> None:
        key = CommandKey(command, "digest") if command is not None else None
        lease = Lease(STREAM, token) if token is not None else None
        self._loop.run(self._store.append(Append((Write(STREAM, tuple(events)),), at, key, lease)))

    def records(self) -> list[Record]:
        return self._loop.run(self._store.load(STREAM, after=0))

    def row(self) -> SessionRow:
        return self._loop.run(self._store.session(ID))

    def unfinished(self) -> list[SessionRow]:
        return self._loop.run(self._store.unfinished_sessions())

    def close(self) -> None:
        check_projections(self.path)
        self._loop.run(self._store.close())
        self._loop.close()
        engines.forget(self.path.parent)
        engines.name = "sqlite"
        self._home.cleanup()


class StoreMachine(SessionMachine):
    """See above."""

    engine: EngineName = "sqlite"

    def open_log(self) -> Log:
        return StoreLog(self.engine)

    @rule()
    def restart(self) -> None:
        """A new gateway on the same home: the worker of the old one is a zombie from now on."""
        assert isinstance(self.log, StoreLog)
        self.log.reopen()
        if self.worker is not None:
            self.zombies.append(self.worker)
            self.worker = None

    @invariant()
    def the_row_says_of_chapters_what_the_fold_says(self) -> None:
        """The reset clock looks at rows only, and the runner starts with them."""
        assert isinstance(self.log, StoreLog)
        session, row = fold(Session(ID), self.log.records()), self.log.row()
        chapter = session.chapter
        assert row.first_input_at == (session.first_input.at if session.first_input is not None else 0)
        assert row.last_active_at == (session.last_active.at if session.last_active is not None else 0)
        assert row.chapter == chapter.number
        assert row.chapter_at == (chapter.opened_at.at if chapter.opened_at is not None else 0)
        assert row.compaction_requested == (chapter.requested is not None)
        assert row.compaction_running == (chapter.in_progress is not None)
        assert row.reset_policy == session.policy
        assert row.state == session.activity
        assert self.log.unfinished() == ([row] if row.state != "idle" else [])


class PostgresMachine(StoreMachine):
    """The same on PostgreSQL."""

    engine: EngineName = "postgres"


TestStoreSession, TestPostgresSession = StoreMachine.TestCase, PostgresMachine.TestCase
TestStoreSession.settings = settings(
    max_examples=10,  # more: tests/test_machines_at_length.py
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=set(Phase) - {Phase.shrink, Phase.explain},  # minutes on a real store; the machine in memory shrinks
)
TestPostgresSession.settings = settings(TestStoreSession.settings, max_examples=8)
