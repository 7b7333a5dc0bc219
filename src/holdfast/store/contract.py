"""The contract of a store. SQLite is the embedded engine; PostgreSQL is the other.

The suites in `tests/store/conformance*.py` test what is described here.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from holdfast.clock import Clock
from holdfast.domain.errors import Conflict, Rejected, VersionConflict
from holdfast.domain.events import AnyEvent, Record
from holdfast.periodic import FollowerState
from holdfast.store.card_reads import CardReads
from holdfast.store.device_store import DeviceStore
from holdfast.store.node_exchange import NodeExchange
from holdfast.store.outbox_store import OutboxStore
from holdfast.store.reads import Fetch, ProjectionReads
from holdfast.store.rows import PartialText, TextPiece
from holdfast.store.settings_store import SettingsStore

PAGE_BYTES = 1_048_576
LOCAL_NODE = "local"
"""The name of the one node that an embedded store has."""
TRIES = 1000
"""Each lost race is the success of another caller, so this ends; with many callers it takes more than a few."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write what is done on a stream. The token is checked with every write."""

    stream: str
    token: int


DUTY_LEASE: ContextVar[Lease | None] = ContextVar("DUTY_LEASE", default=None)
"""The lease of the duty that is being done (`duties.py`): everything that is written meanwhile carries it."""


@dataclass(frozen=True, slots=True)
class CommandKey:
    """A client-minted id, and a digest of what was asked under it."""

    id: str
    digest: str
    reply: str = "{}"
    """JSON: the reply besides the position of the command. A retry gets the reply of the first time."""


@dataclass(frozen=True, slots=True)
class Write:
    """Events for one stream. With `expect`, only if the stream is at that version."""

    stream: str
    events: tuple[AnyEvent, ...]
    expect: int | None = None
    times: tuple[int, ...] = ()
    """When they happened, for events that are copied; by default now."""


@dataclass(frozen=True, slots=True)
class Append:
    """All or nothing: one transaction, one fsync (shared with other appends at the same time)."""

    writes: tuple[Write, ...]
    at: int
    command: CommandKey | None = None
    lease: Lease | None = None
    claim: str = ""
    """Take the lease of the first write's stream for this holder, in the same transaction."""
    duty: Lease | None = field(default_factory=DUTY_LEASE.get)
    """The lease of the duty that this is part of, checked like the other one."""


@dataclass(frozen=True, slots=True)
class Appended:
    """The position of the last event of the first write; after a retry, that of the first time."""

    stream: str
    version: int
    seq: int
    records: tuple[Record, ...] = field(default=())
    """What was written now; empty after a retry."""
    duplicate: bool = False
    lease: Lease | None = None
    """The lease that was taken with it."""
    reply: str = "{}"
    """Of its command, as it was given the first time."""


