"""A session's log as a conversation: who, when, what; each with its version in the log.

The items of the transcript, printed as they come and change. `--json` has every event instead. On a terminal the
text that is being streamed is shown as it comes.
"""

from __future__ import annotations

import json
import time

import click

from holdfast.cli.context import Cli
from holdfast.cli.hints import program
from holdfast.cli.screen import (
    SHORT_ID,
    clean,
    clock,
    dim,
    duration,
    format_date,
    format_time,
    one_line,
    pad,
    shorten,
    terminal_width,
    width,
    wrap,
)
from holdfast.client.events import RecordItem, RecordReceived, TextDelta
from holdfast.client.http import Json
from holdfast.client.lenient import lenient_record
from holdfast.domain.events import Record
from holdfast.domain.transcript import Transcript
from holdfast.domain.transcript_items import (
    Change,
    ChapterItem,
    MessageItem,
    NoteItem,
    NoticeItem,
    QueuedItem,
    StepItem,
    SummaryItem,
    ToolCallView,
    TurnEndItem,
    WaitItem,
)
from holdfast.domain.transcript_text import (
    answer_text,
    call_result,
    chapter_lines,
    notice_text,
    revision_text,
    summary_text,
    turn_end_text,
    wait_text,
)

WHO = len("suspended") + 1
INDENT = 5 + 2 + 8 + 2 + WHO
NARROWEST = 24
COLORS = {"you": "cyan", "board": "cyan", "note": "magenta", "agent": "green", "partial": "yellow", "failed": "red"}
NOTICE_LABELS = {
    "AgentAttached": "agent",
    "SessionAdopted": "adopted",
    "AgentPlanned": "plan",
    "RunBound": "card",
    "RunReleased": "card",
    "TurnBackgrounded": "detached",
    "StopRequested": "stop",
    "TurnSuspended": "suspended",
    "TurnResumed": "resumed",
    "ResetPostponed": "reset",
    "ChapterRejoined": "chapter",
    "ToolResultsTrimmed": "compact",
    "SummaryRequested": "compact",
    "SummaryFailed": "reset",
}
"""The label of a notice; any other has `session`."""


