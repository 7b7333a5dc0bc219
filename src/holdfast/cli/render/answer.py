"""The answer to one message as it is streamed, on a terminal: a cut answer is marked, and the new one follows."""

from __future__ import annotations

from holdfast.cli.context import Cli
from holdfast.cli.render.transcript import call_text
from holdfast.cli.screen import SHORT_ID, clean, dim, duration, one_line, shorten, terminal_width
from holdfast.domain.events.session import TurnResumed
from holdfast.domain.transcript_items import Change, NoticeItem, StepItem, ToolCallView, TurnEndItem, WaitItem
from holdfast.domain.transcript_text import call_result, notice_text

AGAIN = "— interrupted, starting this step again —"


class AnswerPrinter:
    """Prints an answer as it is streamed; everything else goes to standard error."""

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
                    self.note(shorten(one_line(call_line(call, call.duration_ms)), terminal_width()))
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
        """Print a remark on lines of its own. Nothing is cut off: it may end with a command to copy."""
        self._end_line()
        self._cli.note(dim(clean(text)))

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
