"""Notices: which events of the log people are notified of, and what settles a notice. Pure, given the rows that the
event is about.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from holdfast.domain.events import Record, session_stream, task_stream
from holdfast.domain.events.actor import PersonActor
from holdfast.domain.events.card import CardBlocked, CardCompleted, CardMoved, CardUnblocked, RunFinished, RunStarted
from holdfast.domain.events.chapter import BlockedBy, ChapterOpened, ResetPostponed, Survivor
from holdfast.domain.events.external_agent import IMPORTED
from holdfast.domain.events.parts import NotifyChoice
from holdfast.domain.events.session import (
    FailureDismissed,
    InputReceived,
    SessionArchived,
    TurnFinished,
    TurnStarted,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.events.system import GatewayStarted, SessionDeleted, StaleListed
from holdfast.domain.events.task import TaskFinished, TaskPruned
from holdfast.domain.text import shorten, without_markdown
from holdfast.notify_settings import USUAL_NOTICES, NoticeName
from holdfast.store.outbox_store import SettledMatter
from holdfast.store.rows import CardRow, SessionRow, TaskRow

OF_THE_GATEWAY: tuple[NoticeName, ...] = ("reset", "stale", "upgrade", "disk_full")
"""Kinds that no single piece of work is about; they go to the home channel."""
OF_WORK: tuple[NoticeName, ...] = USUAL_NOTICES
"""Kinds that are about a piece of work: a person can choose to be notified of them always, or never."""
DETAIL = 500
NAME, NAMED = 60, 4
"""How much of a title is in a list of tasks, and how many are named in it."""
BLOCKED_BY: dict[BlockedBy, str] = {
    "process": "one of its commands is working",
    "turn": "an agent is working in it",
    "question": "it waits for an answer",
    "queue": "messages wait in its queue",
}
IS_BLOCKED = "is blocked"
WHOLE_CALL = 120
"""How many characters of a call can be read at a glance on a small screen."""
NOTIFYING: tuple[type, ...] = (
    *(WaitOpened, TurnFinished, ChapterOpened, ResetPostponed, TaskFinished, StaleListed, GatewayStarted),
    *(CardBlocked, CardCompleted, CardMoved, RunFinished),
)
"""The events that people may be notified of."""
SETTLING: tuple[type, ...] = (
    *(WaitAnswered, TurnStarted, TurnFinished, InputReceived, FailureDismissed, SessionArchived, SessionDeleted),
    *(TaskPruned, CardUnblocked, CardCompleted, CardMoved, RunStarted),
)
"""The events that may settle a notice."""
OF_INTEREST = frozenset(kind.__name__ for kind in (*NOTIFYING, *SETTLING))


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a person is notified of."""

    matter: str
    """What it is about: a newer notice about the same matter replaces this one."""
    kind: NoticeName
    title: str
    """Of the session, the task or the card."""
    summary: str
    """What happened, in words that give nothing away."""
    detail: str = ""
    """The question, the reason, the last words."""
    link: str
    stream: str
    seq: int
    at: int
    wait: str = ""
    """The wait that it asks for an answer to."""
    choices: list[str] = []
    """The answers that may be offered to somebody who sees the detail and nothing more."""


class Subject(NamedTuple):
    """The rows that an event is about, as they are now."""

    session: SessionRow | None = None
    of_card: bool = False
    """The session belongs to the run of a card; people are notified of the card instead."""
    task: TaskRow | None = None
    card: CardRow | None = None
    tell: NotifyChoice = "default"
    """What a person chose for it."""


def settled_by(record: Record) -> list[SettledMatter]:
    """Return what an event settles. No row is needed for that, and most events only settle something."""
    event, (_, _, id) = record.event, record.stream.partition("/")
    wait, turn, card = f"wait/{id}", f"turn/{id}", f"card/{id}"
    match event:
        case WaitAnswered():
            how = f"answered by {event.by}"
            return [_settled(record, wait, f"{how}: {event.answer}" if _is_choice(event) else how)]
        case TurnFinished():
            return [_settled(record, wait, f"the turn is over: {event.outcome}")]
        case TurnStarted():
            return [_settled(record, turn, "its work continued")]
        case FailureDismissed() | SessionArchived():
            return [_settled(record, turn, "dealt with")]
        case InputReceived(by=PersonActor()):
            return [_settled(record, turn, "a message was sent")]
        case SessionDeleted(session=session):
            return [_settled(record, f"{noun}/{session}", "the session was deleted") for noun in ("wait", "turn")]
        case TaskPruned(task=task):
            return [_settled(record, f"task/{task}", "the task was deleted")]
        case CardCompleted() if not isinstance(event.by, PersonActor):
            return [_settled(record, card, "done")]
        case CardMoved(status="review") if not isinstance(event.by, PersonActor):
            return []
        case CardUnblocked() | CardMoved() | CardCompleted() | RunStarted():
            return [_settled(record, card, "somebody dealt with the card")]
        case _:
            return []


