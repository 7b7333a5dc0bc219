"""The fold: from the events of a session to its state.

`fold` returns a new snapshot and leaves the one before as it is. It finds one function for each kind of event in a
table: those for turns are in `turn_fold.py`, all others here. Snapshots share the history (`History`), so that an event
costs the same however long the conversation is. No I/O, no clock: the same events always give the same state.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from msgspec.structs import replace

from holdfast.domain.chapter import Chapter, evolve_compaction
from holdfast.domain.events import AnyEvent, Record, session_stream
from holdfast.domain.events.chapter import (
    ChapterOpened,
    ChapterRejoined,
    ResetPolicySet,
    ResetPostponed,
    SummaryEvent,
    SummaryRequested,
    SummaryWritten,
    ToolResultsTrimmed,
)
from holdfast.domain.events.parts import Delegated, EventRef, Forked
from holdfast.domain.events.run_binding import RunBound, RunReleased
from holdfast.domain.events.session import (
    AgentChosen,
    ModeChosen,
    NodeChosen,
    SessionArchived,
    SessionCreated,
    SessionPinned,
    SessionRenamed,
    SessionRestored,
    SessionTellSet,
)
from holdfast.domain.fold_parts import FoldTable, recompute_visible, with_activity, with_chapter, with_visible
from holdfast.domain.history import History
from holdfast.domain.rights import NO_LIMITS, intersect
from holdfast.domain.session import Session, trim_results
from holdfast.domain.turn_fold import TURN_EVENTS

SESSION_EVENTS = FoldTable(TURN_EVENTS)


def fold(session: Session, records: Iterable[Record]) -> Session:
    """Return the session after these records."""
    version, at = session.version, session.updated_at
    for record in records:
        if record.version != version + 1:
            raise ValueError(f"{record.stream}: version {record.version} does not follow {version}")
        version, at, event = record.version, record.at, record.event
        evolve_session = SESSION_EVENTS.get(type(event))
        if evolve_session is None:
            raise TypeError(f"{type(event).__name__} does not belong into a session")
        session = evolve_session(session, event, EventRef(version, at))
    return replace(session, version=version, updated_at=at)


def after(session: Session, events: Iterable[AnyEvent], *, at: int) -> Session:
    """Return the session as it will be when these events are appended at this time, and nothing before them."""
    stream = session_stream(session.id)
    numbered = enumerate(events, session.version + 1)
    return fold(
        session, [Record(seq=0, stream=stream, version=version, at=at, event=event) for version, event in numbered]
    )


def evolve(session: Session, record: Record) -> Session:
    """Return the session after one record."""
    return fold(session, (record,))


# --- the session itself -------------------------------------------------------------------------


@SESSION_EVENTS.on(SessionCreated)
def _session_created(session: Session, event: SessionCreated, here: EventRef) -> Session:
    return replace(
        session,
        title=event.title,
        profile=event.profile,
        cwd=event.cwd,
        driver=event.driver,
        home="" if event.node == "local" else event.node,
        task=event.origin.task if isinstance(event.origin, Delegated) else "",
        rights=event.rights or NO_LIMITS,
        workspace_of=event.origin.workspace_of if isinstance(event.origin, Forked) else "",
        limited_at=here if event.rights is not None else None,
        mode=event.mode,
        mode_chosen_at=here if event.mode != "profile" else None,
    )


@SESSION_EVENTS.on(SessionRenamed)
def _session_renamed(session: Session, event: SessionRenamed, _: EventRef) -> Session:
    return replace(session, title=event.title)


@SESSION_EVENTS.on(SessionPinned)
def _session_pinned(session: Session, event: SessionPinned, _: EventRef) -> Session:
    return replace(session, pinned=event.pinned)


@SESSION_EVENTS.on(SessionTellSet)
def _session_tell_set(session: Session, event: SessionTellSet, _: EventRef) -> Session:
    return replace(session, tell=event.tell)


@SESSION_EVENTS.on(SessionArchived)
def _session_archived(session: Session, _: SessionArchived, here: EventRef) -> Session:
    return replace(session, archived_at=here)


@SESSION_EVENTS.on(SessionRestored)
def _session_restored(session: Session, _: SessionRestored, __: EventRef) -> Session:
    return replace(session, archived_at=None)


@SESSION_EVENTS.on(AgentChosen)
def _agent_chosen(session: Session, event: AgentChosen, here: EventRef) -> Session:
    return with_activity(replace(session, profile=event.profile, model=event.model), event.by, here)


@SESSION_EVENTS.on(NodeChosen)
def _node_chosen(session: Session, event: NodeChosen, here: EventRef) -> Session:
    return with_activity(replace(session, node=event.node), event.by, here)


@SESSION_EVENTS.on(ModeChosen)
def _mode_chosen(session: Session, event: ModeChosen, here: EventRef) -> Session:
    return with_activity(replace(session, mode=event.mode, mode_chosen_at=here), event.by, here)


@SESSION_EVENTS.on(RunBound)
def _run_bound(session: Session, event: RunBound, here: EventRef) -> Session:
    session = replace(
        session,
        card=event.card,
        card_number=event.card_number,
        run=event.run,
        cwd=event.cwd or session.cwd,
        workspace_of=event.card,
        must_remember=event.must_remember,
    )
    if event.rights is None:
        return session
    return replace(session, rights=intersect(session.rights, event.rights), limited_at=here)


@SESSION_EVENTS.on(RunReleased)
def _run_released(session: Session, _: RunReleased, __: EventRef) -> Session:
    turn = session.turn
    return replace(session, run=0, must_remember=False, turn=turn and replace(turn, released=turn.step))


# --- chapters -----------------------------------------------------------------------------------


@SESSION_EVENTS.on(ResetPolicySet)
def _reset_policy_set(session: Session, event: ResetPolicySet, here: EventRef) -> Session:
    first_input = None if session.first_input is None else here  # a rule is not about the time before it
    return with_activity(replace(session, policy=event.policy, first_input=first_input), event.by, here)


@SESSION_EVENTS.on(ResetPostponed)
def _reset_postponed(session: Session, event: ResetPostponed, here: EventRef) -> Session:
    return replace(session, postponed=(event, here))


@SESSION_EVENTS.on(ChapterOpened)
def _chapter_opened(session: Session, event: ChapterOpened, here: EventRef) -> Session:
    closed = replace(session.chapter, requested=None)
    chapters = (*session.chapters[:-1], closed, Chapter(event.chapter, session.turns, event, here))
    return recompute_visible(replace(session, chapters=chapters, first_input=None, last_active=None, postponed=None))


@SESSION_EVENTS.on(ChapterRejoined)
def _chapter_rejoined(session: Session, _: ChapterRejoined, here: EventRef) -> Session:
    chapters = session.chapters[:-1]
    return recompute_visible(replace(session, chapters=chapters, first_input=here, last_active=here, postponed=None))


@SESSION_EVENTS.on(ToolResultsTrimmed)
def _tool_results_trimmed(session: Session, event: ToolResultsTrimmed, here: EventRef) -> Session:
    session = with_chapter(session, evolve_compaction(session.chapter, event, here))
    return with_visible(session, History(trim_results(session.visible_messages(), event)), event.tokens_after)


@SESSION_EVENTS.on(*get_args(SummaryEvent))
def _summary_event(session: Session, event: SummaryEvent, here: EventRef) -> Session:
    session = with_chapter(session, evolve_compaction(session.chapter, event, here))
    if isinstance(event, SummaryRequested):
        return with_activity(session, event.by, here)
    if isinstance(event, SummaryWritten) and event.purpose == "compaction":
        return with_visible(session, session.compute_visible(), event.tokens_after)
    return session