class LogPrinter:
    """Prints what comes of a session: with --json the records, else its items, and on a terminal streamed text."""

    def __init__(self, cli: Cli, *, live: bool = False) -> None:
        self._cli = cli
        self._is_live = live
        self._transcript = Transcript()
        self._flow: WrappedText | None = None
        self._streamed = ""
        """What is on the screen of the step that is being answered."""
        self._day = ""
        self._count = 0

    def show(self, item: RecordItem) -> None:
        """Print one record or piece of text, or that the gateway is away or back; several lines, or none."""
        match item:
            case RecordReceived(record=found) if self._cli.json:
                self._cli.print_json(found, one_line=True)
            case RecordReceived(record=found):
                self._show_record(found)
            case TextDelta():
                if self._is_live and not self._cli.json:
                    self._show_text(item)
            case _:
                self._end_flow()
                self._cli.note(dim(str(item)))

    def end(self) -> None:
        """After the last record: what is still running, or that there is nothing."""
        for step in self._transcript.items:
            for call in step.calls if isinstance(step, StepItem) else ():
                if call.state == "running":
                    at = call.started_at or step.at
                    self._entry(str(step.version), at, "tool", call_text(call), "· started, no outcome yet")
        if self._count == 0 and not self._cli.json:
            self._cli.note("Nothing after that version.")

    def _show_record(self, found: Json) -> None:
        self._count += 1
        record = lenient_record(found)
        if record is None:  # of a newer gateway
            return
        changes = self._transcript.apply(record)
        if record.version == 1:
            self._notice(record, "session", f"profile {self._transcript.profile} in {self._transcript.cwd}")
        for change in changes:
            self._show_change(record, change)
        self._transcript.take_settled()  # they are on the screen: a long log is not held in memory

    def _show_text(self, piece: TextDelta) -> None:
        """Text that no event has yet: shown at once, confirmed or marked as partial later."""
        changes = self._transcript.apply_delta(
            piece.turn,
            piece.step,
            offset=piece.offset,
            text=piece.text,
            thinking_offset=piece.thinking_offset,
            thinking=piece.thinking,
        )
        for change in changes:
            if isinstance(change.item, StepItem):
                self._stream(change.item.text)

    # --- items ----------------------------------------------------------------------------------

    def _show_change(self, record: Record, change: Change) -> None:
        match change.item:
            case MessageItem() | NoteItem() as item:
                self._message(record, item, is_new=change.kind == "added")
            case StepItem() if change.call is not None:
                self._call(record, change.call)
            case StepItem() as item if item.state != "live":
                self._step(record, item)
            case WaitItem(answer=None) as item:
                self._notice(record, "waiting", wait_text(item, clock=format_time))
            case WaitItem(answer=answer) if answer is not None:
                self._notice(record, "answered", f"{answer.by} answered: {answer_text(answer)}")
            case ChapterItem(undone=False) as item:
                undo = f"undo: {program()} sessions undo-reset {record.stream.removeprefix('session/')[:SHORT_ID]}"
                self._notice(record, "chapter", f"{item.chapter} begins: {item.reason}")
                self._below([*chapter_lines(item), undo])
            case SummaryItem(replaced=False) as item:
                self._notice(record, "compact", summary_text(item, clock=format_time))
                self._below(item.summary.splitlines())
            case TurnEndItem(undone=False) as item:
                self._notice(record, "turn" if item.outcome == "done" else item.outcome, turn_end_text(item))
            case NoticeItem(event=event):
                label = NOTICE_LABELS.get(type(event).__name__, "session")
                self._notice(record, label, notice_text(event, clock=format_time))
            case _:  # a step begins; what was undone or replaced is reported by the event that did it
                pass

    def _message(self, record: Record, item: QueuedItem, *, is_new: bool) -> None:
        who = "note" if isinstance(item, NoteItem) else "board" if item.source in ("run", "reminder") else "you"
        which = f"Message {item.version}"
        if is_new:
            self._record(record, who, item.text, _came_as(item))
        elif item.state == "withdrawn":
            self._notice(record, "queue", f"{which} was withdrawn by {item.withdrawn_by}.")
        elif item.state == "joined":
            self._notice(record, "queue", f"{which} joined turn {item.turn}.")
        elif item.state == "taken" and record.version > item.version + 1:
            self._notice(record, "queue", f"Turn {item.turn} took message {item.version}.")
        elif item.state == "queued" and item.revisions[-1].text is not None:
            self._record(record, who, item.text, f"({revision_text(item.revisions[-1])})")
        elif item.state == "queued":
            self._notice(record, "queue", f"{which} was {revision_text(item.revisions[-1])}.")

    def _step(self, record: Record, item: StepItem) -> None:
        streamed, self._streamed = self._streamed, ""
        if item.state == "done" and streamed and item.text.startswith(streamed):
            self._write(item.text[len(streamed) :])
            self._cli.echo(dim(f" (version {record.version})"))
            self._flow = None
        elif item.state == "done" and item.text.strip():
            self._record(record, "agent", item.text, f"— cut: {item.cut_reason}" if item.cut_reason else "")
        elif item.state != "done" and (item.text or streamed):
            reason = item.problem.message if item.problem is not None else item.cut_reason
            self._record(record, "partial", item.text, f"— cut: {reason}")

    def _call(self, record: Record, call: ToolCallView) -> None:
        if call.duration_ms is None:
            return
        task = f" · task {call.task}" if call.task else ""
        problem = "" if call.state in ("done", "started") else f"\n{call.output}"
        self._record(
            record, "tool", f"{call_text(call)} · {call_result(call)} · {duration(call.duration_ms)}{task}{problem}"
        )

    # --- lines ----------------------------------------------------------------------------------

    def _record(self, record: Record, who: str, text: str, note: str = "") -> None:
        self._entry(str(record.version), record.at, who, text, note)

    def _notice(self, record: Record, who: str, text: str) -> None:
        self._entry(str(record.version), record.at, who, "", text)

    def _below(self, lines: list[str]) -> None:
        for line in lines:
            self._cli.echo("\n".join(" " * INDENT + dim(part) for part in wrap(clean(line), _room())))

    def _entry(self, version: str, at: int, who: str, text: str, note: str) -> None:
        self._end_flow()
        self._new_day(at)
        lines = wrap(clean(text), _room()) if text else [""]
        self._cli.echo(_head(version, at, who) + "\n".join(_indented(lines, clean(note))))

    def _stream(self, whole: str) -> None:
        new, self._streamed = whole[len(self._streamed) :], whole
        self._write(new)

    def _write(self, text: str) -> None:
        shown = clean(text)
        if not shown:
            return
        if self._flow is None:
            now = int(time.time() * 1000)
            self._new_day(now)
            self._cli.echo(_head("…", now, "agent"), nl=False)
            self._flow = WrappedText(self._cli)
        self._flow.write(shown)

    def _end_flow(self) -> None:
        if self._flow is not None:
            self._flow = None
            self._cli.echo()

    def _new_day(self, at: int) -> None:
        today = format_date(at)
        if today != self._day:
            self._day = today
            self._cli.echo(dim(f"{'':5}  {today}"))


