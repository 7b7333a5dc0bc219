"""A gateway that is killed when a file that a tool has written is about to get its name.

cut_gateway.py HOME PORT OPTIONS
"""

from __future__ import annotations

import os
import signal
import sys

from tests.e2e import serve


def watch(event: str, arguments: tuple[object, ...]) -> None:
    """Python tells of every rename before it happens."""
    if event == "os.rename" and str(arguments[0]).startswith(".holdfast-"):
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.addaudithook(watch)
    sys.exit(serve.main())
