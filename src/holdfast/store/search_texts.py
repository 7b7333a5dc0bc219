"""What of the log can be searched, and what is shown of a place that was found: the same for every engine."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple, TypeGuard

from holdfast.domain.events import AnyEvent, Record
from holdfast.domain.events.session import (
    InputReceived,
    InputRevised,
    ModelFailed,
    ModelInterrupted,
    ModelResponded,
    ToolCallFinished,
)
from holdfast.domain.events.task import TaskFinished
from holdfast.domain.next_step import COMMAND_TOOL

OUTPUT_BYTES = 524_288
"""How many bytes of the beginning and of the end of an output are indexed."""
AROUND = 60


class SearchText(NamedTuple):
    """A text that can be found. One with a `task` is the output of its command.

    If a turn waited for that, it is the result of a call and is found in the conversation, too; else its role is
    "output", and its session the stream of the task.
    """

    seq: int
    session: str
    version: int
    at: int
    role: str
    text: str
    task: str


def searchable_text(record: Record) -> SearchText | None:
    """Return what of a record can be found, if anything."""
    task = ""
    match record.event:
        case InputReceived(text=text) | InputRevised(text=str(text)):
            role = "user"
        case ModelResponded(text=text) if text:
            role = "agent"
        case ModelInterrupted(text=text) | ModelFailed(text=text) if text:
            role = "partial"
        case ToolCallFinished(output=text) as call if text:
            role, task = "tool", call.task if is_command_result(call) else ""
        case _:
            return None
    session = record.stream.partition("/")[2]
    text = text.replace("\0", "\ufffd")
    return SearchText(record.seq, session, record.version, record.at, role, text, task)


def printed_output(ended: TaskFinished, outputs: Path) -> str:
    """Return what a command printed, within bounds, by the file of its output."""
    return _read_output(outputs / ended.task / "output.log") if ended.output is None else ended.output


def command_output(record: Record, ended: TaskFinished, printed: str, result: str) -> SearchText | None:
    """Return what a command printed: of a long output its beginning and its end.

    Nothing if it is the result of the call that waited for it, now or later: that is indexed anyway.
    """
    clean = printed.replace("\0", "")
    if not clean or clean in result:
        return None
    return SearchText(record.seq, record.stream, record.version, record.at, "output", clean, ended.task)


def _read_output(path: Path) -> str:
    try:
        # an agent may have put a link to another file in its place, or a pipe that would be waited for without end
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            head = file.read(OUTPUT_BYTES)
            size = file.seek(0, 2)
            file.seek(max(len(head), size - OUTPUT_BYTES))
            return (head + file.read(OUTPUT_BYTES)).decode("utf-8", "replace")
    except OSError:  # pruned meanwhile, it never ran, or it is a link
        return ""


def is_command_result(event: AnyEvent) -> TypeGuard[ToolCallFinished]:
    """Whether it is the result of a call that waited for a command until its end."""
    if not isinstance(event, ToolCallFinished):
        return False
    return event.tool == COMMAND_TOOL and not (event.running or event.stopped)


def snippet(body: str, text: str) -> str:
    """Return the words around the first place where it was found, on one line."""
    at = max(0, body.casefold().find(text.casefold()))
    start, end = max(0, at - AROUND), at + len(text) + AROUND
    line = " ".join(body[start:end].split())
    return ("…" if start else "") + line + ("…" if end < len(body) else "")
