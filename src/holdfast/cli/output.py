"""Reading the output of a task: all there is, then whatever comes, by offset.

The offset is the cursor: after a cut or a restart of the gateway it goes on there, so nothing is left out and
nothing comes twice. What was dropped from a long output is said, never passed over.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from holdfast.cli.errors import UNREACHABLE, CliError, Lost, NotRunning
from holdfast.cli.follow import FIRST_PAUSE, LONGEST_PAUSE, Away, Back
from holdfast.cli.gateway import Gateway, Json
from holdfast.cli.hints import program

LIMIT = 1 << 20
POLL_SECONDS = 20
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an output: what was dropped before it, then what is there."""

    offset: int
    data: bytes
    next: int
    size: int
    state: str
    dropped: tuple[int, int] | None = None

    @property
    def last(self) -> bool:
        """Whether nothing can follow."""
        return self.state != "running" and self.next >= self.size


Seen = Piece | Away | Back


def read(gateway: Gateway, task: str, *, raw: bool, offset: int = 0, tail: int = 0, wait: int = 0) -> Piece:
    """One piece. Clean text for a screen, or the bytes as they were written."""
    target = f"/v1/tasks/{task}/output"
    query: dict[str, object] = {"limit": LIMIT, "wait": wait, "tail" if tail else "offset": tail or offset}
    if raw:
        data, headers = gateway.raw(target, raw="true", **query)
        end, size = int(headers["holdfast-next"]), int(headers["holdfast-size"])
        start = end - len(data)
        dropped = (offset, start) if not tail and start > offset else None
        return Piece(start if tail else offset, data, end, size, headers["holdfast-state"], dropped)
    page: Json = gateway.get(target, **query)
    gone = page["dropped"]
    dropped = (gone["start"], gone["end"]) if gone is not None else None
    data = page["text"].encode("utf-8", "replace")
    return Piece(page["offset"], data, page["next"], page["size"], page["state"], dropped)


def stored(gateway: Gateway, task: str, *, raw: bool, offset: int, tail: int) -> Iterator[Piece]:
    """What there is now."""
    piece = read(gateway, task, raw=raw, offset=offset, tail=tail)
    end = piece.size
    while True:
        yield piece
        if piece.next >= end or (not piece.data and piece.dropped is None):
            return
        piece = read(gateway, task, raw=raw, offset=piece.next)


def follow(gateway: Gateway, task: str, *, raw: bool, offset: int, tail: int, patience: float) -> Iterator[Seen]:
    """What there is and what comes, until the task has ended."""
    while True:
        ask = partial(read, gateway, task, raw=raw, offset=offset, tail=tail, wait=0 if tail else POLL_SECONDS)
        back = f"{program()} tasks log {task} --follow --since {offset}"
        for found in patiently(ask, patience=patience, back=back):
            yield found
            if isinstance(found, Piece):
                offset, tail = found.next, 0
                if found.last:
                    return


def patiently(ask: Callable[[], T], *, patience: float, back: str) -> Iterator[T | Away | Back]:
    """One answer, waiting for a gateway that is away as long as the patience lasts."""
    away_since: float | None = None
    pause = FIRST_PAUSE
    while True:
        try:
            found = ask()
        except (Lost, NotRunning) as error:
            now = time.monotonic()
            if away_since is None:
                away_since = now
                yield Away(patience)
            if now - away_since >= patience:
                raise CliError(
                    f"The gateway has been away for {patience:.0f} s. Nothing is lost: a command runs on without it.",
                    hint=f"`holdfast serve`, then `{back}`.",
                    code=UNREACHABLE,
                ) from error
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
            continue
        if away_since is not None:
            yield Back()
        yield found
        return


def wait(gateway: Gateway, task: str, *, seconds: float | None, patience: float) -> Iterator[Json | Away | Back]:
    """The task as it is, again and again until it has ended or the time is over; the last one counts."""
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    while True:
        left = math.ceil(max(0.0, min(POLL_SECONDS, deadline - time.monotonic())))
        ask = partial(gateway.get, f"/v1/tasks/{task}/wait", seconds=left)
        for found in patiently(ask, patience=patience, back=f"{program()} tasks wait {task}"):
            yield found
            if not isinstance(found, Away | Back) and (found["state"] != "running" or time.monotonic() >= deadline):
                return
