"""What an agent is answered when it asked for a permission or for a form, by what a person chose. Pure."""

from __future__ import annotations

from holdfast.domain.events.external_agent import OwedRequest
from holdfast.domain.events.session import WaitOpened
from holdfast.domain.next_step import wait_id
from holdfast.domain.session import Session, Turn
from holdfast.runtime.external.acp.elicitation import CANCELLED, DECLINE, next_question


def answer_to(owed: OwedRequest, session: Session, turn: Turn) -> object | None:
    """Return the result of a request; None while it has no answer."""
    if owed.is_form:
        found = question_of(owed, session, turn)
        return None if isinstance(found, WaitOpened) else found
    choice = _choice(owed, turn)
    return outcome(owed, choice) if choice else None


def is_refused(owed: OwedRequest, turn: Turn) -> bool:
    """Whether a permission was refused."""
    return _choice(owed, turn) in owed.refusals


def _choice(owed: OwedRequest, turn: Turn) -> str:
    given = turn.answers.get(owed.call)
    return owed.answer or ("" if given is None else given.answer)


def outcome(owed: OwedRequest, choice: str) -> object:
    """Return the result of a permission."""
    option = owed.options.get(choice)
    if option is None:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": option}}


def cancelled(owed: OwedRequest) -> object:
    """Return the result of a request whose turn was stopped."""
    return CANCELLED if owed.is_form else outcome(owed, "")


def next_wait(session: Session) -> WaitOpened | None:
    """Return the next question of a form that the agent waits for; None if it waits for none."""
    turn, read = session.turn, session.output_read
    assert turn is not None
    for owed in [] if read is None else read.owed:
        if owed.is_form and isinstance(wait := question_of(owed, session, turn), WaitOpened):
            return wait
    return None


def question_of(owed: OwedRequest, session: Session, turn: Turn) -> WaitOpened | dict[str, object]:
    """Return the next question of a form; if there is none, what the agent is answered."""
    found = next_question(owed, turn.answers)
    if isinstance(found, dict):
        return found
    return WaitOpened(
        turn=turn.number,
        wait=wait_id(session, turn),
        purpose="question",
        reason=found.text,
        call=found.key,
        choices=found.choices,
        until=owed.until,
        default=None if owed.until is None else DECLINE,
    )
