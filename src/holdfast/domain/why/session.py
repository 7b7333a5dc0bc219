"""`why`: what a session is doing or waiting for, since when, and what woke or stopped it.

Every sentence names the event that it rests on.
"""

from __future__ import annotations

import msgspec

from holdfast.domain.events.parts import Call, EventRef
from holdfast.domain.events.session import WaitOpened
from holdfast.domain.next_step import stop_reason
from holdfast.domain.rights import describe
from holdfast.domain.session import Session, Turn
from holdfast.domain.text import duration
from holdfast.domain.why.sentence import Sentence, sentence

ENDED = {"done": "finished", "failed": "failed", "stopped": "was stopped"}


def why(session: Session, *, now: int) -> list[Sentence]:
    """The whole answer, the most important sentence first."""
    sentences: list[Sentence] = []
    turn = session.turn
    if turn is not None:
        sentences += _of_turn(session, turn, now)
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
        text = f"{waits} has been waiting for {duration(now - queued.received.at)}: {_shorten(queued.event.text)}"
        sentences.append(sentence(text, queued.received))
    if session.limited_at is not None:
        sentences += [sentence(text, session.limited_at) for text in describe(session.rights)]
    if session.archived_at is not None:
        sentences.append(sentence("It is archived; a message brings it back.", session.archived_at))
    return sentences


def _of_turn(session: Session, turn: Turn, now: int) -> list[Sentence]:
    since = duration(now - turn.last_done.at)
    rests_on = turn.last_done
    stopping = stop_reason(session)
    if stopping is not None:
        text = f"Turn {turn.number} is about to end: {stopping}."
        rests_on = turn.stop_asked or _interrupt(session) or rests_on
    elif turn.wait is not None:
        text = f"Turn {turn.number} {_waiting(turn.wait, since, now)}"
    elif turn.suspended:
        text = f"Turn {turn.number} is suspended ({turn.suspended}); it resumes when a gateway is running."
    elif turn.asked:
        again = f", attempt {turn.attempts}" if turn.attempts > 1 else ""
        text = f"Turn {turn.number} has been waiting for model {turn.model} for {since} (step {turn.step}{again})."
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


def _waiting(wait: WaitOpened, since: str, now: int) -> str:
    match wait.purpose:
        case "resume":
            return f"has been waiting for a person for {since}: {wait.reason}. Send it a message to go on, or stop it."
        case "question":
            answer = f"Answer with `holdfast answer {wait.wait} TEXT`."
            return f"has been waiting for an answer for {since}: {wait.reason} {answer}"
        case "compaction":
            again = f"`holdfast answer {wait.wait} 'try again'` or `holdfast answer {wait.wait} digest`"
            return f"has been waiting for a person for {since}: {wait.reason}. {again}."
        case "approval":
            left = f" Without an answer it is denied in {duration(max(0, wait.until - now))}." if wait.until else ""
            answer = f"`holdfast answer {wait.wait} --allow` or --deny."
            return f"has been waiting for a permission for {since}: {wait.reason}. {answer}{left}"
        case "retry":
            left = duration(max(0, (wait.until or now) - now))
            return f"tries again in {left}: {wait.reason} Stopping the turn cancels that."


def _interrupt(session: Session) -> EventRef | None:
    return next((queued.received for queued in session.queue if queued.event.mode == "interrupt"), None)


def _named(call: Call) -> str:
    """A tool call by its tool and what it is about: the command, the path, or whatever text it was given first."""
    try:
        given = msgspec.json.decode(call.arguments or "{}", type=dict[str, object])
    except msgspec.DecodeError:
        given = {}
    texts = [value for value in (given.get("command"), given.get("path"), *given.values()) if isinstance(value, str)]
    return f"`{call.tool}` {_shorten(texts[0])}" if texts else f"`{call.tool}`"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:79] + "…"