def notice_of(record: Record, subject: Subject) -> Notice | None:
    """Return the notice that an event causes."""
    if subject.session is not None:
        return _by_session(record, subject.session, of_card=subject.of_card)
    if subject.task is not None:
        return _by_task(record, subject.task)
    if subject.card is not None:
        return _by_card(record, subject.card)
    return _by_gateway(record)


# --- sessions -----------------------------------------------------------------------------------


def _by_session(record: Record, session: SessionRow, *, of_card: bool) -> Notice | None:
    event, id = record.event, session.id
    wait, turn = f"wait/{id}", f"turn/{id}"
    match event:
        case WaitOpened(purpose="approval"):
            notice = _of_session(record, session, wait, "approval", "asks for an approval", event.reason)
            if (not event.means or "allow" in event.means) and (whole := _whole_call(event)):
                return replace(notice, wait=event.wait, choices=["allow", "deny"], detail=whole)
            return replace(notice, wait=event.wait, choices=["deny"])
        case WaitOpened(purpose="question"):
            notice = _of_session(record, session, wait, "question", "asks a question", event.reason)
            return replace(notice, wait=event.wait, choices=event.choices)
        case WaitOpened(purpose="login"):
            return _of_session(record, session, wait, "question", "waits until its agent is logged in", event.reason)
        case WaitOpened(purpose="quota", until=None):
            return _of_session(record, session, wait, "question", "has used up its quota", event.reason)
        case WaitOpened(purpose="quota"):
            said = "has used up its quota and continues by itself"
            return _of_session(record, session, wait, "question", said, event.reason)
        case WaitOpened(purpose="resume" | "compaction"):
            return _of_session(record, session, wait, "question", "asks whether to continue", event.reason)
        case TurnFinished() if session.task or of_card:  # the notice is about its task or its card
            return None
        case TurnFinished(reason=reason) if reason == IMPORTED:  # it was long ago, and elsewhere
            return None
        case TurnFinished(outcome="done"):
            return _of_session(record, session, turn, "done", "has answered", session.preview)
        case TurnFinished(outcome="failed"):
            return _of_session(record, session, turn, "failed", "failed", event.reason)
        case ChapterOpened(rule="idle" | "daily", notify=True) if event.kept or event.stopped:
            parts = [f"was reset, since {event.reason}", *_by_rule("kept running", event.kept)]
            summary = "; ".join([*parts, *_by_rule("stopped", event.stopped)])
            lines = [f"{one.title}: {one.activity}, {one.evidence}" for one in (*event.kept, *event.stopped)]
            return _of_session(record, session, f"reset/{id}", "reset", summary, "\n".join(lines))
        case ResetPostponed():
            why = ", ".join(dict.fromkeys(BLOCKED_BY[blocker.by] for blocker in event.blockers))
            reasons = "\n".join(blocker.reason for blocker in event.blockers)
            return _of_session(
                record, session, f"reset/{id}", "reset", f"was not reset when it was due, since {why}", reasons
            )
        case _:
            return None


def _by_rule(what: str, tasks: list[Survivor]) -> list[str]:
    """Name what became of tasks, and the rule that decided it."""
    rules: dict[str, list[str]] = {}
    for one in tasks:
        rules.setdefault(one.rule, []).append(shorten(one.title, NAME))
    return [f"{what} ({rule}): {_listed(titles)}" for rule, titles in rules.items()]