class WrappedText:
    """Text that comes in pieces, wrapped beside its heading."""

    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self._column = 0

    def write(self, text: str) -> None:
        """Print a piece; a word that does not fit begins the next line."""
        for index, line in enumerate(text.split("\n")):
            if index:
                self._break()
            for word in _words(line):
                self._word(word)

    def _word(self, word: str) -> None:
        if width(word) > _room():
            for character in word:
                self._put(character)
        else:
            self._put(word)

    def _put(self, text: str) -> None:
        shown = text
        if self._column + width(text) > _room() and self._column:
            self._break()
            shown = text.lstrip()
        self._cli.echo(shown, nl=False)
        self._column += width(shown)

    def _break(self) -> None:
        self._cli.echo("\n" + " " * INDENT, nl=False)
        self._column = 0


def call_text(call: ToolCallView) -> str:
    """A tool call with its arguments, short."""
    return f"{call.tool} {arguments_text(call.arguments)}".rstrip()


def arguments_text(arguments: str) -> str:
    """The arguments of a call, short."""
    try:
        found = json.loads(arguments)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return shorten(one_line(arguments), 40)
    return " ".join(f"{name}={shorten(one_line(str(value)), 30)}" for name, value in found.items())


def _came_as(item: QueuedItem) -> str:
    """How it came in, when that is worth saying."""
    if isinstance(item, NoteItem):
        return ""
    if item.source == "comment":
        return "(comment)"
    return "" if item.mode == "queue" else f"({item.mode})"


def _room() -> int:
    return max(NARROWEST, terminal_width() - INDENT)


def _head(version: str, at: int, who: str) -> str:
    label = pad(who, WHO)
    color = COLORS.get(who)
    shown = click.style(label, fg=color, bold=True) if color is not None else dim(label)
    return f"{dim(f'{version:>5}  {clock(at)}  ')}{shown}"


def _indented(lines: list[str], note: str) -> list[str]:
    """The lines below each other, the note behind the last one or below it."""
    if note and width(lines[-1]) + 1 + width(note) <= _room():
        lead = f"{lines[-1]} " if lines[-1] else ""
        lines = [*lines[:-1], lead + dim(note)]
    elif note:
        below = [dim(line) for line in wrap(note, _room())]
        lines = below if lines == [""] else [*lines, *below]
    return [lines[0], *(" " * INDENT + line if line else "" for line in lines[1:])]


def _words(line: str) -> list[str]:
    """Each with the blanks before it."""
    words: list[str] = []
    blanks = ""
    for part in line.split(" "):
        words.append(blanks + part)
        blanks = " "
    return [word for word in words if word]
