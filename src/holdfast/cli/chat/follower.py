"""Following the session in a thread, for ever; what is seen is posted, in order, to whoever runs the screen."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from holdfast.cli.errors import CliError
from holdfast.cli.follow import Seen, follow
from holdfast.cli.gateway import Gateway


class Follower:
    """One session, from a cursor on, until it is closed. The last that is posted may be why it cannot go on."""

    def __init__(self, gateway: Gateway, session: str, *, after: int, post: Callable[[Seen | CliError], None]) -> None:
        self._closed = threading.Event()
        self._post = post
        self._seen = follow(gateway, session, after=after, patience=math.inf, closed=self._closed)

    def start(self) -> None:
        """Begin. The thread never keeps the process alive."""
        threading.Thread(target=self._run, name="follower", daemon=True).start()

    def close(self) -> None:
        """It is over; the thread ends at the next sign of life."""
        self._closed.set()

    def _run(self) -> None:
        try:
            for seen in self._seen:
                self._post(seen)
        except CliError as error:
            self._post(error)