def _listed(titles: list[str]) -> str:
    more = len(titles) - NAMED
    return ", ".join(titles[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _whole_call(event: WaitOpened) -> str:
    """Return what an approval allows, word for word, if that is one short argument and a directory; else empty."""
    given = [argument for argument in event.shown if not argument.usual and argument.name != "cwd"]
    places = [argument for argument in event.shown if argument.name == "cwd"]
    if len(given) != 1 or given[0].value not in event.reason:
        return ""
    if any(one.left_out or len(one.value) > WHOLE_CALL or not one.value.isprintable() for one in (*given, *places)):
        return ""
    return " ".join([event.reason, *(f"In {place.value}" for place in places)])


def _is_choice(event: WaitAnswered) -> bool:
    """Whether the answer is one of a few words, and not a text that somebody wrote."""
    return event.answer in {"allow", "call", "session", "always", "deny"}


def _of_session(
    record: Record, session: SessionRow, matter: str, kind: NoticeName, summary: str, detail: str
) -> Notice:
    return Notice(
        matter=matter,
        kind=kind,
        title=session.title or "Untitled session",
        summary=summary,
        detail=_short(detail),
        link=f"/s/{session.id}",
        stream=session_stream(session.id),
        seq=record.seq,
        at=record.at,
    )


# --- tasks --------------------------------------------------------------------------------------


def _by_task(record: Record, task: TaskRow) -> Notice | None:
    event = record.event
    if not isinstance(event, TaskFinished) or task.kind == "card" or task.is_turn:  # about its card or session
        return None
    if event.outcome == "stopped" or (task.tell != "always" and (task.foreground or task.left_by)):
        return None
    done = event.outcome == "done"
    return Notice(
        matter=f"task/{task.id}",
        kind="done" if done else "failed",
        title=task.title,
        summary="is done" if done else "failed",
        detail=_short(event.summary or event.reason),
        link=f"/tasks/{task.id}",
        stream=task_stream(task.id),
        seq=record.seq,
        at=record.at,
    )


# --- cards --------------------------------------------------------------------------------------


def _by_card(record: Record, card: CardRow) -> Notice | None:
    event = record.event
    match event:
        case CardBlocked() if not isinstance(event.by, PersonActor):
            return _of_card(record, card, "blocked", IS_BLOCKED, event.reason)
        case CardCompleted() if not isinstance(event.by, PersonActor):
            return _of_card(record, card, "done", "is done", event.summary)
        case CardMoved(status="review") if not isinstance(event.by, PersonActor):
            return _of_card(record, card, "blocked", "waits for a review", event.reason)
        case RunFinished(failure="frozen"):
            return _of_card(record, card, "stalled", "stalled: its worker did nothing and was ended", event.reason)
        case _:
            return None


def _of_card(record: Record, card: CardRow, kind: NoticeName, summary: str, detail: str) -> Notice:
    return Notice(
        matter=f"card/{card.id}",
        kind=kind,
        title=f"{card.label} {card.title}",
        summary=summary,
        detail=_short(detail),
        link=f"/board/{card.board}/{card.label}",
        stream=f"card/{card.id}",
        seq=record.seq,
        at=record.at,
    )


# --- the gateway itself -------------------------------------------------------------------------


def _by_gateway(record: Record) -> Notice | None:
    match record.event:
        case StaleListed(tasks=tasks, reasons=reasons):
            count = f"{len(tasks)} running command{'s are' if len(tasks) > 1 else ' is'} no longer needed"
            return _of_gateway(record, "stale", count, "\n".join(reasons), link="/tasks")
        case GatewayStarted(version=version, version_before=before) if before and version != before:
            return _of_gateway(
                record, "upgrade", f"runs in version {version} now; before it was {before}", "", link="/"
            )
        case _:
            return None


def _of_gateway(record: Record, kind: NoticeName, summary: str, detail: str, *, link: str) -> Notice:
    return Notice(
        matter=f"gateway/{kind}",
        kind=kind,
        title="Holdfast",
        summary=summary,
        detail=_short(detail),
        link=link,
        stream=record.stream,
        seq=record.seq,
        at=record.at,
    )


def _short(text: str) -> str:
    """A text for a small screen: without Markdown, cut."""
    lines = [shorten(line, DETAIL) for line in without_markdown(text[: 4 * DETAIL]).splitlines()]
    joined = "\n".join(line for line in lines if line)
    return joined if len(joined) <= DETAIL else joined[: DETAIL - 1] + "…"


def _settled(record: Record, matter: str, how: str) -> SettledMatter:
    return SettledMatter(matter=matter, seq=record.seq, at=record.at, how=how)
