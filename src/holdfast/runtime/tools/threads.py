"""Work on files beside the loop: a thread that can be told to stop, and that is waited for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE_SECONDS = 10.0


async def run_in_thread(work: Callable[[threading.Event], T]) -> T:
    """Run it in a thread. When cut, it is told to stop and waited for, so that nothing happens behind our back."""
    stop = threading.Event()
    running = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        done, _ = await asyncio.wait({running}, timeout=PATIENCE_SECONDS)
        for ended in done:
            ended.exception()  # looked at, so that nobody complains: the call was cut anyway
        raise
