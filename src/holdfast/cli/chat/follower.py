"""Following the session in a thread: a cursor that survives the gateway, with thinking and without an end.

Like `cli/follow.py`, which knows neither thinking nor patience without limit. What it sees is posted, in
order, to whoever runs the screen.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holdfast.cli.chat.speech import Delta
from holdfast.cli.errors import CliError, Lost, NotRunning
from holdfast.cli.follow import Back, Happened
from holdfast.cli.gateway import Gateway

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0


@dataclass(frozen=True, slots=True)
class Away:
    """The gateway cannot be reached since then (monotonic)."""

    since: float


@dataclass(frozen=True, slots=True)
class Ended:
    """There is nothing more to follow: the session was deleted, or we are not welcome."""

    error: CliError


Seen = Happened | Delta | Away | Back | Ended


class Follower:
    """One session, from a cursor on, until it is closed."""

    def __init__(self, gateway: Gateway, session: str, *, after: int, post: Callable[[Seen], None]) -> None:
        self._gateway = gateway
        self._session = session
        self._after = after
        self._post = post
        self._closed = threading.Event()

    def start(self) -> None:
        """Begin. The thread never keeps the process alive."""
        threading.Thread(target=self._run, name=f"follow {self._session}", daemon=True).start()

    def close(self) -> None:
        """Post nothing more; the thread ends at the next sign of life."""
        self._closed.set()

    def _run(self) -> None:
        pause, away = FIRST_PAUSE, False
        while not self._closed.is_set():
            try:
                for seen in self._stream():
                    if away:
                        pause, away = FIRST_PAUSE, False
                        self._tell(Back())
                    if seen is not None:
                        self._tell(seen)
            except (Lost, NotRunning):
                if not away:
                    away = True
                    self._tell(Away(time.monotonic()))
                self._closed.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            except CliError as error:
                self._tell(Ended(error))
                return

    def _tell(self, seen: Seen) -> None:
        if not self._closed.is_set():
            self._post(seen)

    def _stream(self) -> Iterator[Happened | Delta | None]:
        """One connection; `None` is a sign of life. It ends by being cut, or closed by us."""
        with self._gateway.lines(f"/v1/sessions/{self._session}/events", after=self._after) as lines:
            kind, data = "", b""
            for line in lines:
                if self._closed.is_set():
                    return
                name, _, value = line.partition(b":")
                if name == b"event":
                    kind = value.strip().decode("ascii", "replace")
                elif name == b"data":
                    data = value
                elif line == b"" and data:
                    yield self._seen(kind, data)
                    kind, data = "", b""
                else:
                    yield None
        raise Lost("The gateway ended the stream.")

    def _seen(self, kind: str, data: bytes) -> Happened | Delta | None:
        try:
            found = json.loads(data)
            if kind == "delta":
                return Delta(
                    found["turn"],
                    found["step"],
                    found["offset"],
                    found["text"],
                    found.get("thinking_offset", 0),
                    found.get("thinking", ""),
                )
            if kind == "end":
                raise Lost(str(found["error"]["message"]))
            if kind or found["version"] <= self._after:
                return None
            if found["version"] > self._after + 1:
                raise Lost(f"Event {self._after + 1} is missing in the stream.")
        except (ValueError, KeyError, TypeError) as error:
            raise Lost("What came is not an event stream of ours.") from error
        self._after += 1
        return Happened(found)
