"""Watching the board: told when anything on it changes, also across a restart of the gateway.

A thread follows the whole log from now on and says no more than that something happened; whoever watches looks again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from holdfast.client.errors import ClientError, ConnectionLost
from holdfast.client.http import HttpClient
from holdfast.client.reconnect import UNREACHABLE, Reconnect

OURS = (b'"stream":"card/', b'"stream":"board/')
HEAD = 120
"""Where that stands in a record."""


class BoardWatcher:
    """A context manager; `wait` returns when a card or a board changed, when the time is over, or when it is back."""

    def __init__(self, client: HttpClient, *, patience: float) -> None:
        self._client = client
        self._patience = patience
        self._happened = threading.Event()
        self._closed = threading.Event()
        self._error: ClientError | None = None
        self._after = 0
        self.away = False
        """Whether the gateway cannot be reached."""

    def __enter__(self) -> BoardWatcher:
        self._after = int(self._client.get("/v1/status")["seq"])
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
        reconnect = Reconnect(patience=self._patience, sleep=self._closed.wait)
        try:
            while not self._closed.is_set():
                try:
                    for _ in self._read():
                        if reconnect.succeeded():
                            self.away = False
                            self._happened.set()
                except UNREACHABLE as error:
                    reconnect.failed()
                    self.away = True
                    self._happened.set()
                    reconnect.wait(error)
        except ClientError as error:
            self._error = error
            self._happened.set()

    def _read(self) -> Iterator[bytes]:
        """One connection, line by line until it is cut; the cursor moves on with it."""
        with self._client.lines("/v1/events", after=self._after) as lines:
            for line in lines:
                if self._closed.is_set():
                    return
                name, _, value = line.partition(b":")
                if name == b"id":
                    self._after = max(self._after, int(value))
                elif name == b"data" and any(stream in value[:HEAD] for stream in OURS):
                    self._happened.set()
                yield line
        raise ConnectionLost("The gateway ended the stream.")
