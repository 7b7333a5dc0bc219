"""Following a session: a cursor into its log that survives the gateway.

What was seen is never yielded again and nothing is left out. When the connection is cut it waits for
the gateway, as long as its patience lasts, and goes on at its cursor. `run`, `send --wait`, `sessions log` and
the chat all follow like this.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.cli.errors import UNREACHABLE, CliError, Lost, Misunderstood, NotRunning
from holdfast.cli.gateway import Gateway, Json, parsed

PATIENCE_SECONDS = 60.0
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0


@dataclass(frozen=True, slots=True)
class Happened:
    """A record of the log."""

    record: Json

    @property
    def event(self) -> Json:
        """What happened."""
        event = self.record["event"]
        assert isinstance(event, dict)
        return event


@dataclass(frozen=True, slots=True)
class Spoken:
    """A piece of an answer that is still being spoken: text and thinking, each with its place in the whole."""

    turn: int
    step: int
    offset: int
    text: str
    thinking_offset: int = 0
    thinking: str = ""


@dataclass(frozen=True, slots=True)
class Away:
    """The gateway cannot be reached; we wait for it."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Back:
    """It answers again."""


Seen = Happened | Spoken | Away | Back


def follow(
    gateway: Gateway,
    session: str,
    *,
    after: int,
    patience: float = PATIENCE_SECONDS,
    closed: threading.Event | None = None,
) -> Iterator[Seen]:
    """Everything after the cursor, then whatever comes, until somebody sets `closed`."""
    closed = closed or threading.Event()
    away_since: float | None = None
    pause = FIRST_PAUSE
    while not closed.is_set():
        try:
            for seen in _stream(gateway, session, after):
                if closed.is_set():
                    return
                if away_since is not None:
                    away_since, pause = None, FIRST_PAUSE
                    yield Back()
                if isinstance(seen, Happened):
                    after = int(seen.record["version"])
                if seen is not None:
                    yield seen
        except (Lost, NotRunning) as error:
            now = time.monotonic()
            if away_since is None:
                away_since = now
                yield Away(patience)
            if now - away_since >= patience:
                raise _gave_up(session, after, patience) from error
            closed.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


def _stream(gateway: Gateway, session: str, after: int) -> Iterator[Happened | Spoken | None]:
    """One connection; `None` is a sign of life. It ends only by being cut."""
    with gateway.lines(f"/v1/sessions/{session}/events", after=after) as lines:
        kind, data = "", b""
        for line in lines:
            name, _, value = line.partition(b":")
            if name == b"event":
                kind = value.strip().decode("ascii", "replace")
            elif name == b"data":
                data = value
            elif line == b"" and data:
                seen = _seen(kind, data, after)
                if isinstance(seen, Happened):
                    after += 1
                yield seen
                kind, data = "", b""
            else:
                yield None
    raise Lost("The gateway ended the stream.")


def _seen(kind: str, data: bytes, after: int) -> Happened | Spoken | None:
    try:
        found = parsed(data)
        if kind == "delta":
            thinking = (found.get("thinking_offset", 0), found.get("thinking", ""))
            return Spoken(found["turn"], found["step"], found["offset"], found["text"], *thinking)
        if kind == "end":
            raise Lost(str(found["error"]["message"]))
        if kind or found["version"] <= after:
            return None
        if found["version"] > after + 1:
            raise Lost(f"Event {after + 1} is missing in the stream.")
    except (ValueError, Misunderstood, TypeError) as error:
        raise Lost("What came is not an event stream of ours.") from error
    return Happened(found)


def _gave_up(session: str, after: int, patience: float) -> CliError:
    return CliError(
        f"The gateway has been away for {patience:.0f} s. The work is not lost: it goes on when the gateway is back.",
        hint=f"`holdfast serve`, then `holdfast sessions log {session} --follow --after {after}`.",
        code=UNREACHABLE,
    )
