"""What nodes ask each other, and the outputs that they keep for each other. Only where there can be several nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable

RequestHandler = Callable[[bytes], Awaitable[bytes]]
"""Carries out a request of another node and returns the answer; the other node gets what it raises, too."""


class NodeExchange(ABC):
    """Requests between nodes, and copies of outputs. A request is carried out once or not at all."""

    @abstractmethod
    def answer_with(self, answer: RequestHandler) -> None:
        """Carry out the requests of other nodes from now on."""

    @abstractmethod
    async def ask(self, node: str, request: bytes, *, within: float) -> bytes:
        """Return what a node answers, or raise what it raised.

        Unavailable if there is no answer within some seconds; it says whether the request may have been carried out.
        """

    @abstractmethod
    async def agree(self, name: str, number: int) -> int:
        """Return the number that all nodes have under a name: that of the node that was the first to give one."""

    @abstractmethod
    async def note_looks(self, streams: list[str]) -> None:
        """Note that somebody looks at these streams now."""

    @abstractmethod
    async def look_age(self, stream: str) -> int | None:
        """Return how many milliseconds ago somebody looked at a stream on any node; None if that is not known."""

    @abstractmethod
    async def copy_output(self, task: str, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Keep pieces of an output, each with its offset. What is between them was dropped.

        They are durable with the next commit of an append.
        """

    @abstractmethod
    async def read_copy(self, task: str, offset: int) -> tuple[int, bytes] | None:
        """Return the piece that has an offset, or the next one behind it; None if there is none."""

    @abstractmethod
    async def drop_copies(self, tasks: list[str]) -> None:
        """Delete the outputs of some tasks, and of those that were pruned."""
