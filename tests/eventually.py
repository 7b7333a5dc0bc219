"""Waiting for a condition instead of sleeping for a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
LONGEST_PAUSE = 0.1
PATIENCE = 300.0
"""Seconds for what must happen: only what never happens takes so long, however busy the machine is."""


async def eventually(look: Callable[[], Awaitable[T]], *, within: float = PATIENCE) -> T:
    """Look more and more seldom until the answer is truthy; what was seen last says why it never was."""
    pause = 0.01
    deadline = asyncio.get_running_loop().time() + within
    while not (seen := await look()):
        if asyncio.get_running_loop().time() > deadline:
            raise TimeoutError(f"not within {within} s; last seen: {seen!r}")
        await asyncio.sleep(pause)
        pause = min(pause * 1.25, LONGEST_PAUSE)
    return seen
