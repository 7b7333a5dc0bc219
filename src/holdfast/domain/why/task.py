"""`why` for a task: what it is doing or how it ended, at whose request, and how that is known.

Every sentence names the event that it rests on.
"""

from __future__ import annotations

from holdfast.domain.events import Record
from holdfast.domain.events.task import (
    ProcessStarted,
    TaskBackgrounded,
    TaskFinished,
    TaskPinned,
    TaskResumed,
    TaskStarted,
    TaskStopRequested,
)
from holdfast.domain.task import end_evidence, sandbox_in_words
from holdfast.domain.text import duration
from holdfast.domain.why.sentence import Sentence


def why_task(records: list[Record], *, now: int, activity: str = "") -> list[Sentence]:
    """The whole answer, the most important sentence first. `activity` is what was measured just now."""
    first = records[0]
    assert isinstance(first.event, TaskStarted)
    state = _state(records, first.event, now, activity)
    wanted = [
        _sentence(f"Its end was asked for {duration(now - r.at)} ago by {r.event.by}{_reason(r.event)}.", r)
        for r in reversed(records)
        if isinstance(r.event, TaskStopRequested)
    ]
    return [
        *state,
        *wanted,
        *_meanwhile(records, now),
        _beginning(first, first.event, now),
        *_lifetime(first),
        *_sandbox(first),
    ]


def _sandbox(first: Record) -> list[Sentence]:
    assert isinstance(first.event, TaskStarted)
    text = sandbox_in_words(first.event)
    return [_sentence(text, first)] if text else []


def _state(records: list[Record], started: TaskStarted, now: int, activity: str) -> list[Sentence]:
    """What it is doing, by the last event that says so."""
    for record in reversed(records):
        since = duration(now - record.at)
        match record.event:
            case TaskFinished() as end:
                return _ending(record, end, now)
            case TaskResumed(turn=turn):
                return [_sentence(f"It has been working again for {since}, in turn {turn} of {_at(started)}.", record)]
            case ProcessStarted(pid=pid):
                doing = f" and is {activity}" if activity else ""
                return [_sentence(f"It has been running for {since} as pid {pid}{doing}.", record)]
            case TaskStarted() if started.task_kind != "process":
                return [_sentence(f"Its agent has been working for {since} in {_at(started)}.", record)]
            case TaskStarted():
                return [
                    _sentence(
                        f"It has been starting for {since}: no process is known so far.",
                        record,
                    )
                ]
            case _:
                continue
    raise AssertionError("the first event of a task is TaskStarted")


def _at(started: TaskStarted) -> str:
    hint = "" if started.worker == started.task else f" (`holdfast why {started.worker}` says at what)"
    return f"session {started.worker}{hint}"


def _ending(record: Record, end: TaskFinished, now: int) -> list[Sentence]:
    found = [_sentence(f"It ended as {end.outcome} {duration(now - record.at)} ago: {end.reason}.", record)]
    evidence = end_evidence(end.end)
    if evidence and evidence not in end.reason:
        found.append(_sentence(f"How that is known: {evidence}.", record))
    if end.survivors:
        found.append(_sentence(f"These of its processes were still there: {', '.join(end.survivors)}.", record))
    if end.dropped_bytes:
        text = f"Of {end.output_bytes} bytes of output {end.dropped_bytes} in the middle were dropped: it was too long."
        found.append(_sentence(text, record))
    return found


def _reason(wanted: TaskStopRequested) -> str:
    return f" ({wanted.reason})" if wanted.reason else ""


def _meanwhile(records: list[Record], now: int) -> list[Sentence]:
    found = []
    pin: Record | None = None
    for record in records:
        match record.event:
            case TaskBackgrounded(reason=reason):
                found.append(_sentence(f"It went to the background {duration(now - record.at)} ago: {reason}.", record))
            case TaskPinned():
                pin = record
            case _:
                continue
    if pin is not None and isinstance(pin.event, TaskPinned) and pin.event.pinned:
        found.append(_sentence(f"It is pinned by {pin.event.by}, so no prune takes it.", pin))
    return found


def _beginning(record: Record, started: TaskStarted, now: int) -> Sentence:
    origin = f" from session {started.session}" if started.session else ""
    if started.left_by:
        text = f"The command of task {started.left_by} ended {duration(now - record.at)} ago"
        left = started.title.removeprefix("left by ")
        return _sentence(f"{text} and left these processes behind: {left}", record)
    waited = ", and a turn waited for it" if started.foreground else ""
    return _sentence(
        f"It was started {duration(now - record.at)} ago by {started.by}{origin}{waited}: {started.title}", record
    )


def _lifetime(record: Record) -> list[Sentence]:
    started = record.event
    assert isinstance(started, TaskStarted)
    if started.task_kind != "process" or started.foreground:
        return []
    match started.lifetime:
        case "chapter":
            text = "It may live until the next reset of its session."
        case "session":
            text = "It may live as long as its session: until that is archived or deleted."
        case "until":
            text = f"It may live until {duration((started.until or record.at) - record.at)} after its start."
        case _:
            text = "It may live until it ends by itself or somebody stops it."
    return [_sentence(text, record)]


def _sentence(text: str, record: Record) -> Sentence:
    return Sentence(text, record.version, record.at)
