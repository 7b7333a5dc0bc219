"""Descriptors of processes: they stand for just this process, also when its pid belongs to another one later."""

from __future__ import annotations

import asyncio
import os

from holdfast.processes.identity import Identity, process


async def exit_of(identity: Identity) -> None:
    """Wait until just this process has ended."""
    descriptor = open_pidfd(identity)
    if descriptor is None:
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def open_pidfd(identity: Identity) -> int | None:
    """A descriptor of a process; `None` if it is gone."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except OSError:
        return None
    found = process(identity.pid)
    if found is None or found.identity != identity:
        os.close(descriptor)
        return None
    return descriptor
