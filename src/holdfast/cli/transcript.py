"""A session's log as a conversation: who, when, what; each with its version in the log.

Bookkeeping events (a model was asked, a turn began) are left out; `--json` has them all. On a
terminal the text that is being spoken is shown as it comes.
"""

from __future__ import annotations

import time

import click

from holdfast.cli import chapters
from holdfast.cli.actor import by
from holdfast.cli.answer import StreamingText, arguments_line, from_task
from holdfast.cli.call_result import call_result, in_words
from holdfast.cli.hints import program
from holdfast.cli.screen import SHORT_ID, clean, clock, day, dim, duration, pad, terminal_width, width, wrap
from holdfast.client.events import TextDelta
from holdfast.client.http import Json

WHO = len("suspended") + 1
INDENT = 5 + 2 + 8 + 2 + WHO
NARROWEST = 24
"""How the id of an input begins that is a comment on a card."""
COLORS = {"you": "cyan", "board": "cyan", "note": "magenta", "agent": "green", "partial": "yellow", "failed": "red"}


class Transcript:
    """Prints records one after the other."""

    def __init__(self, *, live: bool) -> None:
        self._live = StreamingText() if live else None
        self._flow: Flow | None = None
        self._calls: dict[str, str] = {}
        self._open: dict[str, Json] = {}
        self._day = ""
        self._count = 0

    def happened(self, record: Json) -> None:
        """One record; several lines, or none."""
        event = record["event"]
        self._count += 1
        match event["kind"]:
            case "InputReceived":
                who = "note" if from_task(event) else "board" if event.get("source") in ("run", "reminder") else "you"
                self._entry(record, who, event["text"], _came_as(event))
            case "InputRevised" if event["text"] is not None:
                self._entry(record, "you", event["text"], f"({_revision(event)})")
            case "NoteReceived":
                self._entry(record, "note", event["text"])
            case "ModelResponded":
                self._responded(record)
            case "ModelInterrupted":
                self._cut()
                self._entry(record, "partial", event["text"], f"— cut: {event['reason']}")
            case "ModelFailed" if event["text"]:
                self._cut()
                self._entry(record, "partial", event["text"], f"— cut: {event['problem']['message']}")
            case "ToolCallStarted":
                self._open[event["call"]] = record
            case "ToolCallFinished":
                self._open.pop(event["call"], None)
                task = f" · task {event['task']}" if event.get("task") else ""
                note = f"· {in_words(event)} · {duration(event['duration_ms'])}{task}"
                went_well = call_result(event)[0] in ("done", "started")
                problem = "" if went_well else f"\n{event['output']}"
                self._entry(record, "tool", self._call(event) + f" {note}{problem}")
            case _:
                self._remark(record)

    def spoken(self, piece: TextDelta) -> None:
        """Text that no event holds yet: shown at once, confirmed or marked as partial later."""
        if self._live is None:
            return
        new = clean(self._live.spoken(piece))
        if not new:
            return
        self._speak(new)

    def note(self, text: str) -> None:
        """A remark that is not in the log."""
        self._end_flow()
        click.echo(dim(text), err=True)

    def end(self) -> None:
        """After the last record: what is still open, or that there is nothing."""
        for record in self._open.values():
            self._entry(record, "tool", self._call(record["event"]), "· started, no outcome yet")
        if self._count == 0:
            click.echo("Nothing after that version.", err=True)

    # --- entries --------------------------------------------------------------------------------

    def _remark(self, record: Json) -> None:
        """A line of the runtime, and what belongs below it."""
        who, text = remark(record["event"])
        first, *more = text.split("\n")
        if record["event"]["kind"] == "ChapterOpened":
            more.append(f"undo: {program()} sessions undo-reset {record['stream'].removeprefix('session/')[:SHORT_ID]}")
        if first:
            self._entry(record, who, "", first)
        for line in more:
            click.echo("\n".join(" " * INDENT + dim(part) for part in wrap(clean(line), _room())))

    def _responded(self, record: Json) -> None:
        event = record["event"]
        self._calls |= {call["call"]: call["arguments"] for call in event["calls"]}
        if self._live is not None and self._live.open:
            rest, goes_on = self._live.responded(event)
            if goes_on:
                self._speak(clean(rest))
                click.echo(dim(f" ({record['version']})"))
                self._flow = None
                return
        if event["text"].strip():
            self._entry(record, "agent", event["text"])

    def _speak(self, text: str) -> None:
        if self._flow is None:
            now = int(time.time() * 1000)
            self._new_day(now)
            click.echo(_head("…", now, "agent"), nl=False)
            self._flow = Flow()
        self._flow.write(text)

    def _cut(self) -> None:
        if self._live is not None:
            self._live.cut()

    def _call(self, event: Json) -> str:
        what = arguments_line(self._calls.get(event["call"], ""))
        return f"{event['tool']} {what}".rstrip()

    def _entry(self, record: Json, who: str, text: str, note: str = "") -> None:
        self._end_flow()
        self._new_day(record["at"])
        lines = wrap(clean(text), _room()) if text else [""]
        click.echo(_head(str(record["version"]), record["at"], who) + "\n".join(_indented(lines, clean(note))))

    def _end_flow(self) -> None:
        if self._flow is not None:
            self._flow = None
            click.echo()

    def _new_day(self, at: int) -> None:
        today = day(at)
        if today != self._day:
            self._day = today
            click.echo(dim(f"{'':5}  {today}"))


