"""The process of an external agent under its keepers: what it says, line by line with offsets, and how it is reached.

It continues without a gateway. After a crash the next worker reads on from the offset in the log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from holdfast.domain.events.external_agent import DriverOutputRead
from holdfast.tasks.commands import CommandTasks

LINE_LIMIT = 32 << 20
"""A longer line is skipped: it is no message that anybody could show."""
STDERR_LINES = 5


class ExternalProcess:
    """One process."""

    def __init__(self, tasks: CommandTasks, task: str, *, pause: float) -> None:
        """`pause` is the time between two looks for more output."""
        self._tasks = tasks
        self.task = task
        self._pause = pause

    async def is_running(self) -> bool:
        """Whether something can be sent to it."""
        row = await self._tasks.task_log.find(self.task)
        return row is not None and row.state == "running" and self.task in self._tasks.supervisor.live()

    async def lines(self, offset: int, *, unended: bool = False) -> AsyncIterator[tuple[bytes, int]]:
        """Yield each whole line with the offset behind it, until the process has ended and all was read; `unended`: at
        last also what has no newline behind it.
        """
        rest, size = bytearray(), 0
        async for window in self._tasks.supervisor.follow(self.task, offset, pause=self._pause):
            if window.dropped:  # a part of a line is gone, and so the line
                offset, size = offset + size + window.dropped, 0
                rest.clear()
            for index, piece in enumerate(window.data.split(b"\n")):
                if index:
                    offset += size + 1
                    yield bytes(rest) if size <= LINE_LIMIT else b"", offset
                    size = 0
                    rest.clear()
                size += len(piece)
                if size <= LINE_LIMIT:
                    rest += piece
        if unended and 0 < size <= LINE_LIMIT:
            yield bytes(rest), offset + size

    async def give_input(self, text: bytes) -> None:
        """Write all of its standard input, as far as that is not done, and close it. `Conflict` if it was closed."""
        sent = self._tasks.supervisor.written(self.task)
        rest = text.removeprefix(sent) if text.startswith(sent) else b"\n\n" + text
        if rest:
            await self._tasks.supervisor.write(self.task, rest)
        self._tasks.supervisor.close_stdin(self.task)

    @property
    def size(self) -> int:
        """How much it has written so far."""
        return self._tasks.supervisor.output(self.task).size()

    def discard(self, read: DriverOutputRead | None) -> None:
        """Give the disk back what was read by the log; never what was only read."""
        if read is not None and read.task == self.task:
            self._tasks.supervisor.discard(self.task, before=read.offset)

    def last_words(self) -> str:
        """What it wrote to its standard error last."""
        window = self._tasks.supervisor.output(self.task, "stderr").tail(STDERR_LINES, 4096)
        return window.data.decode("utf-8", "replace").strip()
