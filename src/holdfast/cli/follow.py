"""Following a session: a cursor into its log that survives the gateway.

What was seen is never yielded again and nothing is left out. When the connection is cut it waits for
the gateway, as long as its patience lasts, and goes on at its cursor.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.cli.errors import UNREACHABLE, CliError, Lost, NotRunning
from holdfast.cli.gateway import Gateway, Json

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
    """A piece of an answer that is still being spoken, and where in the answer it stands."""

    turn: int
    step: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Away:
    """The gateway cannot be reached; we wait for it."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Back:
    """It answers again."""


Seen = Happened | Spoken | Away | Back


def follow(gateway: Gateway, session: str, *, after: int, patience: float = PATIENCE_SECONDS) -> Iterator[Seen]:
    """Everything after the cursor, then whatever comes, for ever."""
    away_since: float | None = None
    pause = FIRST_PAUSE
    while True:
        try:
            for seen in _stream(gateway, session, after):
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
            time.sleep(pause)
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
                seen = _seen(kind, json.loads(data), after)
                if isinstance(seen, Happened):
                    after += 1
                yield seen
                kind, data = "", b""
            else:
                yield None
    raise Lost("The gateway ended the stream.")


def _seen(kind: str, data: Any, after: int) -> Happened | Spoken | None:
    if kind == "delta":
        return Spoken(data["turn"], data["step"], data["offset"], data["text"])
    if kind == "end":
        raise Lost(str(data["error"]["message"]))
    if kind or data["version"] <= after:
        return None
    if data["version"] > after + 1:
        raise Lost(f"Event {after + 1} is missing in the stream.")
    return Happened(data)


def _gave_up(session: str, after: int, patience: float) -> CliError:
    return CliError(
        f"The gateway has been away for {patience:.0f} s. The work is not lost: it goes on when the gateway is back.",
        hint=f"`holdfast serve`, then `holdfast sessions log {session} --follow --after {after}`.",
        code=UNREACHABLE,
    )
