"""File work in a thread that can be asked to stop, and that is waited for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from holdfast.network_mounts import NetworkMounts

T = TypeVar("T")
PATIENCE_SECONDS = 10.0


async def run_in_thread(mounts: NetworkMounts, work: Callable[[threading.Event], T]) -> T:
    """Run a function in a thread. When cancelled, ask it to stop and wait, so that it does nothing afterwards."""
    stop = threading.Event()
    running = asyncio.ensure_future(mounts.run_in_thread(lambda: work(stop)))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        done, _ = await asyncio.wait({running}, timeout=PATIENCE_SECONDS)
        for ended in done:
            ended.exception()  # retrieved, so that asyncio does not warn: the call was cancelled anyway
        raise
