"""The contract of a store. SQLite is the embedded engine; PostgreSQL will be the other.

`tests/store/conformance.py` says in tests what is said here in words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from holdfast.domain.events import AnyEvent, Record
from holdfast.follower_state import FollowerState
from holdfast.store.card_contract import CardReads
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

PAGE_BYTES = 1_048_576


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write what is done on a stream. The token is checked with every write."""

    stream: str
    token: int


@dataclass(frozen=True, slots=True)
class CommandKey:
    """A client-minted id, and a digest of what was asked under it."""

    id: str
    digest: str


@dataclass(frozen=True, slots=True)
class Write:
    """Events for one stream. With `expect`, only if the stream stands at that version."""

    stream: str
    events: tuple[AnyEvent, ...]
    expect: int | None = None
    times: tuple[int, ...] = ()
    """When they happened, for events that are copied; by default now."""


@dataclass(frozen=True, slots=True)
class Append:
    """All or nothing: one transaction, one fsync (shared with whoever writes at the same time)."""

    writes: tuple[Write, ...]
    at: int
    command: CommandKey | None = None
    lease: Lease | None = None
    claim: str = ""
    """Take the lease of the first write's stream for this holder, in the same transaction."""


@dataclass(frozen=True, slots=True)
class Appended:
    """Where the last event of the first write stands. After a retry: where it stood the first time."""

    stream: str
    version: int
    seq: int
    records: tuple[Record, ...] = field(default=())
    """What was written now; empty after a retry."""
    duplicate: bool = False
    lease: Lease | None = None
    """The lease that was taken with it."""


@dataclass(frozen=True, slots=True)
class Page:
    """Stored bytes, as they go over the wire, checked against their CRC."""

    lines: tuple[bytes, ...]
    more: bool = False
    """There may be more behind it: it ended at a limit."""


@dataclass(frozen=True, slots=True)
class SessionCursor:
    """Where a page of the list begins: after the session `id` that was updated at `at`, pinned ones first."""

    at: int = 2**62
    id: str = ""
    pinned: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks; what is empty fits everything."""

    kind: str = ""
    state: str = ""
    session: str = ""
    text: str = ""
    since: int = 0
    ended: int = 0
    """Only what ended at this moment or later."""
    foreground: bool = False
    """Also the commands that a turn waits or waited for."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A place where a search found something."""

    session: str
    version: int
    at: int
    role: str
    snippet: str


@dataclass(frozen=True, slots=True)
class OutputFound:
    """A task in whose output a search found something."""

    task: str
    snippet: str


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """Whether the store takes writes, and if not, since when and why."""

    writable: bool = True
    problem: str = ""
    since: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the doctor looked at; `hint` says what to do if it is not well."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


Wanted = Callable[[str, str], bool]
"""Whether an event is worth waking up for: its stream, and the name of its kind."""