class Flow:
    """Text that comes in pieces, wrapped beside its heading."""

    def __init__(self) -> None:
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
        click.echo(shown, nl=False)
        self._column += width(shown)

    def _break(self) -> None:
        click.echo("\n" + " " * INDENT, nl=False)
        self._column = 0


def remark(event: Json) -> tuple[str, str]:
    """What is worth telling of the other events, and beside which word."""
    match event["kind"]:
        case "SessionCreated":
            origin = event["origin"]
            forked = ""
            if origin["type"] == "forked":
                forked = f", forked from {origin['parent']} at version {origin['version']}"
            return "session", f"profile {event['profile']} in {event['cwd']}, by {by(event)}{forked}"
        case "AgentChosen":
            model = f" with {event['model']}" if event["model"] else ""
            return "session", f"goes on with profile {event['profile']}{model}, by {by(event)}"
        case "TurnUndone":
            return "session", f"turn {event['turn']} undone by {by(event)}: the model does not see it any more"
        case "FailureDismissed":
            return "session", f"the failure of turn {event['turn']} was dismissed by {by(event)}"
        case "SessionRenamed":
            return "session", f"renamed to “{event['title']}” by {by(event)}"
        case "SessionPinned":
            return "session", f"{'pinned' if event['pinned'] else 'not pinned any more'} by {by(event)}"
        case "InputRevised":
            return "queue", f"a waiting message was {_revision(event)}"
        case "InputWithdrawn":
            return "queue", f"a waiting message was withdrawn by {by(event)}"
        case "SessionArchived":
            return "session", f"archived by {by(event)}"
        case "SessionRestored":
            return "session", f"restored by {by(event)}"
        case "RunBound":
            return (
                "card",
                f"run {event['run']} of card {event['card']} works here; what is said here is a comment on it",
            )
        case "RunReleased":
            return "card", f"run {event['run']} of card {event['card']} is over; this is a session like any other again"
        case "TurnBackgrounded":
            return "detached", f"turn {event['turn']} is task {event['task']} now, by {by(event)}; it goes on here"
        case "StopRequested":
            return "stop", f"asked for by {by(event)}"
        case "TurnSuspended":
            return "suspended", f"turn {event['turn']}: {event['reason']}"
        case "TurnResumed":
            again = f", attempt {event['attempt']}" if event["attempt"] else ""  # 0: it was let go, not killed
            return "resumed", f"turn {event['turn']} after {duration(event['away_ms'])} away{again}: {event['reason']}"
        case "WaitOpened":
            whom = "tries again by itself" if event["purpose"] == "retry" else "waits for you"
            return "waiting", f"turn {event['turn']} {whom}: {event['reason']}"
        case "WaitAnswered":
            return "answered", f"by {by(event)}: {event['answer']}; turn {event['turn']} goes on"
        case "TurnFinished":
            word = "turn" if event["outcome"] == "done" else str(event["outcome"])
            return word, _turn_end(event)
        case _:
            return chapters.remark(event)


def _came_as(event: Json) -> str:
    """How it came in, when that is worth saying."""
    if event.get("source") == "comment":
        return "(comment)"
    return "" if event["mode"] == "queue" else f"({event['mode']})"


def _revision(event: Json) -> str:
    """What was done to a message in the queue, and by whom."""
    done = [
        "reworded" if event["text"] is not None else "",
        f"set to {event['mode']}" if event["mode"] else "",
        f"moved to place {event['place']}" if event["place"] is not None else "",
    ]
    return f"{' and '.join(filter(None, done))} by {by(event)}"


def _turn_end(event: Json) -> str:
    if event["outcome"] == "done":
        return f"{event['turn']} done"
    hint = (event.get("problem") or {}).get("hint")
    return f"turn {event['turn']}: {event['reason']}" + (f" {hint}" if hint else "")


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