@dataclass(frozen=True, slots=True)
class Page:
    """Stored bytes, as they go over the wire, checked against their CRC."""

    lines: tuple[bytes, ...]
    more: bool = False
    """There may be more behind it: it ended at a limit."""


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
    """One check of the doctor; `hint` says what to do if it is not ok."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


Decide = Callable[[], Awaitable[tuple[Write, ...]]]
"""Reads the state as it is now and returns what to write, each with the version it was decided on."""

Wanted = Callable[[str, str], bool]
"""Whether an event is worth waking up for: its stream, and the name of its kind."""


class Subscription(Protocol):
    """Wakes up when something was committed, and now and then without a reason. The log says what happened."""

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


class Store(ProjectionReads, ABC):
    """Append, read, follow, claim. What is read of the projections is the same for every engine (`reads.py`)."""

    node: str = LOCAL_NODE
    """The name of this node: a machine, or a part of it, whose gateway has the store open."""
    is_shared: bool = False
    """Whether other nodes can have it open, too."""
    devices: DeviceStore
    outbox: OutboxStore
    cards: CardReads
    exchange: NodeExchange | None = None
    """None where there is only one node."""
    settings: SettingsStore | None = None
    """None where there is only one node, whose settings are in config.toml."""

    def __init__(self, fetch: Fetch) -> None:
        super().__init__(fetch)
        self.cards = CardReads(fetch)

    @property
    @abstractmethod
    def life(self) -> int:
        """The life of this process as a node (`nodes`); 0 until its first write."""

    @abstractmethod
    async def append(self, append: Append) -> Appended:
        """Commit, durably; then return. Conflict or Fenced: nothing was stored.

        Unavailable: the disk refused. Nothing is stored as far as anybody can see now, but after a crash a
        commit in doubt may turn out to have happened: try again under the same command id, or look first.
        """

    async def transact(self, clock: Clock, decide: Decide, *, command: CommandKey | None = None) -> Appended:
        """Append what `decide` returns; let it decide again if another write came in between.

        A refusal by `decide` may come from the state that an earlier try of the same command made; then that try's
        result is returned. A conflict that is not about a version (the command id means something else) is raised.
        """
        before: list[tuple[str, int | None]] = []
        for _ in range(TRIES):
            try:
                writes = await decide()
            except (Conflict, Rejected):
                known = None if command is None else await self.find_command(command)
                if known is None:
                    raise
                return known
            try:
                return await self.append(Append(writes, clock.now(), command=command))
            except VersionConflict:
                expected = [(write.stream, write.expect) for write in writes]
                if expected == before:
                    raise  # the streams that it was decided on have not moved
                before = expected
        raise Conflict("It changed too often at the same time.", hint="Try again.")

    @abstractmethod
    async def find_command(self, key: CommandKey) -> Appended | None:
        """Return the result of a command that was accepted before. Conflict if its id was used for another command."""

    @abstractmethod
    async def read(self, stream: str, *, after: int, limit: int, size: int = PAGE_BYTES) -> Page:
        """Stored bytes of a stream, up to about `size` of them. Gone if it was deleted, NotFound if it never was."""

    @abstractmethod
    async def read_all(self, *, after: int, limit: int, size: int = PAGE_BYTES) -> Page:
        """Stored bytes of the whole log, by seq, up to about `size` of them."""

    @abstractmethod
    async def load_kinds(self, kinds: frozenset[str], *, after: int, limit: int) -> tuple[list[Record], int]:
        """Decoded records of the whole log with these kinds of events, by seq, and up to which seq these are all.

        A damaged one is left out.
        """

    @abstractmethod
    async def load(self, stream: str, *, after: int) -> list[Record]:
        """Decoded records of a stream, to the end."""

    @abstractmethod
    def recent(self, stream: str, *, after: int) -> tuple[bytes, ...] | None:
        """Stored bytes behind a version of a followed stream, if they are in memory; None: `read` them."""

    @abstractmethod
    def subscribe(
        self, stream: str | None, wanted: Wanted | None = None, *, elsewhere: Wanted | None = None
    ) -> Subscription:
        """Follow one stream, or with None all of them; with `wanted` only the events for which it returns true.

        `elsewhere` is asked instead about the events of other nodes.
        """

    @abstractmethod
    def hint(self, stream: str) -> None:
        """Wake the followers of a stream for a frame that is no fact."""

    @abstractmethod
    async def claim(self, stream: str, *, holder: str) -> Lease:
        """Take the lease; an earlier worker of this node is fenced. HeldElsewhere while another node holds it.

        It belongs to the life of this node, and is free when that ends.
        """

    async def give_back(self, stream: str) -> None:
        """Give back the lease of a stream, since another node is to work on it and no worker of this one does."""

    def holds(self, lease: Lease) -> bool:  # noqa: ARG002
        """Whether a lease is still ours for sure. Asked before an effect, which no later check could take back."""
        return True

    def holds_stream(self, stream: str) -> bool:  # noqa: ARG002
        """Whether this node has the lease of a stream, as far as it knows."""
        return True

    @property
    def is_draining(self) -> bool:
        """Whether this node takes nothing new, since somebody wants to stop it."""
        return False

    async def drain_node(self, name: str) -> None:  # noqa: ARG002
        """Ask a node to hand over what it works on; it then has `is_draining`. Rejected where there are no others."""
        raise Rejected(
            "There is only one node, so no other one can take over its work.", hint="`holdfast shutdown` stops it."
        )

    async def forget_node(self, name: str) -> None:  # noqa: ARG002
        """Forget a node that has ended: what waits for it is free. Rejected where there are no others."""
        raise Rejected("There is one node only.")

    async def hand_over(self, *, keep: list[str]) -> None:
        """Give back all leases of this node but those of some streams, and inform the other nodes if there was one."""

    @abstractmethod
    async def save_partial(self, lease: Lease, partial: PartialText) -> None:
        """Overwrite the text so far. Fenced like any other work."""

    async def running_texts(self, known: dict[str, int]) -> list[TextPiece]:  # noqa: ARG002
        """The pieces of the texts so far of these sessions: the first, and those from a number on.

        Ordered by session and number. A session without a running turn has none, one that has said nothing yet has
        one without a number. Only where other nodes may generate the text.
        """
        return []

    @abstractmethod
    async def search(self, text: str, *, limit: int) -> list[Hit]:
        """Where a text occurs, newest first; at most a second behind the log."""

    @abstractmethod
    async def search_outputs(self, text: str, *, limit: int) -> list[OutputFound]:
        """The ended tasks in whose output a text occurs, newest first."""

    @property
    @abstractmethod
    def health(self) -> StoreHealth:
        """Whether it takes writes."""

    @property
    @abstractmethod
    def search_state(self) -> FollowerState:
        """How the search index is doing."""

    @property
    @abstractmethod
    def commit_stats(self) -> tuple[int, float]:
        """Transactions committed since the start, and the seconds that they took."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what was taken, and let go of the files."""