class Subscription(Protocol):
    """Wakes up when something was committed, and by and by without a reason. The log says what happened."""

    def next(self) -> asyncio.Future[None]:
        """A future that is done when something was committed since the last `drain`; the same one until then."""

    async def wait(self) -> None:
        """Return when something was committed since the last `drain`."""

    def drain(self) -> dict[str, set[str]]:
        """The streams that changed since the last call, each with the kinds of its new events.

        A hint leaves a stream without kinds.
        """

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Store(Protocol):
    """Append, read, tail, claim; and the projections."""

    async def append(self, append: Append) -> Appended:
        """Commit, durably; then return. Conflict or Fenced: nothing was stored.

        Unavailable: the disk refused. Nothing is stored as far as anybody can see now, but after a crash a
        commit in doubt may turn out to have happened: try again under the same command id, or look first.
        """
        ...

    async def find_command(self, key: CommandKey) -> Appended | None:
        """What a command came to, if it was accepted before. Conflict if its id meant something else."""
        ...

    async def read(self, stream: str, *, after: int, limit: int, size: int = PAGE_BYTES) -> Page:
        """Stored bytes of a stream, up to about `size` of them. Gone if it was deleted, NotFound if it never was."""
        ...

    async def read_all(self, *, after: int, limit: int, size: int = PAGE_BYTES) -> Page:
        """Stored bytes of the whole log, by seq, up to about `size` of them."""
        ...

    async def load(self, stream: str, *, after: int) -> list[Record]:
        """Decoded records of a stream, to the end."""
        ...

    def recent(self, stream: str, *, after: int) -> tuple[bytes, ...] | None:
        """Stored bytes behind a version of a stream that somebody follows, if they are at hand; None: `read` them."""
        ...

    def subscribe(self, stream: str | None, wanted: Wanted | None = None) -> Subscription:
        """Follow one stream, or with None all of them; with `wanted` only the events for which it returns true."""
        ...

    def hint(self, stream: str) -> None:
        """Wake the followers of a stream for a frame that is no fact."""
        ...

    async def claim(self, stream: str, *, holder: str) -> Lease:
        """Take the lease; an earlier worker of this node is fenced. Conflict while another node holds it."""
        ...

    async def release(self, lease: Lease) -> None:
        """Give the lease back."""
        ...

    async def nodes(self) -> list[NodeRow]:
        """The lives of nodes, newest first: those that go on, and the last ones that ended.

        A lease belongs to the life of the node that took it, and is free when that life ends. Whoever opens the store
        begins a life with its first write; on SQLite that ends the life before.
        """
        ...

    async def save_partial(self, lease: Lease, partial: PartialText) -> None:
        """Overwrite the text so far. Fenced like any other work."""
        ...

    async def partial(self, stream: str) -> PartialText | None:
        """The text so far, if a step is running or was cut."""
        ...

    async def sessions(self, *, archived: bool, before: SessionCursor, limit: int, text: str = "") -> list[SessionRow]:
        """A page of the list, newest first; with a text, only those that have it in their title."""
        ...

    async def sessions_in(self, cwd: str, *, limit: int) -> list[SessionRow]:
        """The sessions of a directory without those of cards, newest first."""
        ...

    async def session(self, prefix: str) -> SessionRow:
        """One session by id or unique prefix. NotFound, Gone, or Conflict if it fits several."""
        ...

    async def unfinished_sessions(self) -> list[SessionRow]:
        """Every session that is not at rest."""
        ...

    async def resettable_sessions(self, *, own_policy: bool) -> list[ResettableSession]:
        """Every session that a reset could be about: not archived, with something in its chapter. With `own_policy`
        only those that have a reset policy of their own.
        """
        ...

    async def unused_sessions(self, *, archived: bool, before: int) -> list[SessionRow]:
        """Sessions at rest, not pinned, with nothing running and not touched since a moment, oldest first."""
        ...

    async def waits(self) -> list[TitledWait]:
        """The inbox: everything that waits for a person, oldest first."""
        ...

    async def failed_turns(self) -> list[FailedTurn]:
        """Sessions whose last turn failed and no person has dealt with that, oldest first."""
        ...

    async def wait(self, prefix: str) -> TitledWait:
        """One wait by id or unique prefix. NotFound, or Conflict if it fits several."""
        ...

    async def tasks(self, wanted: TaskFilter, *, before: SessionCursor, limit: int) -> list[TaskRow]:
        """A page of the archive, newest first."""
        ...

    async def running_tasks(self) -> list[TaskRow]:
        """Everything that runs, oldest first, also what a turn waits for."""
        ...

    async def count_descendants(self, root: str) -> int:
        """How many agents at work and cards not yet done descend from a session."""
        ...

    async def ended_tasks(self) -> list[EndedTask]:
        """What may be pruned, newest first: ended and not pinned."""
        ...

    async def tasks_by_id(self, tasks: list[str]) -> dict[str, TaskRow]:
        """Those of these tasks that are there."""
        ...

    async def tasks_of_workers(self, sessions: list[str]) -> dict[str, str]:
        """The newest task of each of these sessions in which an agent works."""
        ...

    async def task_event_bytes(self, tasks: list[str]) -> dict[str, int]:
        """What the events of each task take."""
        ...

    async def task_ids(self) -> dict[str, bool]:
        """All of them; true for an ended command that a turn waited for."""
        ...

    async def task(self, prefix: str) -> TaskRow:
        """One task by id or unique prefix. NotFound, Gone, or Conflict if it fits several."""
        ...

    async def turns(self, session: str) -> list[TurnRow]:
        """The turns of a session."""
        ...

    async def counts(self) -> StoreCounts:
        """Sessions, archived ones, messages, events, and the last seq."""
        ...

    async def work_since(self, since: int, *, step: int) -> list[WorkSlot]:
        """What ended and what began to wait, in slots of so many milliseconds; slots without anything are left out."""
        ...

    async def count_tasks(self) -> list[TaskCount]:
        """How many tasks there are in each state, and what their outputs take."""
        ...

    async def search(self, text: str, *, limit: int) -> list[Hit]:
        """Where a text occurs, newest first; at most a second behind the log."""
        ...

    async def search_outputs(self, text: str, *, limit: int) -> list[OutputFound]:
        """The ended tasks in whose output a text occurs, newest first."""
        ...

    @property
    def devices(self) -> DeviceStore:
        """Who may look in from a browser."""
        ...

    @property
    def cards(self) -> CardReads:
        """The board."""
        ...

    @property
    def health(self) -> StoreHealth:
        """Whether it takes writes."""
        ...

    @property
    def search_state(self) -> FollowerState:
        """How the search index is doing."""
        ...

    @property
    def commit_stats(self) -> tuple[int, float]:
        """Transactions committed since the start, and the seconds that they took."""
        ...

    async def close(self) -> None:
        """Finish what was taken, and let go of the files."""
        ...
