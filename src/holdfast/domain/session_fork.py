"""What a fork of a session begins with: copies of the events of its parent."""

from __future__ import annotations

from hashlib import blake2s

import msgspec

from holdfast.domain.events import AnyEvent, Record
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.chapter import (
    ResetPolicySet,
    ResetPostponed,
    SummaryFailed,
    SummaryRequested,
    SummaryStarted,
    SummaryWritten,
)
from holdfast.domain.events.external_agent import AgentAttached, DriverOutputRead, SessionAdopted
from holdfast.domain.events.parts import Forked, Usage
from holdfast.domain.events.run_binding import RunBound, RunReleased
from holdfast.domain.events.session import (
    FailureDismissed,
    InputReceived,
    InputRevised,
    InputWithdrawn,
    ModelResponded,
    SessionArchived,
    SessionCreated,
    SessionPinned,
    SessionRenamed,
    SessionRestored,
    SessionTellSet,
    StopRequested,
    TurnBackgrounded,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.next_step import Finish, Partial, closing_events
from holdfast.domain.queue import edited
from holdfast.domain.session import Session
from holdfast.domain.session_fold import fold

TimedEvents = list[tuple[int, AnyEvent]]


def fork(parent: list[Record], *, session: str, title: str, by: Actor, now: int, host: str = "") -> TimedEvents:
    """Return the events of a fork with their times: copies of those of its parent. `host` worked on that last.

    What no turn had taken stays behind, and a turn that was open is closed as far as it had come. The rules for
    its reset count from now on: what happened long ago does not make it idle. Costs are counted in the parent only.
    """
    copy = fold(Session(session), parent)
    dropped, reads = edited(parent)
    dropped |= {queued.event.input for queued in copy.queue}
    last, source = parent[-1].version, parent[0].stream.removeprefix("session/")
    born = SessionCreated(
        session=session,
        profile=copy.profile,
        cwd=copy.cwd,
        title=title,
        by=by,
        driver=copy.driver,
        origin=Forked(parent=source, version=last, workspace_of=copy.workspace_of),
        rights=copy.rights if copy.rights.layers else None,
        mode=copy.mode,
        node=copy.home or host or "local",
    )
    events: TimedEvents = [(parent[0].at, born)]
    for record in parent[1:]:
        match record.event:
            case InputReceived(input=input):
                if input not in dropped:
                    events.append((record.at, reads[input]))
            case (
                RunBound()
                | RunReleased()
                | InputRevised()
                | InputWithdrawn()
                | SessionPinned()
                | SessionTellSet()
                | SessionRenamed()
                | StopRequested()
            ):
                continue
            case AgentAttached() | DriverOutputRead() | SessionAdopted():
                continue
            case SessionArchived() | SessionRestored() | TurnBackgrounded() | ResetPostponed() | ResetPolicySet():
                continue
            case SummaryRequested() | SummaryStarted() | SummaryFailed() | SummaryWritten(purpose="hand_over"):
                continue
            case WaitOpened(wait=wait) | WaitAnswered(wait=wait) as event:
                renamed = msgspec.structs.replace(event, wait=_wait_of_fork(session, wait))
                events.append((record.at, renamed))
            case ModelResponded() | SummaryWritten() as event:  # paid for there, not here
                usage = Usage(context_tokens=event.usage.context_tokens)
                events.append((record.at, msgspec.structs.replace(event, usage=usage)))
            case event:
                events.append((record.at, event))
    if copy.turn is not None:
        finish = Finish(copy.turn.number, "stopped", "the session was forked here")
        alone = msgspec.structs.replace(copy, queue=())
        events += [(parent[-1].at, event) for event in closing_events(alone, finish, Partial(), now=parent[-1].at)]
    if copy.turn is None and copy.last_turn is not None and copy.last_turn.outcome == "failed":
        events.append((now, FailureDismissed(turn=copy.last_turn.number, by=by)))  # it failed there, not here
    events.append((now, ResetPolicySet(policy=copy.policy, by=by)))
    return events


def _wait_of_fork(session: str, wait: str) -> str:
    """Return the id of the copy of a wait; ids of waits are unique in the home."""
    return blake2s(f"{session}/{wait}".encode(), digest_size=6).hexdigest()
