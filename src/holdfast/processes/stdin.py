"""The standard input of a command, which stays open when a writer dies.

It is a FIFO that its keepers hold open; or, for `stdin="file"`, a file that they move to it, and that remains.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from contextlib import suppress
from pathlib import Path

from holdfast.domain.errors import Conflict, Rejected, Unavailable
from holdfast.processes.identity import send
from holdfast.processes.spool import Claim, Spool, open_regular

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
    except OSError as error:
        raise Unavailable(f"The input of {spool.id} cannot be written: {error.strerror}.") from error
    finally:
        os.close(file)
    return done


def written(spool: Spool) -> bytes:
    """Return all that was written to an input of the kind `file`."""
    for path in (spool.stdin, _closed(spool), spool.stdin):  # it may be closed in between
        with suppress(FileNotFoundError):
            file = open_regular(path, os.O_RDONLY)
            with os.fdopen(file, "rb") as opened:
                return opened.read()
    raise Rejected(f"The command {spool.id} has no input.")


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
        file = os.open(spool.stdin, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOFOLLOW)
        if stat.S_IFMT(os.fstat(file).st_mode) not in (stat.S_IFIFO, stat.S_IFREG):
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
