"""Reading the output of a task: all there is, then whatever comes, by offset.

The offset is the cursor: after a cut or a restart of the gateway it continues there, so nothing is left out and
nothing comes twice. What was dropped from a long output is said, never passed over.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial

import msgspec

from holdfast.client.http import HttpClient, Json
from holdfast.client.lenient import decode
from holdfast.client.reconnect import PATIENCE_SECONDS, Disconnected, Reconnected, retry_until_reachable
from holdfast.schemas.tasks import OPEN, OutputGap, OutputPage

LIMIT = 1 << 20
POLL_SECONDS = 20


class OutputPiece(msgspec.Struct, frozen=True):
    """A part of an output: what was dropped before it, then what is there."""

    offset: int
    data: bytes
    next: int
    size: int
    state: str
    dropped: OutputGap | None = None

    @property
    def last(self) -> bool:
        """Whether nothing can follow."""
        return self.state not in OPEN and self.next >= self.size


OutputItem = OutputPiece | Disconnected | Reconnected


def read_output(
    client: HttpClient, task: str, *, raw: bool, offset: int = 0, tail: int = 0, wait: int = 0
) -> OutputPiece:
    """One piece. Clean text for a screen, or the bytes as they were written."""
    target = f"/v1/tasks/{task}/output"
    query: dict[str, object] = {"limit": LIMIT, "wait": wait, "tail" if tail else "offset": tail or offset}
    if raw:
        data, headers = client.raw(target, raw="true", **query)
        end, size = int(headers["holdfast-next"]), int(headers["holdfast-size"])
        start = end - len(data)
        dropped = OutputGap(offset, start) if not tail and start > offset else None
        return OutputPiece(start if tail else offset, data, end, size, headers["holdfast-state"], dropped)
    page = decode(client.text(target, **query), OutputPage)
    return OutputPiece(
        page.offset, page.text.encode("utf-8", "replace"), page.next, page.size, page.state, page.dropped
    )


def stored_output(client: HttpClient, task: str, *, raw: bool, offset: int = 0, tail: int = 0) -> Iterator[OutputPiece]:
    """The output that is stored now."""
    piece = read_output(client, task, raw=raw, offset=offset, tail=tail)
    end = piece.size
    while True:
        yield piece
        if piece.next >= end or (not piece.data and piece.dropped is None):
            return
        piece = read_output(client, task, raw=raw, offset=piece.next)


def follow_output(
    client: HttpClient,
    task: str,
    *,
    raw: bool,
    offset: int = 0,
    tail: int = 0,
    patience: float = PATIENCE_SECONDS,
) -> Iterator[OutputItem]:
    """The output so far and new output, until the task has ended."""
    while True:
        ask = partial(read_output, client, task, raw=raw, offset=offset, tail=tail, wait=0 if tail else POLL_SECONDS)
        resume = f"holdfast tasks log {task} --follow --since {offset}"
        piece = yield from retry_until_reachable(ask, patience=patience, resume=resume)
        yield piece
        if piece.last:
            return
        offset, tail = piece.next, 0


def wait_for_task(
    client: HttpClient, task: str, *, seconds: float | None, patience: float
) -> Iterator[Json | Disconnected | Reconnected]:
    """The task as it is, again and again until it has ended or the time is over; the last one counts."""
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    while True:
        left = math.ceil(max(0.0, min(POLL_SECONDS, deadline - time.monotonic())))
        ask = partial(client.get, f"/v1/tasks/{task}/wait", seconds=left)
        found: Json = yield from retry_until_reachable(ask, patience=patience, resume=f"holdfast tasks wait {task}")
        yield found
        if found["state"] not in OPEN or time.monotonic() >= deadline:
            return
