"""The session as this terminal sees it: records and deltas in, blocks out, and what is still alive.

Pure but for the clock that it is given. What is finished is handed out once as blocks; what is not
(the piece being spoken, running calls, the queue, an open question) stands in the fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.cli.actor import by
from holdfast.cli.answer import from_task
from holdfast.cli.approvals import is_cut, shown_lines
from holdfast.cli.call_result import call_result
from holdfast.cli.chat.blocks import Asked, Block, Called, Noted, Remark, Said, Tone
from holdfast.cli.chat.chapter import Context, chapter_blocks
from holdfast.cli.chat.queued import Queued, queued_input
from holdfast.cli.chat.speech import Speech
from holdfast.cli.screen import SHORT_ID, duration, one_line, plural
from holdfast.client.events import TextDelta
from holdfast.client.http import Json

QUESTION = "question"
"""The tool by which an agent asks a person."""


@dataclass(slots=True)
class Call:
    """A tool call: what was asked, and what came of it when it is over."""

    number: int
    tool: str
    arguments: str
    started_at: int | None = None
    outcome: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """What the turn waits for."""

    id: str
    purpose: str
    reason: str
    choices: tuple[str, ...]
    until: int | None

    @property
    def wants_answer(self) -> bool:
        """Whether a text that is typed now answers it."""
        return self.purpose in ("question", "approval", "compaction")


def asked(wait: Json, *, arguments: str = "") -> Asked:
    """The question that a wait puts to a person."""
    shown = wait.get("shown") or []
    return Asked(
        wait["purpose"],
        wait["reason"],
        tuple(wait.get("choices") or ()),
        "" if shown else arguments,
        wait.get("pattern") or "",
        tuple(shown_lines(shown)),
        is_cut(shown),
    )


@dataclass(slots=True)
class Turn:
    """The turn at work."""

    number: int
    started_at: int
    stopping: bool = False
    suspended: bool = False
    asked_at: int | None = None
    cut: str = ""


@dataclass(slots=True)
class Cost:
    """What a turn has cost so far."""

    tokens: int = 0
    dollars: float | None = None

    def add(self, usage: Json) -> None:
        """One more model call."""
        self.tokens += int(usage.get("input_tokens", 0)) + int(usage.get("output_tokens", 0))
        cost = usage.get("cost")
        if cost is not None:
            self.dollars = (self.dollars or 0.0) + float(cost)


@dataclass(slots=True)
class View:
    """All that is shown of one session. An empty `session` is one that the first message will begin."""

    clock: Callable[[], float]
    session: str = ""
    title: str = ""
    profile: str = ""
    model: str = ""
    cwd: str = ""
    version: int = 0
    turn: Turn | None = None
    wait: Wait | None = None
    queue: dict[str, Queued] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    cost: Cost = field(default_factory=Cost)
    context: Context = field(default_factory=Context)
    card: str = ""
    """The card whose worker this is, while its run is open: then words are comments on it."""
    speech: Speech = field(init=False)

    def __post_init__(self) -> None:
        self.speech = Speech(self.clock)

    def seed(self, detail: Json) -> None:
        """Begin in the middle: what a snapshot says of the time before the first record that we shall see."""
        row = detail["session"]
        self.session, self.title, self.cwd = row["id"], row["title"], row["cwd"]
        self.profile, self.model = row["profile"], row.get("model") or self.model
        self.queue = {q["input"]: queued_input(q, q["by"]) for q in detail["queue"]}
        if row["state"] == "compacting":
            self.context.compacting = row["updated_at"]
        turns = sorted(detail["turns"], key=lambda turn: int(turn["turn"]))
        if turns:
            last = turns[-1]
            self.cost = Cost(last["input_tokens"] + last["output_tokens"], last.get("cost"))
            if row["state"] in ("running", "waiting", "suspended"):
                self.turn = Turn(last["turn"], last["started_at"], suspended=row["state"] == "suspended")

    def end(self) -> None:
        """Nothing more will be heard of it."""
        self.turn = self.wait = None
        self.queue.clear()

    @property
    def state(self) -> str:
        """One word for what it is doing."""
        if self.turn is None:
            return "queued" if self.queue else "compacting" if self.context.compacting is not None else "idle"
        if self.wait is not None:
            return "waiting"
        return "suspended" if self.turn.suspended else "running"

    @property
    def at_work(self) -> bool:
        """Whether something goes on that nobody has to wait for here."""
        return self.turn is not None or bool(self.queue) or self.context.compacting is not None

    @property
    def running(self) -> list[Call]:
        """The calls that were started and have no outcome."""
        return [call for call in self.calls.values() if call.started_at is not None and not call.outcome]

    def spoken(self, piece: TextDelta) -> list[Block]:
        """A piece of an answer."""
        if self.turn is None or piece.turn != self.turn.number:
            return []
        return self.speech.spoken(piece)

    def happened(self, record: Json) -> list[Block]:
        """One record of the log: the blocks that it finished."""
        event, at = record["event"], int(record["at"])
        self.version = int(record["version"])
        match event["kind"]:
            case "InputReceived":
                queued = queued_input(event, by(event))
                self.queue.setdefault(queued.input, queued)
                self.context.postponed = ""
            case "InputRevised":
                self._revised(event)
            case "InputWithdrawn":
                self.queue.pop(event["input"], None)
            case "NoteReceived":
                return [Noted(event["text"])]
            case "TurnStarted":
                self.turn, self.wait, self.cost = Turn(event["turn"], at), None, Cost()
                return self._took(event["inputs"], "")
            case "InputsJoined":
                return self._took(event["inputs"], "joined the turn")
            case "ModelRequested":
                return self._requested(event, at)
            case "ModelResponded":
                return self._responded(event)
            case "ModelInterrupted":
                self._not_asked(cut=event["reason"])
                return self.speech.cut(event)
            case "ModelFailed":
                partial = event.get("text") or ""
                self._not_asked(cut=event["problem"]["message"].rstrip(".") if partial else "")
                return self.speech.cut(event | {"thinking": ""}) if partial else []
            case "ToolCallStarted":
                self._call(event).started_at = at
            case "ToolCallFinished":
                return self._finished(event)
            case "WaitOpened":
                return self._waits(event)
            case "WaitAnswered":
                return self._answered(event)
            case "StopRequested":
                if self.turn is not None:
                    self.turn.stopping = True
            case "TurnSuspended" | "TurnResumed":
                return self._paused(event)
            case "TurnFinished":
                self.turn = self.wait = None
                return _end_of_turn(event)
            case _:
                return chapter_blocks(self.context, event, at) or self._of_session(event)
        return []

    def _revised(self, event: Json) -> None:
        """A message in the queue reads differently, or stands elsewhere."""
        queued = self.queue.get(event["input"])
        if queued is None:
            return
        queued.text = event["text"] if event["text"] is not None else queued.text
        queued.mode = event["mode"] or queued.mode
        if event["place"] is not None:
            others = [other for other in self.queue.values() if other is not queued]
            others.insert(event["place"] - 1, queued)
            self.queue = {other.input: other for other in others}

    # --- the turn -------------------------------------------------------------------------------

    def _took(self, inputs: list[str], note: str) -> list[Block]:
        taken = [self.queue.pop(input) for input in inputs if input in self.queue]
        return [Noted(queued.text) if queued.is_note else Said(queued.text, _beside(queued, note)) for queued in taken]

    def _requested(self, event: Json, at: int) -> list[Block]:
        self.speech.begin(event["turn"], event["step"])
        self.model = event["model"]
        turn = self.turn
        if turn is None:
            return []
        turn.asked_at, cut, turn.cut = at, turn.cut, ""
        return [Remark(f"cut: {cut}; this step begins again", "warning")] if cut else []

    def _not_asked(self, *, cut: str) -> None:
        if self.turn is not None:
            self.turn.asked_at, self.turn.cut = None, cut

    def _responded(self, event: Json) -> list[Block]:
        self._not_asked(cut="")
        self.cost.add(event["usage"])
        blocks = self.speech.responded(event)
        for call in event["calls"]:
            known = self._call(call)
            known.arguments = call["arguments"]
        if event["finish_reason"] == "length":
            blocks.append(Remark("the answer was cut by the model's length limit", "warning"))
        elif not event["text"].strip() and not event["calls"]:
            blocks.append(Remark("an empty answer"))
        return blocks

    def _call(self, event: Json) -> Call:
        call = self.calls.get(event["call"])
        if call is None:
            call = self.calls[event["call"]] = Call(len(self.calls) + 1, event["tool"], "")
        return call

    def _finished(self, event: Json) -> list[Block]:
        call = self._call(event)
        result, detail = call_result(event)
        call.outcome, call.output = ", ".join(filter(None, (result, detail))), event["output"]
        if call.tool == QUESTION and result == "done":
            return []  # the question and its answer were shown
        took, task = event["duration_ms"], event.get("task") or ""
        return [Called(call.number, call.tool, call.arguments, result, call.output, took, task, detail)]

    def _paused(self, event: Json) -> list[Block]:
        suspended = event["kind"] == "TurnSuspended"
        if self.turn is not None:
            self.turn.suspended, self.turn.cut = suspended, ""
        if suspended:
            return [Remark(f"suspended: {event['reason']}; it goes on by itself", "warning")]
        return [Remark(f"resumed after {duration(event['away_ms'])} away: {event['reason']}", "warning")]

    # --- waiting --------------------------------------------------------------------------------

    def _waits(self, event: Json) -> list[Block]:
        self._not_asked(cut="")
        self.wait = Wait(
            event["wait"], event["purpose"], event["reason"], tuple(event.get("choices") or ()), event.get("until")
        )
        if self.wait.purpose == "retry":
            return [Remark(f"waits and tries again: {event['reason']}", "warning")]
        call = self.calls.get(event.get("call") or "")
        shown = call.arguments if call is not None and self.wait.purpose == "approval" else ""
        return [asked(event, arguments=shown)]

    def _answered(self, event: Json) -> list[Block]:
        wait, self.wait = self.wait, None
        if wait is not None and wait.purpose == "retry":
            return []
        note = f" ({one_line(event['note'])})" if event.get("note") else ""
        return [Remark(f"→ {one_line(event['answer'])}{note} · {by(event)}", "plain")]

    # --- the session ----------------------------------------------------------------------------

    def _of_session(self, event: Json) -> list[Block]:
        who = by(event) if "by" in event else ""
        match event["kind"]:
            case "SessionCreated":
                self.session, self.title, self.cwd = event["session"], event["title"], event["cwd"]
                self.profile = event["profile"]
                origin = event.get("origin") or {}
                forked = f"forked from {origin['parent']} at version {origin['version']}" if "parent" in origin else ""
                return [Remark(forked)] if forked else []
            case "SessionRenamed":
                self.title = event["title"]
                return [Remark(f"renamed to “{one_line(event['title'])}” by {who}")]
            case "AgentChosen":
                self.profile, self.model = event["profile"], event["model"]
                chosen = f"profile {self.profile}" + (f" with model {self.model}" if self.model else "")
                return [Remark(f"from now on: {one_line(chosen)} (by {who})")]
            case "RunBound":
                self.card = event["card"]
                return [Remark(working(event["card"], event["run"]), "warning")]
            case "RunReleased":
                self.card = ""
                words = f"run {event['run']} of card {event['card']} is over; words here do not reach the card any more"
                return [Remark(f"{words} (/card comment {event['card']} TEXT does)")]
            case "TurnBackgrounded":
                return [
                    Remark(f"turn {event['turn']} is task {event['task'][:SHORT_ID]} now (by {who}); it goes on here")
                ]
            case "TurnUndone":
                return [Remark(f"turn {event['turn']} undone by {who}: the model does not see it; its effects stay")]
            case "SessionArchived":
                return [Remark(f"archived by {who}; a message brings it back")]
            case "SessionRestored":
                return [Remark(f"restored by {who}")]
            case _:
                return []


def working(card: str, run: int) -> str:
    """What somebody has to know who types here."""
    return f"run {run} of card {card} is at work here; what you type becomes a comment on the card, and it hears it"


def _beside(queued: Queued, note: str) -> str:
    """What is worth saying beside a message: that it did not come from a terminal, how it came in."""
    how = "" if queued.mode == "queue" else queued.mode
    return " · ".join(filter(None, ("" if queued.by == "cli" else queued.by, note or how)))


def _end_of_turn(event: Json) -> list[Block]:
    if event["outcome"] == "done":
        return []
    problem = event.get("problem") or {}
    hint = f" {problem['hint']}" if problem.get("hint") else ""
    tone: Tone = "bad" if event["outcome"] == "failed" else "warning"
    outcome, reason = str(event["outcome"]), str(event["reason"])
    words = reason if reason.startswith(outcome) else f"{outcome}: {reason}"
    return [Remark(words + hint, tone)]


def while_away(records: list[Json]) -> str:
    """What happened in these records, in a few words; empty when nothing did that a person would miss."""
    counts = {"message": 0, "question": 0, "approval": 0, "failed turn": 0, "ended task": 0, "reset": 0}
    for record in records:
        event = record["event"]
        match event["kind"]:
            case "InputReceived" if from_task(event):
                counts["ended task"] += 1
            case "NoteReceived":
                counts["ended task"] += 1
            case "InputReceived":
                counts["message"] += 1
            case "ModelResponded" if event["text"].strip():
                counts["message"] += 1
            case "WaitOpened" if event["purpose"] in counts:
                counts[event["purpose"]] += 1
            case "TurnFinished" if event["outcome"] == "failed":
                counts["failed turn"] += 1
            case "ChapterOpened":
                counts["reset"] += 1
            case _:
                pass
    return ", ".join(plural(count, noun) for noun, count in counts.items() if count)
