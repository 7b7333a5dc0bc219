"""The answer to one message: found in the log, and shown while it is spoken.

`Watch` is pure: it folds records into the outcome of the turn that took the message. `LiveAnswer`
prints text as it comes, on a terminal only; a cut answer is marked, and the new one follows.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field

import click

from holdfast.cli.call_result import in_words
from holdfast.cli.screen import SHORT_ID, clean, dim, duration, one_line, shorten, terminal_width
from holdfast.client.events import RecordReceived, TextDelta
from holdfast.client.http import Json

AGAIN = "— interrupted, starting this step again —"


@dataclass(slots=True)
class Watch:
    """The turn of an input, from the TurnStarted or InputsJoined that names it until TurnFinished."""

    input: str
    turn: int | None = None
    outcome: str | None = None
    reason: str = ""
    problem: Json | None = None
    version: int = 0
    profile: str = ""
    model: str = ""
    """Who answers; empty until it is known."""
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All that the agent said in this turn."""
        return "\n\n".join(self.texts)

    def see(self, seen: RecordReceived) -> bool:
        """Fold a record; whether it belongs to the turn."""
        event = seen.event
        if event["kind"] in ("TurnStarted", "InputsJoined") and self.input in event["inputs"]:
            self.turn = event["turn"]
            self.profile = event.get("profile", self.profile)
        if event["kind"] == "InputWithdrawn" and event["input"] == self.input:
            self.outcome, self.reason = "stopped", f"{event['by']} withdrew the message before a turn took it"
            self.version = seen.record["version"]
        if self.turn is None or event.get("turn") != self.turn:
            return False
        self.version = seen.record["version"]
        if event["kind"] == "ModelRequested":
            self.model = event["model"]
        if event["kind"] == "ModelResponded" and event["text"].strip():
            self.texts.append(event["text"])
        if event["kind"] == "TurnFinished":
            self.outcome, self.reason, self.problem = event["outcome"], event["reason"], event.get("problem")
        return True


class StreamingText:
    """How much of the running step's text is on the screen already."""

    def __init__(self) -> None:
        self._step: tuple[int, int] = (0, 0)
        self._said = ""

    @property
    def open(self) -> bool:
        """Whether there is text that no event has confirmed yet."""
        return bool(self._said)

    def spoken(self, piece: TextDelta) -> str:
        """What of this piece is new. Who attaches again gets the text so far once more."""
        if (piece.turn, piece.step) != self._step:
            self._step, self._said = (piece.turn, piece.step), ""
        if piece.offset > len(self._said):
            return ""
        new = piece.text[len(self._said) - piece.offset :]
        self._said += new
        return new

    def responded(self, event: Json) -> tuple[str, bool]:
        """What is missing of the whole answer, and whether it goes on where the text so far ended."""
        said = self._said if (event["turn"], event["step"]) == self._step else ""
        self._said = ""
        whole = str(event["text"])
        return (whole[len(said) :], True) if whole.startswith(said) else (whole, False)

    def cut(self) -> None:
        """The step is not over: it begins again, or the turn ends here."""
        self._said = ""


class LiveAnswer:
    """Prints an answer as it is spoken: text to standard output, everything else to standard error."""

    def __init__(self) -> None:
        self._live = StreamingText()
        self._calls: dict[str, str] = {}
        self._cut = False
        self._column = 0
        self._spoke = False

    def spoken(self, piece: TextDelta) -> None:
        """A piece of text."""
        self._again()
        self._write(self._live.spoken(piece))

    def happened(self, event: Json) -> None:
        """A fact of the turn."""
        match event["kind"]:
            case "ModelResponded":
                self._responded(event)
            case "ModelInterrupted":
                self._cut = self._live.open
                self._live.cut()
                self._end_line()
            case "ToolCallFinished":
                self.note(tool_line(event, self._calls))
            case "TurnResumed":
                self.note(f"resumed after {duration(event['away_ms'])}: {event['reason']}")
            case "TurnFinished":
                self._end_line()
            case _:
                pass

    def note(self, text: str) -> None:
        """A remark between the lines."""
        self._end_line()
        click.echo(dim(shorten(one_line(text), terminal_width())), err=True)

    def _responded(self, event: Json) -> None:
        self._calls |= {call["call"]: call["arguments"] for call in event["calls"]}
        rest, goes_on = self._live.responded(event)
        if not goes_on:
            self._cut = True
        if rest:
            self._again()
            self._write(rest)
        self._end_line()
        self._spoke = self._spoke or bool(event["text"].strip())

    def _again(self) -> None:
        """Before new text: say that the last piece was cut, or leave a blank line between two answers."""
        if self._cut:
            self._cut = False
            self.note(AGAIN)
        elif self._spoke and not self._live.open:
            self._spoke = False
            self._write("\n")

    def _write(self, text: str) -> None:
        shown = clean(text)
        if shown:
            sys.stdout.write(shown)
            sys.stdout.flush()
            self._column = 0 if shown.endswith("\n") else 1

    def _end_line(self) -> None:
        if self._column:
            self._write("\n")


def tool_line(event: Json, calls: dict[str, str]) -> str:
    """A finished tool call in one line."""
    what = arguments_line(calls.get(event["call"], ""))
    task = f" · task {event['task'][:SHORT_ID]}" if event.get("task") else ""
    return f"⚙ {event['tool']}{' ' + what if what else ''} · {in_words(event)} · {duration(event['duration_ms'])}{task}"


def from_task(event: Json) -> bool:
    """Whether an input is the runtime's word about a task, and no person's."""
    return event.get("source") == "task"


def arguments_line(arguments: str) -> str:
    """The arguments of a call, short."""
    try:
        found = json.loads(arguments)
    except ValueError:
        return shorten(one_line(arguments), 40)
    if not isinstance(found, dict):
        return shorten(one_line(arguments), 40)
    return " ".join(f"{name}={shorten(one_line(str(value)), 30)}" for name, value in found.items())
