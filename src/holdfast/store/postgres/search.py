"""Search: the trigrams of texts as numbers, in a table that follows the log with a position of its own.

A trigram is three characters of the folded text; their checksum is stored, and the text itself decides. One node
at a time fills the table, beside the appends: a search is at most a second behind. Losing the table loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import psycopg

from holdfast.domain.errors import HoldfastError
from holdfast.domain.events import Record, decode_readable, task_stream
from holdfast.domain.events.session import InputReceived, InputRevised, InputWithdrawn, ToolCallFinished
from holdfast.domain.events.system import SessionDeleted
from holdfast.domain.events.task import TaskFinished, TaskPruned
from holdfast.periodic import FollowerState
from holdfast.store.contract import PAGE_BYTES, Hit, OutputFound
from holdfast.store.postgres.connections import INDEXING, Database, connect
from holdfast.store.postgres.log_reads import checked
from holdfast.store.postgres.queries import statement
from holdfast.store.postgres.readers import ReadConnections
from holdfast.store.postgres.wire import BIGINT, INTEGER, TEXT, Array, ConnectionEnded, SqlStatement, Wire
from holdfast.store.search_texts import (
    OUTPUT_BYTES,
    SearchText,
    command_output,
    is_command_result,
    printed_output,
    searchable_text,
    snippet,
)
from holdfast.store.subscriptions import LogSubscription, Subscriptions
from holdfast.timings import StoreTimings

PAGE = 500
SCAN = 20_000
log = logging.getLogger(__name__)


def trigrams(folded: str) -> list[int]:
    """Return the trigrams of a folded text, each as a number of 32 bits."""
    found = {folded[place : place + 3] for place in range(len(folded) - 2)}
    return sorted({zlib.crc32(gram.encode("utf-8", "surrogatepass")) - 2**31 for gram in found})


class Search:
    """Answers searches, and fills the table until it is closed."""

    def __init__(
        self,
        database: Database,
        readers: ReadConnections,
        subscriptions: Subscriptions,
        outputs: Path,
        timings: StoreTimings,
    ) -> None:
        self._database = database
        self._readers = readers
        self._subscriptions = subscriptions
        self._outputs = outputs
        self._timings = timings
        self.state = FollowerState("the search index")
        self._task = asyncio.create_task(self._keep_indexing(), name="search index")

    async def search(self, text: str, limit: int) -> list[Hit]:
        """Where a text occurs in a conversation, newest first; letters match in either case."""
        rows = await self._find(text, limit, outputs=False)
        return [Hit(session, version, at, role, snippet(body, text)) for session, version, at, role, body, _ in rows]

    async def search_outputs(self, text: str, limit: int) -> list[OutputFound]:
        """In which task's output a text occurs, newest first."""
        rows = await self._find(text, limit, outputs=True)
        return [OutputFound(task, snippet(body, text)) for *_, body, task in rows]

    async def _find(self, text: str, limit: int, *, outputs: bool) -> list[tuple[Any, ...]]:
        if "\0" in text:  # there is none in the table
            return []
        folded = text.casefold()
        asked: dict[str, object] = {"folded": folded, "limit": limit, "outputs": outputs}
        if len(folded) < 3:
            return (await self._readers.query("find_by_scan", scan=SCAN, **asked)).rows
        numbers = Array(INTEGER, trigrams(folded))
        return (await self._readers.query("find_by_trigrams", trigrams=numbers, **asked)).rows

    async def close(self) -> None:
        """Stop following; what is missing is caught up at the next start."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    # --- filling --------------------------------------------------------------------------------

    async def _keep_indexing(self) -> NoReturn:
        """Follow the log; any error is tried again, since without this task nothing new could be found."""
        while True:
            wire: Wire | None = None
            try:
                wire = await connect(self._database)
                await self._follow(wire)
            except Exception as error:
                known = isinstance(error, ConnectionEnded | psycopg.Error | HoldfastError)
                log.warning("the search index is stuck", exc_info=None if known else error)
                self.state.restarts += not known
                self._note(f"it is stuck and tries again: {error}")
            finally:
                if wire is not None:
                    wire.close()
            await asyncio.sleep(self._timings.search_retry)

    async def _follow(self, wire: Wire) -> None:
        with self._subscriptions.follow(None) as changes:
            while not await self._is_indexer(wire):  # another node fills the table
                self._note("")
                await asyncio.sleep(self._timings.search_retry)
            while True:
                changes.drain()
                while await self._catch_up(wire):
                    pass
                self._note("")
                await self._wait(changes)

    async def _wait(self, changes: LogSubscription) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timings.sweep):
                await changes.wait()  # a commit is a hint
        await asyncio.sleep(self._timings.search_delay)

    async def _is_indexer(self, wire: Wire) -> bool:
        name = {"key": INDEXING, "node": self._database.schema}
        (answer,) = await wire.run([statement("announce_presence", name)], within=self._timings.answer)
        return bool(answer.rows[0][0])

    def _note(self, problem: str) -> None:
        if bool(problem) != bool(self.state.problem):
            self.state.since = time.time_ns() // 1_000_000
        self.state.problem = problem

    async def _catch_up(self, wire: Wire) -> bool:
        """Index a page; return whether there may be more."""
        position, last = await self._run(wire, [statement("indexed"), statement("last_seq")])
        after, end = int(position.rows[0][0]), int(last.rows[0][0])
        if after > end:  # the log was restored from a backup and is shorter than before
            await self._run(wire, [SqlStatement("TRUNCATE texts, inputs"), statement("set_indexed", {"seq": 0})])
            return True
        if after == end:
            return False
        asked: dict[str, object] = {"after": after, "limit": PAGE, "size": PAGE_BYTES}
        (answer,) = await self._run(wire, [statement("lines_to_index", asked)])
        if not answer.rows:
            return False
        page = checked(answer, PAGE, PAGE_BYTES, skipped=[])
        records, unreadable = decode_readable(page.lines)
        for corrupt in unreadable:
            log.warning("search skips an event: %s", corrupt)
        seq = int(answer.rows[-1][2])
        copies = {event.task: text for event in _ended(records) if (text := await self._copy(wire, event))}
        added = await asyncio.to_thread(self._added, records, copies)
        await self._run(wire, [SqlStatement("BEGIN"), *added])
        for record in records:
            if changes := await self._changes(wire, record):
                await self._run(wire, changes)
        await self._run(wire, [statement("set_indexed", {"seq": seq}), SqlStatement("COMMIT")])
        return page.more

    async def _run(self, wire: Wire, statements: Sequence[SqlStatement]) -> list[Any]:
        return await wire.run(statements, within=self._timings.answer)

    async def _copy(self, wire: Wire, ended: TaskFinished) -> str:
        """What a command printed on any node, within bounds: the beginning and the end of a long output."""
        if ended.output is not None or not ended.output_bytes:
            return ""
        asked: dict[str, object] = {"task": ended.task, "head": OUTPUT_BYTES, "tail": ended.output_bytes - OUTPUT_BYTES}
        (found,) = await self._run(wire, [statement("output_copy_to_index", asked)])
        return b"".join(bytes(data) for (data,) in found.rows).decode("utf-8", "replace")

    def _added(self, records: list[Record], copies: dict[str, str]) -> list[SqlStatement]:
        """What can be found in some records."""
        texts = [text for record in records if (text := searchable_text(record)) is not None]
        results = {record.event.task: record.event.output for record in records if is_command_result(record.event)}
        for record in records:
            if isinstance(record.event, TaskFinished):
                task = record.event.task
                printed = copies.get(task) or printed_output(record.event, self._outputs)
                output = command_output(record, record.event, printed, results.get(task, ""))
                texts += [] if output is None else [output]
        said = [
            (record.stream.partition("/")[2], record.event.input, record.seq)
            for record in records
            if isinstance(record.event, InputReceived)
        ]
        statements = [_add(text) for text in texts]
        if said:
            sessions, inputs, seqs = zip(*said, strict=True)
            columns = {"sessions": Array(TEXT, sessions), "inputs": Array(TEXT, inputs), "seqs": Array(BIGINT, seqs)}
            statements.append(statement("add_inputs", dict(columns)))
        return statements

    async def _changes(self, wire: Wire, record: Record) -> list[SqlStatement]:
        """What a record does to the texts before it."""
        match record.event:
            case ToolCallFinished() as event if is_command_result(event):
                where = {"session": task_stream(event.task), "output": event.output}
                return [statement("drop_repeated_output", where)]
            case SessionDeleted(session=gone):
                return [statement(step, {"session": gone}) for step in ("drop_texts", "drop_inputs")]
            case TaskPruned(task=gone):
                where = {"session": task_stream(gone), "task": gone}
                return [statement("drop_texts", where), statement("forget_task", where)]
            case InputRevised(input=input, text=str()) | InputWithdrawn(input=input):
                return await self._replaced(wire, record, input)
            case _:
                return []

    async def _replaced(self, wire: Wire, record: Record, input: str) -> list[SqlStatement]:
        """A message was edited or withdrawn: its old text is no longer found."""
        where: dict[str, object] = {"session": record.stream.partition("/")[2], "input": input}
        (found,) = await self._run(wire, [statement("find_input", where)])
        if not found.rows:
            return []
        ((seq, version),) = found.rows
        return [
            statement("drop_text", {"seq": seq}),
            statement("move_text", {"version": version, "seq": record.seq}),
            statement("move_input", where | {"seq": record.seq}),
        ]


def _ended(records: list[Record]) -> list[TaskFinished]:
    return [record.event for record in records if isinstance(record.event, TaskFinished)]


def _add(text: SearchText) -> SqlStatement:
    folded = text.text.casefold()
    return statement("add_text", text._asdict() | {"folded": folded, "trigrams": Array(INTEGER, trigrams(folded))})
