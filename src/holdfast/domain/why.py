"""Answers to `why`: what a session, its chapters, a card or a task is doing or waiting for, and since when.

Every sentence names the event that it is based on. An answer begins with the most important sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from holdfast.domain.card import Card
from holdfast.domain.chapter import Chapter
from holdfast.domain.compaction import MAX_INEFFECTIVE
from holdfast.domain.events import Record
from holdfast.domain.events.chapter import SummaryWritten
from holdfast.domain.events.parts import Call, EventRef
from holdfast.domain.events.task import (
    ProcessStarted,
    TaskBackgrounded,
    TaskFinished,
    TaskPinned,
    TaskResumed,
    TaskStarted,
    TaskStopRequested,
    TaskTellSet,
)
from holdfast.domain.next_step import Partial, stop_reason
from holdfast.domain.reset import NotDue, still_postponed
from holdfast.domain.rights import MODE_LIMITS, describe
from holdfast.domain.session import Session, Turn
from holdfast.domain.task import end_evidence, sandbox_in_words
from holdfast.domain.text import duration, shorten
from holdfast.domain.wait_text import waiting_for


@dataclass(frozen=True, slots=True)
class Sentence:
    """A statement and the event behind it."""

    text: str
    version: int
    at: int


def sentence(text: str, happened: EventRef | Record) -> Sentence:
    """Return a statement that is based on this event."""
    return Sentence(text, happened.version, happened.at)


# --- sessions -----------------------------------------------------------------------------------

SHOWN = 80
NOTHING = Partial()
ENDED = {"done": "finished", "failed": "failed", "stopped": "was stopped", "lost": "was lost"}


def why(session: Session, *, arrived: Partial = NOTHING, now: int) -> list[Sentence]:
    """Return what a session is doing. `arrived` is what the model has said so far in the step that is running."""
    sentences: list[Sentence] = []
    turn = session.turn
    if turn is not None:
        sentences += _of_turn(session, turn, arrived, now)
    elif session.last_turn is not None:
        last = session.last_turn
        text = f"Idle. Turn {last.number} {ENDED[last.outcome]} {duration(now - last.ended.at)} ago: {last.reason}."
        if last.problem is not None and last.problem.hint:
            text += f" {last.problem.hint}"
        sentences.append(sentence(text, last.ended))
    elif not session.queue:
        sentences.append(Sentence("Idle. It has received no message yet.", session.version, session.updated_at))
    for place, queued in enumerate(session.queue, 1):
        waits = f"Message {place} in the queue ({queued.event.mode}, from {queued.event.by})"
        text = f"{waits} has been waiting for {duration(now - queued.received.at)}: {shorten(queued.event.text, SHOWN)}"
        sentences.append(sentence(text, queued.received))
    if session.limited_at is not None:
        sentences += [sentence(text, session.limited_at) for text in describe(session.rights)]
    if session.mode_chosen_at is not None and session.mode != "profile":
        text = f"A person chose its mode: it may {MODE_LIMITS[session.mode]}."
        sentences.append(sentence(text, session.mode_chosen_at))
    if session.archived_at is not None:
        sentences.append(sentence("It is archived; a message restores it.", session.archived_at))
    return sentences


def _of_turn(session: Session, turn: Turn, arrived: Partial, now: int) -> list[Sentence]:
    since = duration(now - turn.last_done.at)
    rests_on = turn.last_done
    stopping = stop_reason(session)
    if stopping is not None:
        text = f"Turn {turn.number} is about to end: {stopping}."
        rests_on = turn.stop_asked or _interrupt(session) or rests_on
    elif turn.wait is not None:
        text = f"Turn {turn.number} {waiting_for(turn.wait, since, now)}"
    elif turn.suspended:
        text = f"Turn {turn.number} is suspended ({turn.suspended}); it resumes when a gateway is running."
    elif turn.asked:
        again = f", request {turn.attempts}" if turn.attempts > 1 else ""
        step = f"(step {turn.step}{again})"
        if arrived == NOTHING:
            text = f"Turn {turn.number} has been waiting for model {turn.model} for {since} {step}."
        else:
            doing = "answering" if arrived.text else "thinking"
            text = f"Turn {turn.number}: model {turn.model} is {doing}; it was asked {since} ago {step}."
    elif turn.open_calls:
        names = ", ".join(_named(open_call.call) for open_call in turn.open_calls.values())
        text = f"Turn {turn.number} has been running for {since}: {names}."
    else:
        text = f"Turn {turn.number} is between two steps."
    first = sentence(text, rests_on)
    begun = sentence(f"Turn {turn.number} began {duration(now - turn.started.at)} ago.", turn.started)
    resumed = [
        Sentence(f"It was resumed {duration(now - at)} ago after {duration(away)} away: {cause}.", version, at)
        for version, at, away, cause in turn.interruptions
    ]
    return [first, *resumed, begun]


def _interrupt(session: Session) -> EventRef | None:
    return next((queued.received for queued in session.queue if queued.event.mode == "interrupt"), None)


def _named(call: Call) -> str:
    """Return a tool call by its tool and its subject: the command, the path, or its first text."""
    try:
        given = msgspec.json.decode(call.arguments or "{}", type=dict[str, object])
    except msgspec.DecodeError:
        given = {}
    texts = [value for value in (given.get("command"), given.get("path"), *given.values()) if isinstance(value, str)]
    return f"`{call.tool}` {shorten(texts[0], SHOWN)}" if texts else f"`{call.tool}`"


# --- cards --------------------------------------------------------------------------------------

RUNS = 5


def why_card(
    card: Card, reason: str, session: Session | None, *, arrived: Partial = NOTHING, now: int
) -> list[Sentence]:
    """Return what a card is doing. `reason` says why it is not started, if it is not."""
    since = duration(now - card.moved.at)
    run = card.run
    found: list[Sentence] = []
    if run is not None:
        resumed = f", which resumed run {run.started.resumed_run}" if run.started.resumed_run else ""
        doing = "" if session is None else f" {why(session, arrived=arrived, now=now)[0].text}"
        note = f" Its last note: {run.note}" if run.note else ""
        where = f"run {run.number}{resumed}, in session {run.started.session}"
        text = f"It has been running for {since}: {where}.{doing}{note}"
        found.append(sentence(text, run.at))
    elif reason:
        found.append(sentence(f"{reason} It has been in this column for {since}.", card.moved))
    else:
        found.append(sentence("Nothing blocks it; it is being started now.", card.moved))
    if card.rights is not None:
        found += [Sentence(text, 1, card.created_at) for text in describe(card.rights)]
    if card.runs and card.runs[-1].started.fresh_reason:
        text = f"Its last run started a new session: {card.runs[-1].started.fresh_reason}."
        found.append(sentence(text, card.runs[-1].at))
    for one in reversed(card.runs[-RUNS:]):
        if one.finished is not None and one.ended is not None:
            end = one.finished
            cost = "and used up an attempt" if end.uses_attempt else "and used up no attempt"
            what = f"{end.outcome} ({end.failure})" if end.failure else end.outcome
            how = end.reason if end.reason.startswith(f"{end.outcome} (") else f"{what}: {end.reason}"
            text = f"Run {one.number} ended {duration(now - one.ended.at)} ago {cost}: {how}"
            found.append(sentence(text, one.ended))
    return found


# --- chapters -----------------------------------------------------------------------------------


def why_chapter(session: Session, coming: NotDue, *, now: int) -> list[Sentence]:
    """Return the sentences about chapters, what prevents a reset first; none if there is nothing special."""
    found: list[Sentence] = []
    if (late := still_postponed(session, coming, now)) is not None:
        postponed, at = late
        limit = "" if postponed.until is None else f" for at most {duration(postponed.until - now)} more"
        reasons = "; ".join(blocker.reason for blocker in postponed.blockers)
        overdue = duration(now - postponed.due_at)
        text = f"A reset ({postponed.rule}) was due {overdue} ago and is postponed{limit}: {reasons}."
        found.append(sentence(text, at))
    elif coming.rule is not None and coming.at is not None and session.last_active is not None:
        unless = ", unless there is user activity" if coming.rule == "idle" else ""
        when = f"in {duration(coming.at - now)}" if coming.at > now else "now"
        found.append(sentence(f"The next reset ({coming.rule}) comes {when}{unless}.", session.last_active))
    return found + _of_compaction(session.chapter, now) + _trimmed(session.chapter, now) + _opened(session.chapter, now)


def _opened(chapter: Chapter, now: int) -> list[Sentence]:
    if chapter.opened is None or chapter.opened_at is None:
        return []
    opened = chapter.opened
    text = f"Chapter {opened.chapter} began {duration(now - chapter.opened_at.at)} ago: {opened.reason}."
    if opened.kept:
        names = ", ".join(f"{one.task} {one.title} ({one.activity})" for one in opened.kept)
        text += f" Handed over: {names}."
    if opened.stopped:
        names = ", ".join(f"{one.task} {one.title} ({one.rule})" for one in opened.stopped)
        text += f" Stopped: {names}."
    return [sentence(text, chapter.opened_at)]


def _trimmed(chapter: Chapter, now: int) -> list[Sentence]:
    """Return the sentence about trimmed tool results."""
    if not chapter.trims or chapter.trimmed_at is None:
        return []
    last, count = chapter.trims[-1], sum(one.results for one in chapter.trims)
    what = "1 tool result" if count == 1 else f"{count} tool results"
    where = f"up to step {last.covers_step} of turn {last.covers_turn}"
    size = f"{last.tokens_before} → {last.tokens_after} tokens"
    text = (
        f"The model sees only notes or parts of {what} {where}. The last were trimmed "
        f"{duration(now - chapter.trimmed_at.at)} ago ({size}): {last.reason}. Its tool `recall` reads them again."
    )
    return [sentence(text, chapter.trimmed_at)]


def _of_compaction(chapter: Chapter, now: int) -> list[Sentence]:
    if chapter.last is None:
        return []
    if chapter.in_progress is not None:
        since = duration(now - chapter.last.at)
        trying = chapter.in_progress
        if trying.purpose == "hand_over":
            text = f"{trying.model} has been writing the note for the next chapter for {since}: {trying.reason}."
            return [sentence(text, chapter.last)]
        text = (
            f"{trying.model} has been summarising its context for {since} (attempt {trying.attempt}): {trying.reason}."
        )
        return [sentence(text, chapter.last)]
    if chapter.requested is not None and chapter.requested.purpose == "hand_over":
        text = f"{chapter.requested.by} resets it; the note for the next chapter comes first."
        return [sentence(text, chapter.last)]
    if chapter.requested is not None:
        return [sentence(f"{chapter.requested.by} asked for a summary of its context; that comes next.", chapter.last)]
    if chapter.failed is not None:
        failed = chapter.failed
        again = "It is tried again in " + duration(max(0, (failed.retry_at or 0) - now))
        if failed.retry_at is None:
            again = "It is tried again after the next turn"
        instead = "a digest is used instead" if chapter.provisional else "the model still sees everything"
        said = failed.problem.message.rstrip(".")
        return [sentence(f"The last summary failed ({said}); {instead}. {again}.", chapter.last)]
    summary = chapter.summary
    if summary is None:
        return []
    how = "A summary" if summary.source == "model" else "A digest"
    size = f"{summary.tokens_before} → {summary.tokens_after} tokens"
    text = f"{how} replaces {_covered(summary)} ({size}): {summary.reason}."
    if summary.left_out:
        text += f" {summary.left_out} messages did not fit into the request for it; its writer saw a digest of them."
    if chapter.ineffective >= MAX_INEFFECTIVE:
        text += (
            f" {chapter.ineffective} in a row did not help, so none is written automatically while the context fits;"
        )
        text += " `/compact` writes one."
    return [sentence(text, chapter.summary_at or chapter.last)]


def _covered(summary: SummaryWritten) -> str:
    turn, step = summary.covers_turn, summary.covers_step
    if not step:
        return f"the turns up to {turn}"
    before = f"the turns up to {turn - 1} and " if turn > 1 else ""
    return f"{before}the steps up to {step} of turn {turn}"


# --- tasks --------------------------------------------------------------------------------------


def why_task(records: list[Record], *, now: int, activity: str = "", away: str = "") -> list[Sentence]:
    """Return what a task is doing or how it ended.

    `activity` is what was measured just now; `away` says that its node cannot be asked.
    """
    first, started = records[0], records[0].event
    assert isinstance(started, TaskStarted)
    limits = filter(None, (_lifetime(started, first.at), sandbox_in_words(started)))
    return [
        *_unknown(records, now, away),
        *(() if away else _state(records, started, now, activity)),
        *_stops(records, now),
        *_meanwhile(records, now),
        _beginning(first, started, now),
        *(sentence(text, first) for text in limits),
    ]


def _unknown(records: list[Record], now: int, away: str) -> list[Sentence]:
    """Return what is known of a command whose node is away."""
    if not away:
        return []
    pid = next((record for record in reversed(records) if isinstance(record.event, ProcessStarted)), None)
    text = f"Its state is unknown: {away}. When that node is back, it says how the command ended."
    found = [sentence(text, records[-1])]
    if pid is not None and isinstance(pid.event, ProcessStarted):
        found.append(sentence(f"It began {duration(now - pid.at)} ago as pid {pid.event.pid}.", pid))
    return found


def _stops(records: list[Record], now: int) -> list[Sentence]:
    found = []
    for record in reversed(records):
        if isinstance(stop := record.event, TaskStopRequested):
            reason = f" ({stop.reason})" if stop.reason else ""
            found.append(sentence(f"{stop.by} asked for its end {duration(now - record.at)} ago{reason}.", record))
    return found


def _state(records: list[Record], started: TaskStarted, now: int, activity: str) -> list[Sentence]:
    """Return what it is doing, by the last event about that."""
    for record in reversed(records):
        since = duration(now - record.at)
        match record.event:
            case TaskFinished() as end:
                return _ending(record, end, now)
            case TaskResumed(turn=turn):
                return [sentence(f"It has been working again for {since}, in turn {turn} of {_at(started)}.", record)]
            case ProcessStarted(pid=pid):
                doing = f" and is {activity}" if activity else ""
                return [sentence(f"The command has been running for {since} as pid {pid}{doing}.", record)]
            case TaskStarted() if started.task_kind != "process":
                return [sentence(f"Its agent has been working for {since} in {_at(started)}.", record)]
            case TaskStarted():
                return [sentence(f"It has been starting for {since}: no process is known so far.", record)]
            case _:
                continue
    raise AssertionError("the first event of a task is TaskStarted")


def _at(started: TaskStarted) -> str:
    hint = "" if started.worker == started.task else f" (see `holdfast why {started.worker}`)"
    return f"session {started.worker}{hint}"


def _ending(record: Record, end: TaskFinished, now: int) -> list[Sentence]:
    found = [sentence(f"The task {ENDED[end.outcome]} {duration(now - record.at)} ago: {end.reason}.", record)]
    evidence = end_evidence(end.end)
    if evidence and evidence not in end.reason:
        found.append(sentence(f"Evidence: {evidence}.", record))
    if end.survivors:
        found.append(sentence(f"These of its processes were still running: {', '.join(end.survivors)}.", record))
    if end.dropped_bytes:
        text = f"Of {end.output_bytes} bytes of output {end.dropped_bytes} in the middle were dropped: it was too long."
        found.append(sentence(text, record))
    return found


def _meanwhile(records: list[Record], now: int) -> list[Sentence]:
    found = []
    pin: Record | None = None
    notify: Record | None = None
    for record in records:
        match record.event:
            case TaskBackgrounded(reason=reason):
                found.append(sentence(f"It went to the background {duration(now - record.at)} ago: {reason}.", record))
            case TaskPinned():
                pin = record
            case TaskTellSet():
                notify = record
            case _:
                continue
    if pin is not None and isinstance(pin.event, TaskPinned) and pin.event.pinned:
        found.append(sentence(f"It is pinned by {pin.event.by}, so it is not pruned.", pin))
    if notify is not None and isinstance(notify.event, TaskTellSet) and notify.event.tell != "default":
        found.append(
            sentence(f"Notifications about its end: {notify.event.tell}, chosen by {notify.event.by}.", notify)
        )
    return found


def _beginning(record: Record, started: TaskStarted, now: int) -> Sentence:
    origin = f" from session {started.session}" if started.session else ""
    if started.left_by:
        text = f"The command of task {started.left_by} ended {duration(now - record.at)} ago"
        left = started.title.removeprefix("left by ")
        return sentence(f"{text} and left these processes behind: {left}", record)
    waited = ", and a turn waited for it" if started.foreground else ""
    return sentence(
        f"The task was started {duration(now - record.at)} ago by {started.by}{origin}{waited}: {started.title}", record
    )


def _lifetime(started: TaskStarted, at: int) -> str:
    if started.task_kind != "process" or started.foreground:
        return ""
    match started.lifetime:
        case "chapter":
            return "Lifetime: until the next reset of its session."
        case "session":
            return "Lifetime: until its session is archived or deleted."
        case "until":
            return f"Lifetime: {duration((started.until or at) - at + 500)} from its start."
        case _:
            return "Lifetime: until it ends or is stopped."
