"""The embedded engine: SQLite in WAL mode, `synchronous=FULL`, one writer, read-only readers.

Nothing ever opens the database file but SQLite: closing any other handle on it drops the POSIX
locks of this process and silently loses commits.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from holdfast.domain.errors import Conflict, Gone, NotFound
from holdfast.domain.events import SYSTEM, Record, decode_many
from holdfast.follower_state import FollowerState
from holdfast.store.contract import (
    PAGE_BYTES,
    Append,
    Appended,
    CommandKey,
    Hit,
    Lease,
    OutputFound,
    Page,
    SessionCursor,
    StoreHealth,
    Subscription,
    TaskFilter,
    Wanted,
)
from holdfast.store.decisions import accepted
from holdfast.store.device_contract import DeviceStore
from holdfast.store.rows import (
    EndedTask,
    FailedTurn,
    NodeRow,
    PartialText,
    ResettableSession,
    SessionRow,
    StoreCounts,
    TaskCount,
    TaskRow,
    TitledWait,
    TurnRow,
    WorkSlot,
)
from holdfast.store.sqlite.cards import SqliteCards
from holdfast.store.sqlite.connections import connect_impatient_writer, connect_reader, explained
from holdfast.store.sqlite.devices import SqliteDevices
from holdfast.store.sqlite.fetch import SESSION, TASK, WAIT, Fetch
from holdfast.store.sqlite.migrate import prepare
from holdfast.store.sqlite.operations import (
    DoAppend,
    DoClaim,
    DoPartial,
    DoRelease,
    encode_writes,
    head_of,
    stored_command,
)
from holdfast.store.sqlite.queries import queries
from holdfast.store.sqlite.readers import Readers
from holdfast.store.sqlite.search import SearchIndex
from holdfast.store.sqlite.stored_lines import checked
from holdfast.store.sqlite.writer import Writer
from holdfast.store.subscriptions import Subscriptions

T = TypeVar("T")
LOAD_PAGE = 500


async def open_store(path: Path) -> SqliteStore:
    """Open the database; one of an older version is migrated first, beside the loop, since that may take minutes."""
    await asyncio.to_thread(prepare, path)
    return SqliteStore(path)


class SqliteStore:
    """The Store of `contract.py` on one SQLite file. Made on a running loop, by `open_store` where it may be old."""

    def __init__(self, path: Path) -> None:
        prepare(path)
        self._path = path
        self._tail = Subscriptions()
        self._readers = Readers(lambda: connect_reader(path))
        self._fetch = Fetch(self._readers)
        self._counted = (0, 1 << 62, -1)  # events, up to which seq, by which version of the stream of deletions
        with explained(path):
            self.writer = Writer(lambda: connect_impatient_writer(path), self._tail, asyncio.get_running_loop())
            self._devices = SqliteDevices(self.writer, self._fetch)
            self.cards = SqliteCards(self._fetch)
            self._followed = connect_reader(path)
            self._index = SearchIndex(path.with_name("search.db"), self._read_log, self._tail)

    # --- append, claim --------------------------------------------------------------------------

    async def append(self, append: Append) -> Appended:
        """Commit, durably; then return."""
        return await self.writer.do(DoAppend(append, encode_writes(append)))

    async def claim(self, stream: str, *, holder: str) -> Lease:
        """Take the lease; whoever held it is fenced."""
        return await self.writer.do(DoClaim(stream, holder))

    async def release(self, lease: Lease) -> None:
        """Give the lease back."""
        await self.writer.do(DoRelease(lease))

    async def nodes(self) -> list[NodeRow]:
        """The lives of nodes, newest first."""
        return await self._fetch.rows("list_nodes", {}, NodeRow)

    async def save_partial(self, lease: Lease, partial: PartialText) -> None:
        """Overwrite the text so far."""
        await self.writer.do(DoPartial(lease, partial))

    async def find_command(self, key: CommandKey) -> Appended | None:
        """What a command came to, if it was accepted before."""
        return await self._readers.read(lambda db: accepted(stored_command(db, key.id), key))

    # --- read, tail -----------------------------------------------------------------------------

    async def read(self, stream: str, *, after: int, limit: int, size: int = PAGE_BYTES) -> Page:
        """Stored bytes of a stream."""
        if self.writer.is_head(stream, after):
            return Page(())
        return await self._read_stream(stream, after, lambda db: self._page(db, stream, after, limit, size))

    async def read_all(self, *, after: int, limit: int, size: int = PAGE_BYTES) -> Page:
        """Stored bytes of the whole log, by seq."""
        return await self._readers.read(lambda db: self._page_all(db, after, limit, size))

    async def load(self, stream: str, *, after: int) -> list[Record]:
        """Decoded records of a stream, to the end."""
        if self.writer.is_head(stream, after):
            return []
        return await self._read_stream(stream, after, lambda db: self._load(db, stream, after))

    def recent(self, stream: str, *, after: int) -> tuple[bytes, ...] | None:
        """Stored bytes behind a version of a stream that somebody follows, if they are at hand; None: `read` them."""
        return () if self.writer.is_head(stream, after) else self._tail.recent.after(stream, after) or None

    def subscribe(self, stream: str | None, wanted: Wanted | None = None) -> Subscription:
        """Follow one stream, or with None all of them; with `wanted` only the events for which it returns true."""
        return self._tail.follow(stream, wanted)

    def hint(self, stream: str) -> None:
        """Wake the followers of a stream for a frame that is no fact."""
        self._tail.hint(stream)

    async def partial(self, stream: str) -> PartialText | None:
        """The text so far, if a step is running or was cut."""
        return self._fetch.one("find_partial", {"stream": stream}, PartialText)

    # --- projections ----------------------------------------------------------------------------

    async def sessions(self, *, archived: bool, before: SessionCursor, limit: int, text: str = "") -> list[SessionRow]:
        """A page of the list, newest first."""
        where: dict[str, object] = {
            "text": text.casefold(),
            "archived": int(archived),
            "before_pinned": int(before.pinned),
            "before_at": before.at,
            "before_id": before.id,
            "limit": limit,
        }
        return await self._fetch.rows("list_sessions", where, SessionRow)

    async def sessions_in(self, cwd: str, *, limit: int) -> list[SessionRow]:
        """The sessions of a directory without those of cards, newest first."""
        return await self._fetch.rows("sessions_in", {"cwd": cwd, "limit": limit}, SessionRow)

    async def session(self, prefix: str) -> SessionRow:
        """One session by id or unique prefix."""
        return await self._fetch.by_prefix(SESSION, prefix)

    async def tasks(self, wanted: TaskFilter, *, before: SessionCursor, limit: int) -> list[TaskRow]:
        """A page of the archive, newest first."""
        where: dict[str, object] = {
            "kind": wanted.kind,
            "state": wanted.state,
            "session": wanted.session,
            "text": wanted.text.casefold(),
            "since": wanted.since,
            "ended": wanted.ended,
            "before_at": before.at,
            "before_id": before.id,
            "limit": limit,
        }
        return await self._fetch.rows("list_all_tasks" if wanted.foreground else "list_tasks", where, TaskRow)

    async def running_tasks(self) -> list[TaskRow]:
        """Everything that runs, oldest first."""
        return await self._fetch.rows("running_tasks", {}, TaskRow)

    async def count_descendants(self, root: str) -> int:
        """How many agents at work and cards not yet done descend from a session."""
        ((count,),) = await self._fetch.values("count_descendants", {"root": root})
        return int(count)

    async def ended_tasks(self) -> list[EndedTask]:
        """What may be pruned."""
        return await self._fetch.rows("ended_tasks", {}, EndedTask)

    async def tasks_by_id(self, tasks: list[str]) -> dict[str, TaskRow]:
        """Those of these tasks that are there."""
        rows = await self._fetch.rows("tasks_by_id", {"tasks": json.dumps(tasks)}, TaskRow)
        return {row.id: row for row in rows}

    async def tasks_of_workers(self, sessions: list[str]) -> dict[str, str]:
        """The newest task of each of these sessions in which an agent works."""
        return dict(await self._fetch.values("tasks_of_workers", {"workers": json.dumps(sessions)}))

    async def task_event_bytes(self, tasks: list[str]) -> dict[str, int]:
        """What the events of each task take."""
        return dict(await self._fetch.values("task_event_bytes", {"tasks": json.dumps(tasks)}))

    async def task_ids(self) -> dict[str, bool]:
        """All of them; true for an ended command that a turn waited for."""
        return {id: bool(over) for id, over in await self._fetch.values("task_ids", {})}

    async def task(self, prefix: str) -> TaskRow:
        """One task by id or unique prefix."""
        return await self._fetch.by_prefix(TASK, prefix)

    async def unfinished_sessions(self) -> list[SessionRow]:
        """Every session that is not at rest."""
        return await self._fetch.rows("unfinished_sessions", {}, SessionRow)

    async def resettable_sessions(self, *, own_policy: bool) -> list[ResettableSession]:
        """Every session that a reset could be about."""
        query = "resettable_sessions_with_policy" if own_policy else "resettable_sessions"
        return await self._fetch.rows(query, {}, ResettableSession)

    async def unused_sessions(self, *, archived: bool, before: int) -> list[SessionRow]:
        """What a retention rule could be about."""
        where: dict[str, object] = {"archived": int(archived), "before": before}
        return await self._fetch.rows("sessions_unused", where, SessionRow)

    async def waits(self) -> list[TitledWait]:
        """The inbox: everything that waits for a person, oldest first."""
        return await self._fetch.rows("open_waits", {}, TitledWait)

    async def failed_turns(self) -> list[FailedTurn]:
        """Sessions whose last turn failed, and nobody has dealt with that; oldest first."""
        return await self._fetch.rows("failed_turns", {}, FailedTurn)

    async def wait(self, prefix: str) -> TitledWait:
        """One wait by id or unique prefix; an open one wins."""
        return await self._fetch.by_prefix(WAIT, prefix)

    async def turns(self, session: str) -> list[TurnRow]:
        """The turns of a session."""
        return await self._fetch.rows("list_turns", {"session": session}, TurnRow)

    async def counts(self) -> StoreCounts:
        """Sessions, archived ones, messages, events, and the last seq."""
        return await self._readers.read(self._count_all)

    async def work_since(self, since: int, *, step: int) -> list[WorkSlot]:
        """What ended and what began to wait, in slots of so many milliseconds."""
        return await self._fetch.rows("work_since", {"since": since, "step": step}, WorkSlot)

    async def count_tasks(self) -> list[TaskCount]:
        """How many tasks there are in each state, and what their outputs take."""
        return await self._fetch.rows("count_tasks", {}, TaskCount)

    async def search(self, text: str, *, limit: int) -> list[Hit]:
        """Where a text occurs, newest first."""
        return await asyncio.to_thread(self._index.search, text, limit)

    async def search_outputs(self, text: str, *, limit: int) -> list[OutputFound]:
        """The ended tasks in whose output a text occurs, newest first."""
        return await asyncio.to_thread(self._index.search_outputs, text, limit)

    @property
    def search_state(self) -> FollowerState:
        """How the search index is doing."""
        return self._index.state

    async def indexed(self) -> int:
        """How far the search index has come, for those who must wait for it."""
        return await asyncio.to_thread(lambda: self._index.cursor)

    @property
    def devices(self) -> DeviceStore:
        """Who may look in from a browser."""
        return self._devices

    @property
    def health(self) -> StoreHealth:
        """Whether it takes writes."""
        return self.writer.health

    @property
    def commit_stats(self) -> tuple[int, float]:
        """Transactions committed since the start, and the seconds that they took."""
        return self.writer.commits, self.writer.commit_seconds

    async def close(self) -> None:
        """Finish what was taken, and let go of the files."""
        self._tail.close()
        await asyncio.to_thread(self._index.close)
        await self._readers.close()
        await self.writer.close()
        self._followed.close()  # last and read-only: so `-wal` and `-shm` stay for a start on a full disk

    # --- on a reader's thread -------------------------------------------------------------------

    async def _read_stream(self, stream: str, after: int, read: Callable[[sqlite3.Connection], T]) -> T:
        """A few events at its end are read at once."""
        near = self.writer.is_near_head(stream, after)
        return self._readers.read_here(read) if near else await self._readers.read(read)

    def _page(self, db: sqlite3.Connection, stream: str, after: int, limit: int, size: int) -> Page:
        page = checked(db, "read_stream", {"stream": stream, "after": after, "limit": limit}, enough=size)
        if not page.lines:
            head = head_of(db, stream).version
            if not head and db.execute(queries()["deleted_at"], {"stream": stream}).fetchone() is not None:
                raise Gone(f"{stream} was deleted.")
            if not head and stream != SYSTEM:
                raise NotFound(f"There is no {stream}.")
            _not_ahead(stream, after, head)
        return page

    def _page_all(self, db: sqlite3.Connection, after: int, limit: int, size: int = PAGE_BYTES) -> Page:
        page = checked(db, "read_all", {"after": after, "limit": limit}, enough=size)
        if not page.lines:
            _not_ahead("the log", after, db.execute(queries()["last_seq"]).fetchone()[0])
        return page

    def _count_all(self, db: sqlite3.Connection) -> StoreCounts:
        """All events once, then those that are new; and all again when something was deleted."""
        counted, seen, known = self._counted
        events, seen, deletions = db.execute(queries()["count_new_events"], {"seen": seen}).fetchone()
        if deletions == known:
            self._counted = (counted + events, seen, known)
        else:
            self._counted = db.execute(queries()["count_events"]).fetchone()
        sessions, archived, messages = db.execute(queries()["count_sessions"]).fetchone()
        return StoreCounts(sessions, archived, messages, events=self._counted[0], seq=self._counted[1])

    def _read_log(self, after: int, limit: int) -> Page:
        """For the search index, which goes on after a damaged line."""
        skipped: list[bytes] = []
        page = checked(self._followed, "read_all", {"after": after, "limit": limit}, skipped=skipped)
        if not page.lines and not skipped:
            _not_ahead("the log", after, self._followed.execute(queries()["last_seq"]).fetchone()[0])
        return page

    def _load(self, db: sqlite3.Connection, stream: str, after: int) -> list[Record]:
        records: list[Record] = []
        more = True
        while more:
            page = checked(db, "read_stream", {"stream": stream, "after": after, "limit": LOAD_PAGE})
            records.extend(decode_many(page.lines))
            more = page.more
            after = records[-1].version if records else after
        return records


def _not_ahead(what: str, after: int, end: int) -> None:
    """A cursor from another life of this log would wait for ever, so it is refused."""
    if after > end:
        raise Conflict(f"The cursor {after} is ahead of {what}, which ends at {end}.", hint="Begin again with after=0.")
