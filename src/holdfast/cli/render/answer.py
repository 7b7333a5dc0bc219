"""The answer to one message: found in the transcript of its session, and shown while it is streamed.

`AnswerWatch` finds the turn that took the message and its outcome. `AnswerPrinter` prints text as it comes, on a
terminal only; a cut answer is marked, and the new one follows.
"""

from __future__ import annotations

from holdfast.cli.context import Cli
from holdfast.cli.render.transcript import call_text
from holdfast.cli.screen import SHORT_ID, clean, dim, duration, one_line, shorten, terminal_width
from holdfast.client.events import TextDelta
from holdfast.client.http import Json
from holdfast.domain.events.lenient import lenient_record
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import TurnResumed
from holdfast.domain.transcript import Transcript
from holdfast.domain.transcript_items import (
    AnyItem,
    Change,
    MessageItem,
    NoticeItem,
    StepItem,
    ToolCallView,
    TurnEndItem,
    WaitItem,
)
from holdfast.domain.transcript_text import call_result, notice_text

AGAIN = "— interrupted, starting this step again —"


class AnswerWatch:
    """The turn that takes an input, until it is over or the input was withdrawn."""

    def __init__(self, input: str) -> None:
        self.input = input
        self.turn: int | None = None
        self.outcome: str | None = None
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
    if isinstance(item, NoticeItem):
        return getattr(item.event, "turn", None)
    return getattr(item, "turn", None)


class AnswerPrinter:
    """Prints an answer as it is streamed; everything else is said beside it."""

    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self._streamed = ""
        """What is on the screen of the step that is being answered."""
        self._cut = False
        self._column = 0
        self._spoke = False

    def show(self, change: Change) -> None:
        """Something changed in the turn."""
        match change.item:
            case StepItem() if (call := change.call) is not None:
                if call.duration_ms is not None:
                    self.note(call_line(call, call.duration_ms))
            case StepItem(state="live", text=text) if text:
                self._again()
                self._write(text[len(self._streamed) :])
                self._streamed = text
            case StepItem(state="done") as step:
                self._answered(step.text)
            case StepItem(state="failed", text=text) if text.startswith(self._streamed):
                self._answered(text)
                self._cut = bool(text)
            case StepItem(state="cut" | "failed"):
                self._cut, self._streamed = bool(self._streamed), ""
                self._end_line()
            case NoticeItem(event=TurnResumed() as event):
                self.note(notice_text(event, clock=str))
            case TurnEndItem(undone=False):
                self._end_line()
            case _:
                pass

    def note(self, text: str) -> None:
        """A remark between the lines."""
        self._end_line()
        self._cli.note(dim(shorten(one_line(text), terminal_width())))

    def _answered(self, whole: str) -> None:
        """The whole text of a step; it may differ from what was streamed."""
        is_same = whole.startswith(self._streamed)
        rest = whole[len(self._streamed) :] if is_same else whole
        self._cut = self._cut or not is_same
        if rest:
            self._again()
            self._write(rest)
        self._end_line()
        self._streamed = ""
        self._spoke = self._spoke or bool(whole.strip())

    def _again(self) -> None:
        """Before new text: say that the last piece was cut, or leave a blank line between two answers."""
        if self._cut:
            self._cut = False
            self.note(AGAIN)
        elif self._spoke and not self._streamed:
            self._spoke = False
            self._write("\n")

    def _write(self, text: str) -> None:
        shown = clean(text)
        if shown:
            self._cli.echo(shown, nl=False)
            self._column = 0 if shown.endswith("\n") else 1

    def _end_line(self) -> None:
        if self._column:
            self._write("\n")


def opened_wait(change: Change) -> WaitItem | None:
    """The wait that a change is about, if the turn waits from now on."""
    return change.item if isinstance(change.item, WaitItem) and change.kind == "added" else None


def call_line(call: ToolCallView, took_ms: int) -> str:
    """A finished tool call in one line."""
    task = f" · task {call.task[:SHORT_ID]}" if call.task else ""
    return f"⚙ {call_text(call)} · {call_result(call)} · {duration(took_ms)}{task}"
