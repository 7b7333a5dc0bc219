"""What is true of chapters, freshness and summaries in any history. Shares no code with the rules that it judges."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.events import Record
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.chapter import (
    ChapterOpened,
    ChapterRejoined,
    ResetPolicySet,
    SummaryRequested,
    SummaryStarted,
    SummaryWritten,
)
from holdfast.domain.events.session import (
    AgentChosen,
    InputReceived,
    InputRevised,
    InputsJoined,
    InputWithdrawn,
    StopRequested,
    TurnFinished,
    TurnStarted,
    TurnUndone,
    WaitAnswered,
)
from holdfast.domain.history import AgentMessage, ToolResult, UserMessage
from holdfast.domain.session import Session
from holdfast.domain.session_fold import fold
from tests.actors import person
from tests.domain.book import ID

PERSON = person("ann")
"""Whoever else speaks in these histories is none."""


def freshness(records: Sequence[Record]) -> tuple[int | None, int | None]:
    """When a chapter was begun by a person, and when a person was last there or was answered."""
    begun = fresh = None
    said_by: dict[str, Actor] = {}
    asked = False
    for record in records:
        acted = False
        match record.event:
            case InputReceived() as e:
                said_by[e.input] = e.by
                acted = e.by == PERSON
                begun = record.at if acted and begun is None else begun
            case TurnStarted() as e:
                asked = any(said_by[input] == PERSON for input in e.inputs)
            case InputsJoined() as e:
                asked |= any(said_by[input] == PERSON for input in e.inputs)
            case TurnFinished():
                acted = asked
            case ResetPolicySet() as e:
                begun = record.at if begun is not None else None
                acted = e.by == PERSON
            case (
                StopRequested()
                | WaitAnswered()
                | AgentChosen()
                | TurnUndone()
                | InputRevised()
                | InputWithdrawn()
                | SummaryRequested() as e
            ):
                acted = e.by == PERSON
            case ChapterOpened():
                begun = fresh = None
            case ChapterRejoined():
                begun = fresh = record.at
            case _:
                pass
        if acted and begun is not None:
            fresh = record.at
    return begun, fresh


def check_context(records: Sequence[Record]) -> None:
    """All of the chapter and nothing before it, unless a summary stands for it; what the user said in a turn that is
    covered in part is there.
    """
    starts, covers, turn, ended = [0], [(0, 0)], 0, 0
    said: dict[str, str] = {}
    users: list[tuple[int, str]] = []
    trying: SummaryStarted | None = None
    for record in records:
        match record.event:
            case InputReceived() as e:
                said[e.input] = e.text if e.by == PERSON else ""
            case TurnStarted() | InputsJoined() as e:
                turn = e.turn
                users += [(turn, said[input]) for input in e.inputs if said[input]]
            case TurnFinished():
                ended = turn
            case TurnUndone() as e:
                users = [one for one in users if one[0] != e.turn]
            case ChapterOpened():
                assert ended == turn, "a reset cut a turn"
                assert trying is None, "a reset cut a summary"
                starts.append(turn)
                covers.append((0, 0))
            case ChapterRejoined():
                assert trying is None, "the chapter of a summary was closed"
                starts.pop()
                covers.pop()
            case SummaryStarted() as e:
                trying = e
            case SummaryWritten() as e:
                end = (e.covers_turn, e.covers_step or 10**9)
                assert e.source == "digest" or (
                    trying is not None
                    and (trying.purpose, trying.covers_turn, trying.covers_step)
                    == (e.purpose, e.covers_turn, e.covers_step)
                )
                trying = None
                if e.purpose == "compaction":
                    assert e.covers_turn <= ended or e.covers_step, "an open turn was covered as a whole"
                    assert e.covers_turn <= turn
                    assert end >= max((starts[-1], 10**9), covers[-1]), "a summary of what is not there"
                    covers[-1] = end
            case event if type(event).__name__ == "SummaryFailed":
                trying = None
            case _:
                pass
    session = fold(Session(ID), records)
    number, step = covers[-1]
    start = max(starts[-1], number if step == 10**9 else number - 1)
    context = session.visible_messages()
    assert [message.text for message in context if isinstance(message, UserMessage)] == [
        text for number, text in users if number > start
    ]
    called = [call.call for message in context if isinstance(message, AgentMessage) for call in message.calls]
    answered = [message.call for message in context if isinstance(message, ToolResult)]
    open_calls = list(session.turn.open_calls) if session.turn is not None else []
    assert sorted(called) == sorted(answered + open_calls), "a call was torn from its result"
