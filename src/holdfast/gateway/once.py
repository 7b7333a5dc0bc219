"""Answers to commands that the log does not keep: a retry gets the first answer instead of a second effect."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from holdfast.domain.errors import Conflict
from holdfast.store.contract import CommandKey

KEPT = 1_000
T = TypeVar("T")


class OncePerKey(Generic[T]):
    """The newest answers by the ids of their commands, while this gateway lives."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[str, asyncio.Future[T]]] = OrderedDict()

    async def once(self, key: CommandKey, act: Callable[[], Awaitable[T]]) -> T:
        """Act, or wait for what came of it when it was asked for before. What failed may be tried again."""
        known = self._answers.get(key.id)
        if known is not None:
            if known[0] != key.digest:
                raise Conflict("This command id belongs to another command.")
            return await asyncio.shield(known[1])
        future = asyncio.ensure_future(act())
        self._answers[key.id] = (key.digest, future)
        if len(self._answers) > KEPT:
            self._answers.popitem(last=False)
        try:
            return await asyncio.shield(future)  # whoever asked may be gone; what was begun is finished
        except Exception:
            self._answers.pop(key.id, None)
            raise
