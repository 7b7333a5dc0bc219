"""What must be true of the log of a card, whatever came."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.card import Card, fold_card
from holdfast.domain.events import Record
from holdfast.domain.events.card import (
    CardBlocked,
    CardCommented,
    CardCompleted,
    RunFinished,
    RunHeartbeat,
    RunReminded,
    RunStarted,
)


def folded(id: str, records: Sequence[Record]) -> Card:
    return fold_card(Card(id), records)


def check_card(records: Sequence[Record]) -> Card:
    """One run at a time, each ended once, and no word of a run that is over."""
    assert [record.version for record in records] == list(range(1, len(records) + 1))
    id = records[0].stream.removeprefix("card/")
    runs, running, card = 0, 0, Card(id)
    last_ended = 0
    comments: list[str] = []
    for record in records:
        match record.event:
            case RunStarted(run=run, resumed_run=resumes):
                assert (running, run) == (0, runs + 1), "one worker"
                assert resumes < run
                if resumes:
                    assert card.runs[resumes - 1].finished is not None
                    assert card.runs[resumes - 1].started.session == record.event.session
                runs, running = run, run
            case RunFinished(run=run):
                assert run == running, "only the open run ends, and once"
                running, last_ended = 0, run
            case RunHeartbeat(run=run) | RunReminded(run=run):
                assert run == running
            case CardCompleted(run=run) | CardBlocked(run=run):
                assert running == 0, "the run ends first"
                assert run in (0, last_ended), "the word of an earlier run"
            case CardCommented(comment=comment):
                assert comment not in comments, "a comment is written once"
                comments.append(comment)
            case _:
                pass
        card = fold_card(card, [record])
        assert (card.status == "running") == (card.run is not None)
        assert (card.status == "blocked") == (card.block is not None)
    assert card == folded(id, records)
    return card
