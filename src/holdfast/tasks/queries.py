"""Lists tasks of every kind, reads their output, waits for them and stops them.

Not here: running commands (`commands.py`), writing events (`log.py`), pruning (`prune.py`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress

from holdfast.clock import Clock
from holdfast.domain.commands import StopTurn
from holdfast.domain.errors import Conflict, Corrupt, Gone, NodeAway, NotFound, Rejected
from holdfast.domain.events import session_stream, task_stream
from holdfast.domain.events.actor import Actor
from holdfast.domain.task import INLINE, Owner, task_of_left
from holdfast.processes.activity import Activity, NotYet
from holdfast.processes.spool import OutputFile, Window
from holdfast.profiles import Profiles
from holdfast.schemas.tasks import OutputGap, OutputMatch, OutputMatches, TaskView
from holdfast.sessions import Caller, Sessions
from holdfast.store.contract import Appended, CommandKey, OutputFound, Store
from holdfast.store.reads import SessionCursor, TaskFilter
from holdfast.store.rows import TaskRow
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.copies import read_copy
from holdfast.tasks.output_search import OutputSearch
from holdfast.tasks.plain_text import plain
from holdfast.tasks.remote_tasks import RemoteTasks
from holdfast.tasks.sandbox import explain_failure
from holdfast.tasks.views import placed, view
from holdfast.timings import USUAL, TaskTimings

FOLLOW_SECONDS = 0.1
NODE_LOOK_SECONDS = 10.0
AWAY_LOOK_SECONDS = 1.0
BEGIN_SECONDS = 10.0
SEARCHED_BYTES = 1 << 20
SEARCH_STEP = 1 << 18
"""Bytes that are searched at once. Python does nothing else meanwhile, so this takes some milliseconds at most."""
SEARCH_LIMIT = 1 << 26
"""Bytes that one request searches at most."""
HALF = INLINE // 2
"""How many bytes of the head, and of the tail, of an output a model sees."""


class TaskQueries:
    """Queries about tasks of every kind."""

    def __init__(
        self,
        store: Store,
        *,
        tasks: CommandTasks,
        sessions: Sessions,
        clock: Clock,
        profiles: Profiles,
        timings: TaskTimings = USUAL.tasks,
    ) -> None:
        self._sample_age = timings.sample_age
        self._store = store
        self._tasks = tasks
        self._sessions = sessions
        self._clock = clock
        self._profiles = profiles
        self._remote = RemoteTasks(store, clock)
        self.start_there = self._remote.start
        self._samples: dict[str, Activity | NotYet] = {}
        self._sampled_at: float | None = None
        self._sampling = asyncio.Lock()

    # --- lists --------------------------------------------------------------------------------

    async def find(self, prefix: str) -> TaskRow:
        """Return the task with this id or unique prefix."""
        return await self._store.task(prefix)

    async def running(self, *, foreground: bool = False, within: str = "", here: bool = False) -> list[TaskView]:
        """Return the running tasks, oldest first; with `within` only those of that session and its descendants.

        With `here`, only those of this node.
        """
        rows = [row for row in await self._store.running_tasks() if foreground or not row.foreground]
        rows = [row for row in rows if not here or self._tasks.is_here(row)]
        return await self.views([row for row in rows if not within or await self.belongs_to(row, within)])

    async def belongs_to(self, row: TaskRow, session: str) -> bool:
        """Return whether a session, or one that descends from it, started the task or works on it."""
        for id in {row.session, row.worker} - {""}:
            if id == session:
                return True
            with suppress(NotFound, Gone):
                if session in (await self._store.session(id)).ancestors:
                    return True
        return False

    async def page(self, wanted: TaskFilter, *, before: SessionCursor, limit: int) -> list[TaskView]:
        """Return a page of tasks, newest first."""
        return await self.views(await self._store.tasks(wanted, before=before, limit=limit))

    async def view(self, row: TaskRow) -> TaskView:
        """Return a task with its current activity."""
        return (await self.views([row]))[0]

    async def views(self, rows: list[TaskRow]) -> list[TaskView]:
        """Return tasks with their current activity."""
        live = [row for row in rows if row.state == "running" and row.kind == "process"]
        elsewhere = [row for row in live if not self._tasks.is_here(row)]
        remote, away = await self._remote.views(elsewhere) if elsewhere else ({}, {})
        several = len(await self._remote.names()) > 1
        alive = len(live) > len(elsewhere)
        activities = await self._activities() if alive else {}
        sizes = await asyncio.to_thread(self._sizes, rows) if alive else {}
        now = self._clock.now()
        workers = [row.worker for row in rows if row.kind == "card"]
        cards = await self._store.cards_of_sessions(workers) if workers else {}
        shown = []
        for row in rows:
            task, running = row.id, row.state == "running"
            if task in remote:
                shown.append(remote[task])
                continue
            owner = await self._owner(row.session) if running and row.session else None
            activity = activities.get(task) if running else None
            card = cards.get(row.worker) if row.kind == "card" else None
            one = view(row, now=now, output_bytes=sizes.get(task), activity=activity, owner=owner, card=card)
            shown.append(placed(one, row, away.get(row.node), several=several, now=now))
        return shown

    async def _owner(self, session: str) -> Owner:
        try:
            row = await self._store.session(session)
        except Rejected:
            return Owner(gone=True)
        max_age_ms = self._profiles.reset_rules(row.profile, row.reset_policy).process_max_age_ms
        return Owner(archived=row.archived, chapter_at=row.chapter_at, max_age_ms=max_age_ms)

    def _sizes(self, rows: list[TaskRow]) -> dict[str, int]:
        """Return the size of the output of each running command."""
        running = [
            row.id for row in rows if row.state == "running" and row.kind == "process" and self._tasks.is_here(row)
        ]
        return {task: self._tasks.supervisor.output(task).size() for task in running}

    async def _activities(self) -> dict[str, Activity | NotYet]:
        """Return the activity of all commands, sampled at most every `SAMPLE_SECONDS`."""
        async with self._sampling:
            loop = asyncio.get_running_loop()
            age = math.inf if self._sampled_at is None else loop.time() - self._sampled_at
            if age > self._sample_age:
                self._samples = await self._tasks.supervisor.activities()
                self._sampled_at = loop.time()
            return self._samples

    # --- output --------------------------------------------------------------------------------

    async def window(self, row: TaskRow, *, offset: int, limit: int) -> Window:
        """Return a piece of the raw output."""
        if row.kind == "process" and self._tasks.is_here(row):
            found = await asyncio.to_thread(lambda: self._readable(row).read(offset, limit))
            if found.size or not _has_output(row):
                return found
        elif row.kind == "process" and row.state == "running":
            return await self._remote.read(row, offset=offset, limit=limit, seconds=0)
        if row.kind == "process" and (copy := await self._copy(row, offset=offset, limit=limit)) is not None:
            return copy
        kept = await self._kept(row)
        return Window(offset, 0, kept[offset : offset + limit], len(kept))

    async def _copy(self, row: TaskRow, *, offset: int, limit: int) -> Window | None:
        """Return a piece of the output of an ended command from the database; None if it is not there."""
        exchange = self._store.exchange
        return None if exchange is None else await read_copy(exchange, row, offset=offset, limit=limit)

    async def shown_state(self, row: TaskRow) -> str:
        """Return the state of a task; `unknown` while the node of a running command is away."""
        return row.state if self._tasks.is_here(row) or await self._remote.away(row) is None else "unknown"

    async def wait_window(self, row: TaskRow, *, offset: int, limit: int, seconds: float) -> Window:
        """Return a piece of the raw output; wait a while if there is nothing after the offset yet."""
        loop = asyncio.get_running_loop()
        patience = loop.time() + seconds
        while True:
            window, pause = await self._look(row, offset, limit, seconds=patience - loop.time() if seconds else 0)
            if window.next > offset or row.state != "running" or loop.time() >= patience:
                return window
            await asyncio.sleep(pause)
            row = await self._store.task(row.id)

    async def _look(self, row: TaskRow, offset: int, limit: int, *, seconds: float) -> tuple[Window, float]:
        """Return a piece of the raw output, and how long to wait before the next look."""
        if row.kind != "process" or row.state != "running" or self._tasks.is_here(row) or not seconds:
            return await self.window(row, offset=offset, limit=limit), FOLLOW_SECONDS
        try:  # the other node waits
            return await self._remote.read(row, offset=offset, limit=limit, seconds=max(0.0, seconds)), 0
        except NodeAway:
            return Window(offset, 0, b"", offset), min(AWAY_LOOK_SECONDS, max(0.0, seconds))

    async def search_output(
        self, row: TaskRow, search: OutputSearch, *, limit: int, cancelled: Callable[[], Awaitable[bool]]
    ) -> OutputMatches:
        """Search the raw output of one task, at most `SEARCH_LIMIT` bytes of it, as long as it is not cancelled."""
        found: list[OutputMatch] = []
        dropped, ended = None, row.state != "running"
        start, at, size, last = search.next, search.read_from, 0, False
        while len(found) < limit and at < start + SEARCH_LIMIT and not last and not await cancelled():
            window = await self.window(row, offset=at, limit=SEARCH_STEP)
            at, size, last = window.next, window.size, window.next >= window.size
            if window.dropped and at > start:
                dropped = OutputGap(window.offset, window.offset + window.dropped)
            found += await asyncio.to_thread(
                search.feed, window.data, at=at - len(window.data), last=last, ended=ended, limit=limit - len(found)
            )
        return OutputMatches(
            matches=found,
            next=search.next,
            more=not last or len(found) >= limit,
            size=size,
            state=(await self._store.task(row.id)).state,
            dropped=dropped,
        )

    async def search(self, text: str, *, limit: int) -> list[OutputFound]:
        """Search outputs (of running commands only the last bytes) and the answers of agent tasks."""
        found = [*await self.search_running(text), *await self._remote.search(text)]
        indexed = await self._store.search_outputs(text, limit=limit)
        said = await self._agent_answers(text, limit=limit)
        every = {one.task: one for one in reversed([*found, *indexed, *said])}
        return list(reversed(every.values()))[:limit]

    async def search_running(self, text: str) -> list[OutputFound]:
        """Search the last bytes of the outputs of commands that run on this node."""
        rows = [row for row in await self._store.running_tasks() if row.kind == "process" and self._tasks.is_here(row)]
        return await asyncio.to_thread(self._search_running, [row.id for row in rows][::-1], text.casefold())

    async def _agent_answers(self, text: str, *, limit: int) -> list[OutputFound]:
        """Return the agent tasks with a text in their answers."""
        hits = [hit for hit in await self._store.search(text, limit=limit) if hit.role in ("agent", "partial")]
        by_session = await self._store.tasks_of_workers([hit.session for hit in hits])
        return [OutputFound(by_session[hit.session], hit.snippet) for hit in hits if hit.session in by_session]

    def _search_running(self, tasks: list[str], folded: str) -> list[OutputFound]:
        found = []
        for task in tasks:
            size = (output := self._tasks.supervisor.output(task)).size()
            clean = plain(output.read(max(0, size - SEARCHED_BYTES), SEARCHED_BYTES).data)
            if (at := clean.casefold().find(folded)) >= 0:
                found.append(OutputFound(task, " ".join(clean[max(0, at - 60) : at + 120].split())))
        return found

    async def tail(self, row: TaskRow, *, lines: int, limit: int) -> Window:
        """Return the last lines of the output."""
        if row.kind == "process" and self._tasks.is_here(row):
            found = await asyncio.to_thread(lambda: self._readable(row).tail(lines, limit))
            if found.size or not _has_output(row):
                return found
        elif row.kind == "process" and row.state == "running":
            return await self._remote.tail(row, lines=lines, limit=limit)
        start = max(0, row.output_bytes - limit)
        copy = await self._copy(row, offset=start, limit=limit) if row.kind == "process" else None
        kept = copy.data if copy is not None else await self._kept(row)
        size = row.output_bytes if copy is not None else len(kept)
        last = b"".join(kept.splitlines(keepends=True)[-lines:])[-limit:]
        return Window(size - len(last), 0, last, size)

    def _readable(self, row: TaskRow) -> OutputFile:
        """Return the output file. `Corrupt` if a command has replaced it."""
        output = self._tasks.supervisor.output(row.id)
        if output.problem:
            raise Corrupt(f"The output of task {row.id} is lost: {output.problem}.")
        return output

    async def _kept(self, row: TaskRow) -> bytes:
        """Return the output from the log; for an agent, its last answer."""
        if row.kind != "process":
            return b"" if row.state == "running" else row.summary.encode()
        if not _has_output(row):
            return b""
        output = await self._tasks.task_log.output(row)
        if output is None and not self._tasks.is_here(row):
            raise Gone(f"The output of task {row.id} is on node {row.node} and has no copy here.")
        if output is None:
            raise Gone(f"The output of task {row.id} no longer exists: its session or its file was deleted.")
        return output

    async def excerpt(self, row: TaskRow, *, offset: int | None = None, lines: int = 0) -> str:
        """Return the output for a model: shortened, without control characters, with the total size."""
        try:
            return await self._text(row, offset=offset, lines=lines)
        except (Corrupt, Gone) as error:
            return f"[{error.message}]"

    async def _text(self, row: TaskRow, *, offset: int | None, lines: int) -> str:
        if lines:
            found = await self.tail(row, lines=lines, limit=2 * HALF)
            return f"{self._shown(found)}[{found.size} bytes in all]"
        head = await self.window(row, offset=offset or 0, limit=HALF if offset is None else 2 * HALF)
        if offset is not None or head.next >= head.size:
            more = f"\n[bytes {head.next - len(head.data)} to {head.next} of {head.size}]" if offset is not None else ""
            return self._marked(head) + more
        tail = await self.window(row, offset=max(head.next, head.size - HALF), limit=HALF)
        left = head.size - len(head.data) - len(tail.data)
        middle = f"\n[… {left} of {head.size} bytes left out …]\n" if left else ""
        return self._shown(head) + middle + self._shown(tail)

    def _marked(self, window: Window) -> str:
        mark = f"[bytes {window.offset} to {window.offset + window.dropped} were dropped]\n" if window.dropped else ""
        return mark + self._shown(window)

    def _shown(self, window: Window) -> str:
        """Return a text without secrets, and without a part of a secret at a cut."""
        return self._profiles.mask(plain(window.data))

    async def result_text(self, row: TaskRow) -> str:
        """Return the result and the output of a task for a model."""
        text = await self.excerpt(row)
        lead = text if text.endswith("\n") or not text else text + "\n"
        left, hint = await self._left_by(row), await self._sandbox_hint(row, text)
        return f"{lead}[{row.state}: {row.reason}]{left}{hint}"

    async def _left_by(self, row: TaskRow) -> str:
        left = await self._tasks.task_log.find(task_of_left(row.id))
        if left is None or left.state != "running":
            return ""
        return f"\n[It left processes behind, which keep running as task {left.id}, pid {left.pid}.]"

    async def _sandbox_hint(self, row: TaskRow, text: str) -> str:
        if row.state != "failed" or row.kind != "process":
            return ""
        spec = (await self._tasks.task_log.started(row.id)).sandbox
        hint = "" if spec is None else explain_failure(text, spec)
        return f"\n{hint}" if hint else ""

    # --- input, waiting and stopping ---------------------------------------------------------------------

    async def write(self, row: TaskRow, data: bytes, *, close: bool = False) -> int:
        """Write to the input of a command, on whichever node it runs; return how many bytes it took in time."""
        if row.kind == "process" and row.state == "running" and not self._tasks.is_here(row):
            return await self._remote.write(row, data, close=close)
        taken = await self._tasks.supervisor.write(row.id, data) if data else 0
        if close:
            self._tasks.supervisor.close_stdin(row.id)
        return taken

    async def wait_ended(self, task: str) -> TaskRow:
        """Wait until a task has ended; return it."""
        row = await self._store.task(task)
        if row.kind == "process":
            return await self._tasks.wait_ended(row.id)
        with self._store.subscribe(task_stream(row.id)) as changes:
            while (row := await self._store.task(task)).state == "running":
                await changes.wait()
                changes.drain()
        return row

    async def begin_elsewhere(self, row: TaskRow) -> None:
        """Have a command begin on another node, unless it has begun."""
        await self._remote.begin(row)

    async def wait_node_lost(self, node: str) -> None:
        """Wait until a node has ended or was lost."""
        with self._store.subscribe(None, lambda _, kind: kind == "NodeEnded") as changes:
            while await self._store.is_alive(node):
                with suppress(TimeoutError):
                    async with asyncio.timeout(NODE_LOOK_SECONDS):
                        await changes.wait()
                changes.drain()

    async def stop(
        self, row: TaskRow, *, by: Actor, reason: str, force: bool, command: CommandKey | None = None
    ) -> Appended:
        """Stop a task. For an agent this stops its turn; its own background tasks keep running."""
        if row.kind == "process":
            return await self._tasks.request_stop(row, by=by, reason=reason, force=force, command=command)
        if row.state != "running":
            raise Conflict(f"Task {row.id} has already ended: {row.state}, {row.reason}.")
        if command is None:  # an agent stops it; a repeated stop is the same command
            command = CommandKey(f"stop-{row.id}-{row.version}", row.id)
        await self._begun(row.worker)
        return await self._sessions.execute(row.worker, StopTurn(), Caller(command, by))

    async def _begun(self, session: str) -> None:
        """Wait until the turn of an agent has started: before that there is nothing to stop."""
        with suppress(TimeoutError), self._store.subscribe(session_stream(session)) as changes:
            async with asyncio.timeout(BEGIN_SECONDS):
                while (state := await self._sessions.get(session)).turn is None and state.queue:
                    await changes.wait()
                    changes.drain()


def _has_output(row: TaskRow) -> bool:
    """Return whether an ended command had output: then the log has it if the file no longer exists."""
    return row.state != "running" and row.output_bytes > 0
