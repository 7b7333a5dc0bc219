"""`why` about a card: its column and the reason, what its run does, and how earlier runs ended."""

from __future__ import annotations

from holdfast.domain.card import Card
from holdfast.domain.rights import describe
from holdfast.domain.session import Session
from holdfast.domain.text import duration
from holdfast.domain.why.sentence import Sentence, sentence
from holdfast.domain.why.session import why

RUNS = 5


def why_card(card: Card, reason: str, session: Session | None, *, now: int) -> list[Sentence]:
    """The whole answer, the most important sentence first. `reason` says why it is not started, if it is not."""
    since = duration(now - card.moved.at)
    run = card.run
    found: list[Sentence] = []
    if run is not None:
        who = f"run {run.number}" + (
            f", which resumed run {run.started.resumed_run}" if run.started.resumed_run else ""
        )
        doing = "" if session is None else f" {why(session, now=now)[0].text}"
        note = f" It said: {run.note}" if run.note else ""
        text = f"It has been running for {since}: {who}, in session {run.started.session}.{doing}{note}"
        found.append(sentence(text, run.at))
    elif reason:
        found.append(sentence(f"{reason} (For {since}.)", card.moved))
    else:
        found.append(sentence("Nothing blocks it; it is being started now.", card.moved))
    if card.rights is not None:
        found += [Sentence(text, 1, card.created_at) for text in describe(card.rights)]
    if card.runs and card.runs[-1].started.fresh_reason:
        text = f"Its last run began with a fresh session: {card.runs[-1].started.fresh_reason}."
        found.append(sentence(text, card.runs[-1].at))
    for one in reversed(card.runs[-RUNS:]):
        if one.finished is not None and one.ended is not None:
            end = one.finished
            cost = "an attempt is used up" if end.uses_attempt else "no attempt is used up"
            what = f"{end.outcome} ({end.failure})" if end.failure else end.outcome
            text = f"Run {one.number} ended as {what} {duration(now - one.ended.at)} ago, {cost}: {end.reason}"
            found.append(sentence(text, one.ended))
    return found
