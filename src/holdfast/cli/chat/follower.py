"""Following the session in a thread, for ever; what is seen is posted, in order, to whoever runs the screen."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from holdfast.client.client import Client
from holdfast.client.events import RecordItem, follow_records
from holdfast.domain.errors import HoldfastError


class Follower:
    """One session, from a cursor on, until it is closed. The last that is posted may be why it cannot go on."""

    def __init__(
        self, client: Client, session: str, *, after: int, post: Callable[[RecordItem | HoldfastError], None]
    ) -> None:
        self._closed = threading.Event()
        self._post = post
        self._seen = follow_records(client, session, after=after, patience=math.inf, closed=self._closed)

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
        except HoldfastError as error:
            self._post(error)
