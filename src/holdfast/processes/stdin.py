"""The standard input of a command: a FIFO that its keepers hold open, so that it stays open when a writer dies."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from pathlib import Path

from holdfast.domain.errors import Conflict, Rejected
from holdfast.processes.identity import send
from holdfast.processes.spool import Claim, Spool

PAUSE_SECONDS = 0.01


async def write(spool: Spool, data: bytes, *, within: float) -> int:
    """Write to the input; return how many bytes were taken before the time was over."""
    file = _open(spool)
    deadline = asyncio.get_running_loop().time() + within
    done = 0
    try:
        while done < len(data):
            try:
                done += os.write(file, data[done:])
            except BlockingIOError:
                if asyncio.get_running_loop().time() > deadline:
                    break
                await asyncio.sleep(PAUSE_SECONDS)
    except BrokenPipeError:
        raise Conflict(f"The command {spool.id} no longer reads its input.") from None
    finally:
        os.close(file)
    return done


def close(spool: Spool, claim: Claim) -> None:
    """Close the input: delete the FIFO, so that nothing more is written, then have both keepers close it."""
    if spool.stdin.exists():
        spool.stdin.rename(_closed(spool))
    elif not _closed(spool).exists():
        raise Rejected(f"The command {spool.id} has no input.")
    for keeper in claim.keepers:
        send(keeper, signal.SIGUSR1)


def _open(spool: Spool) -> int:
    try:
        file = os.open(spool.stdin, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        if not stat.S_ISFIFO(os.fstat(file).st_mode):
            os.close(file)
            raise Conflict(f"The input of {spool.id} was replaced by something else.")
        return file
    except FileNotFoundError:
        if _closed(spool).exists():
            raise Conflict(f"The input of {spool.id} was closed.") from None
        raise Rejected(f"The command {spool.id} has no input.") from None
    except OSError:
        raise Conflict(f"Nothing reads the input of {spool.id} any longer.") from None


def _closed(spool: Spool) -> Path:
    return spool.path / "stdin.closed"
