"""Commands that run on other nodes: their output, state and input, requested from the node where they run.

Nobody else knows what became of a command. So when its node is away, its state is unknown, with since when, and it is
never called lost for that. What it printed is in the database from its end on (`copies.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from holdfast.clock import Clock
from holdfast.domain.errors import HoldfastError, NodeAway, Rejected, Unavailable
from holdfast.domain.events.task import TaskStarted
from holdfast.domain.text import duration
from holdfast.processes.spool import Window
from holdfast.schemas.tasks import TaskView
from holdfast.store.contract import Appended, CommandKey, OutputFound, Store
from holdfast.store.rows import TaskRow

ANSWER_SECONDS = 10.0
LOOK_SECONDS = 2.0
"""For lists: what another node does not say in this time is left out."""
AGAIN_SECONDS = 1.0
LONGEST_READ_SECONDS = 10.0
"""How long a node waits for output before it answers that there is none."""


class ReadOutput(msgspec.Struct, frozen=True, tag=True):
    """Read a piece of an output; wait a while for it if there is nothing after the offset."""

    task: str
    offset: int
    limit: int
    wait: float


class ReadTail(msgspec.Struct, frozen=True, tag=True):
    """Read the last lines of an output."""

    task: str
    lines: int
    limit: int


class WriteInput(msgspec.Struct, frozen=True, tag=True):
    """Write to the input of a command."""

    task: str
    data: bytes
    close: bool


class ShowTasks(msgspec.Struct, frozen=True, tag=True):
    """Show tasks with their activity."""

    tasks: list[str]


class SearchRunning(msgspec.Struct, frozen=True, tag=True):
    """Search the outputs of the running commands."""

    text: str


class BeginThere(msgspec.Struct, frozen=True, tag=True):
    """Begin the command of a tool call, unless it has begun: its session has moved, and its call is waited for."""

    task: str


class StartThere(msgspec.Struct, frozen=True, tag=True):
    """Start a command, under the id of the command of a client, so that it is started once."""

    started: TaskStarted
    key: CommandKey


TaskRequest = ReadOutput | ReadTail | WriteInput | ShowTasks | SearchRunning | BeginThere | StartThere


@dataclass(frozen=True, slots=True)
class AwayNode:
    """A node that is not there."""

    node: str
    since: int
    """Its last sign of life; 0 if none is known."""

    def words(self, now: int) -> str:
        """Say which node is away and for how long."""
        silent = f"has been silent for {duration(max(0, now - self.since))}" if self.since else "is not known here"
        return f"node {self.node}, where it runs, {silent}"


class RemoteTasks:
    """Asks other nodes about their commands. Nothing here is used where there is only one node."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def names(self) -> set[str]:
        """Return the names of all nodes, also of those that are away; none where there is only one node ever."""
        return set() if self._store.exchange is None else {row.name for row in await self._store.nodes()}

    async def away(self, row: TaskRow) -> AwayNode | None:
        """Return whether the node of a running command is away."""
        if row.kind != "process" or row.state != "running" or row.node == self._store.node:
            return None
        return (await self._away({row.node})).get(row.node)

    async def _away(self, nodes: set[str]) -> dict[str, AwayNode]:
        found = {node: AwayNode(node, 0) for node in nodes}
        for life in reversed(await self._store.nodes()):  # the newest life of a name counts
            if life.name in nodes:
                found[life.name] = AwayNode(life.name, life.heard_at or life.ended_at or 0)
                if life.ended_at is None:
                    found.pop(life.name)
        return found

    async def read(self, row: TaskRow, *, offset: int, limit: int, seconds: float) -> Window:
        """Return a piece of the output of a command on another node. NodeAway if that is not there."""
        wait = min(seconds, LONGEST_READ_SECONDS)
        answer = await self._ask(row, ReadOutput(row.id, offset, limit, wait), within=wait + ANSWER_SECONDS)
        return msgspec.msgpack.decode(answer, type=Window)

    async def tail(self, row: TaskRow, *, lines: int, limit: int) -> Window:
        """Return the last lines of the output of a command on another node."""
        answer = await self._ask(row, ReadTail(row.id, lines, limit), within=ANSWER_SECONDS)
        return msgspec.msgpack.decode(answer, type=Window)

    async def write(self, row: TaskRow, data: bytes, *, close: bool) -> int:
        """Write to the input of a command on another node, once; return how many bytes it took in time."""
        answer = await self._ask(row, WriteInput(row.id, data, close), within=ANSWER_SECONDS)
        return msgspec.msgpack.decode(answer, type=int)

    async def begin(self, row: TaskRow) -> None:
        """Have a command begin on its node, unless it has begun; return when that node has received the request."""
        while True:
            try:
                await self._ask(row, BeginThere(row.id), within=ANSWER_SECONDS)
                return
            except Unavailable:  # asking twice does no harm
                await asyncio.sleep(AGAIN_SECONDS)

    async def start(
        self, node: str, started: TaskStarted, key: CommandKey, *, env: Mapping[str, str] | None
    ) -> Appended:
        """Have another node start a command, once; return what it has written."""
        if env is not None:  # it is never stored, and requests are rows
            raise Rejected("A command on another node has the environment of the gateway there: leave `env` out.")
        if (known := await self._store.find_command(key)) is not None:
            return known
        assert self._store.exchange is not None
        request = msgspec.msgpack.encode(StartThere(started, key))
        try:
            await self._store.exchange.ask(node, request, within=ANSWER_SECONDS)
        except Unavailable:
            if await self._store.find_command(key) is None:
                raise
        written = await self._store.find_command(key)
        if written is None:
            raise Unavailable(f"Node {node} has not started it.", hint="Try it again.")
        return replace(written, duplicate=False)

    async def _ask(self, row: TaskRow, request: TaskRequest, *, within: float) -> bytes:
        away = (await self._away({row.node})).get(row.node)
        if away is not None or self._store.exchange is None:
            away = away or AwayNode(row.node, 0)
            words = away.words(self._clock.now())
            raise NodeAway(f"Task {row.id}: {words}.", hint="It answers when that node is back.")
        return await self._store.exchange.ask(row.node, msgspec.msgpack.encode(request), within=within)

    async def views(self, rows: list[TaskRow]) -> tuple[dict[str, TaskView], dict[str, AwayNode]]:
        """Return running commands as their nodes see them, and by node which nodes are away."""
        nodes = {row.node for row in rows}
        away = await self._away(nodes)
        asked = [(node, ShowTasks([row.id for row in rows if row.node == node])) for node in nodes - away.keys()]
        answers = await asyncio.gather(*(self._look(node, request) for node, request in asked))
        views = [view for answer in answers if answer for view in msgspec.msgpack.decode(answer, type=list[TaskView])]
        return {view.id: view for view in views}, away

    async def search(self, text: str) -> list[OutputFound]:
        """Search the outputs of the commands that run on other nodes."""
        if self._store.exchange is None:
            return []
        nodes = {row.name for row in await self._store.nodes() if row.ended_at is None} - {self._store.node}
        answers = await asyncio.gather(*(self._look(node, SearchRunning(text)) for node in nodes))
        return [hit for found in answers if found for hit in msgspec.msgpack.decode(found, type=list[OutputFound])]

    async def _look(self, node: str, request: TaskRequest) -> bytes:
        """Return the answer of a node; nothing if it has none in time."""
        assert self._store.exchange is not None
        try:
            return await self._store.exchange.ask(node, msgspec.msgpack.encode(request), within=LOOK_SECONDS)
        except HoldfastError:
            return b""
