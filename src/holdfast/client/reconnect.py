"""Waiting for a gateway that is away and trying again: the one rule for how often, how long, and which messages.

A gateway restarts in about a second, so the first pauses are short. A waiting client says once that it is away and once
that it is back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import TypeVar

import msgspec

from holdfast.client.errors import ConnectionLost, GatewayAway, GatewayNotRunning

PATIENCE_SECONDS = 60.0
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
UNREACHABLE = (ConnectionLost, GatewayNotRunning)
"""What is worth another try."""
T = TypeVar("T")


class Disconnected(msgspec.Struct, frozen=True):
    """The gateway cannot be reached; the client waits for it up to this many seconds."""

    seconds: float

    def __str__(self) -> str:
        return f"the gateway is away; waiting for it up to {self.seconds:.0f} s"


class Reconnected(msgspec.Struct, frozen=True):
    """It answers again."""

    def __str__(self) -> str:
        return "the gateway is back"


class Reconnect:
    """How long a gateway has been away, and the pauses between the tries."""

    def __init__(self, *, patience: float = PATIENCE_SECONDS, sleep: Callable[[float], object] = time.sleep) -> None:
        self.patience = patience
        self._sleep = sleep
        self._away_since: float | None = None
        self._pause = FIRST_PAUSE

    def failed(self) -> bool:
        """Note a try that failed. Whether it was the first since the gateway answered."""
        is_first = self._away_since is None
        if self._away_since is None:
            self._away_since = time.monotonic()
        return is_first

    def succeeded(self) -> bool:
        """Note that the gateway answers. Whether it was away before."""
        was_away = self._away_since is not None
        self._away_since, self._pause = None, FIRST_PAUSE
        return was_away

    def wait(self, error: Exception, *, resume: str = "") -> None:
        """Pause before the next try; GatewayAway when it has been away for longer than the patience lasts."""
        if self._away_since is not None and time.monotonic() - self._away_since >= self.patience:
            raise GatewayAway(self.patience, resume=resume) from error
        self._sleep(self._pause)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)


def retry_until_reachable(
    ask: Callable[[], T], *, patience: float, resume: str = ""
) -> Generator[Disconnected | Reconnected, None, T]:
    """Return what `ask` returns, and yield when the gateway goes away and comes back meanwhile."""
    reconnect = Reconnect(patience=patience)
    while True:
        try:
            found = ask()
        except UNREACHABLE as error:
            if reconnect.failed():
                yield Disconnected(patience)
            reconnect.wait(error, resume=resume)
        else:
            if reconnect.succeeded():
                yield Reconnected()
            return found


def wait_until_reachable(ask: Callable[[], T], *, patience: float) -> T:
    """Return what `ask` returns, as soon as there is a gateway that can be asked."""
    tries = retry_until_reachable(ask, patience=patience)
    while True:
        try:
            next(tries)
        except StopIteration as done:
            found: T = done.value
            return found
