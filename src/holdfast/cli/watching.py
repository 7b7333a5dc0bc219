"""Watching the board: told when anything on it changes, also across a restart of the gateway.

A thread follows the whole log from now on and says no more than that something happened; whoever watches looks again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from holdfast.cli.errors import UNREACHABLE, CliError, Lost, NotRunning
from holdfast.cli.follow import FIRST_PAUSE, LONGEST_PAUSE
from holdfast.cli.gateway import Gateway

OURS = (b'"stream":"card/', b'"stream":"board/')
HEAD = 120
"""Where that stands in a record."""


class Changes:
    """A context manager; `wait` returns when a card or a board changed, when the time is over, or when it is back."""

    def __init__(self, gateway: Gateway, *, patience: float) -> None:
        self._gateway = gateway
        self._patience = patience
        self._happened = threading.Event()
        self._closed = threading.Event()
        self._error: CliError | None = None
        self._after = 0
        self.away = False
        """Whether the gateway cannot be reached."""

    def __enter__(self) -> Changes:
        self._after = int(self._gateway.get("/v1/status")["seq"])
        threading.Thread(target=self._follow, name="board", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()

    def wait(self, seconds: float) -> bool:
        """Whether something happened. Raises what ended the following."""
        happened = self._happened.wait(seconds)
        self._happened.clear()
        if self._error is not None:
            raise self._error
        return happened

    def _follow(self) -> None:
        away_since: float | None = None
        pause = FIRST_PAUSE
        while not self._closed.is_set():
            try:
                for _ in self._read():
                    if away_since is not None:
                        away_since, pause, self.away = None, FIRST_PAUSE, False
                        self._happened.set()
            except (Lost, NotRunning):
                clock = time.monotonic()
                away_since, self.away = away_since or clock, True
                if clock - away_since >= self._patience:
                    self._end(_gave_up(self._patience))
                    return
                self._happened.set()
                self._closed.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            except CliError as error:
                self._end(error)
                return

    def _read(self) -> Iterator[bytes]:
        """One connection, line by line until it is cut; the cursor moves on with it."""
        with self._gateway.lines("/v1/events", after=self._after) as lines:
            for line in lines:
                if self._closed.is_set():
                    return
                name, _, value = line.partition(b":")
                if name == b"id":
                    self._after = max(self._after, int(value))
                elif name == b"data" and any(stream in value[:HEAD] for stream in OURS):
                    self._happened.set()
                yield line
        raise Lost("The gateway ended the stream.")

    def _end(self, error: CliError) -> None:
        self._error = error
        self._happened.set()


def _gave_up(patience: float) -> CliError:
    return CliError(
        f"The gateway has been away for {patience:.0f} s. The work is not lost: it goes on when the gateway is back.",
        hint="`holdfast serve`, then the same again.",
        code=UNREACHABLE,
    )
