"""The turn that takes a message: who answered, what was said, how it ended; found in the transcript of its session."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.client.events import TextDelta
from holdfast.client.http import Json
from holdfast.client.lenient import lenient_record
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import Outcome
from holdfast.domain.transcript import Transcript
from holdfast.domain.transcript_items import AnyItem, Change, MessageItem, NoticeItem, StepItem, TurnEndItem
from holdfast.schemas.sessions import Accepted

BEFORE = 2
"""How many records before the accepted version to start at, so that the message itself is read."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What became of a message. `turn` is 0 when it was withdrawn before a turn took it."""

    session: str
    turn: int
    outcome: Outcome
    reason: str
    model: str
    text: str
    """All that the agent said in the turn since it took the message."""
    version: int
    """The version of the last event of the turn."""


def read_after(accepted: Accepted) -> int:
    """The version after which a watch must read to see the message. A comment on a card may become one anywhere."""
    return max(0, accepted.version - BEFORE) if accepted.stream.startswith("session/") else 0


class TurnWatch:
    """The turn that takes an input, until it is over or the input was withdrawn."""

    def __init__(self, input: str) -> None:
        self.input = input
        self.turn: int | None = None
        self.outcome: Outcome | None = None
        self.reason = ""
        self.problem: Problem | None = None
        self.version = 0
        self.profile = self.model = ""
        """Who answers; empty until it is known."""
        self._transcript = Transcript()
        self._since = 0
        """The version at which the turn took it."""

    @property
    def text(self) -> str:
        """All that the agent said in this turn since it took the message."""
        steps = (item for item in self._transcript.items if isinstance(item, StepItem) and self._is_answer(item))
        return "\n\n".join(step.text for step in steps if step.state == "done" and step.text.strip())

    def _is_answer(self, step: StepItem) -> bool:
        return step.turn == self.turn and step.version > self._since

    def apply(self, found: Json) -> list[Change]:
        """Fold a record; the changes that belong to the turn."""
        record = lenient_record(found)
        if record is None:  # of a newer gateway
            return []
        before = self.turn
        changes = self._transcript.apply(record)
        for change in changes:
            self._see(change.item, version=record.version)
        if self.turn is None:
            return []
        if before is None or getattr(record.event, "turn", None) == self.turn:
            self.version = record.version
        return [change for change in changes if _turn_of(change.item) == self.turn]

    def apply_delta(self, delta: TextDelta) -> list[Change]:
        """Add streamed text; the changes that belong to the turn."""
        if self.turn is None or delta.turn != self.turn:
            return []
        return self._transcript.apply_delta(delta.turn, delta.step, offset=delta.offset, text=delta.text)

    def _see(self, item: AnyItem, *, version: int) -> None:
        match item:
            case MessageItem(input=self.input, state="withdrawn", withdrawn_by=by):
                self.outcome, self.reason = "stopped", f"{by} withdrew the message before a turn took it"
                self.version = version
            case MessageItem(input=self.input, turn=turn) if turn and self.turn is None:
                self.turn, self._since = turn, version
                self.profile = self._transcript.profile if item.state == "taken" else ""
            case StepItem(turn=self.turn, model=model) if self._is_answer(item):
                self.model = model or self.model
            case TurnEndItem(turn=self.turn):
                self.outcome, self.reason, self.problem = item.outcome, item.reason, item.problem
            case _:
                pass


def _turn_of(item: AnyItem) -> int | None:
    return getattr(item.event if isinstance(item, NoticeItem) else item, "turn", None)
