"""What was said and done in an agent's own terminal, as turns, and as the events of a session here. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from holdfast.domain.command import TEXT_LIMIT
from holdfast.domain.events import AnyEvent
from holdfast.domain.events.actor import PersonActor
from holdfast.domain.events.external_agent import IMPORTED
from holdfast.domain.events.parts import Usage
from holdfast.domain.events.session import (
    InputReceived,
    ModelRequested,
    ModelResponded,
    ToolCallFinished,
    ToolCallStarted,
    TurnFinished,
    TurnStarted,
)
from holdfast.runtime.external.command.items import CallEnded, files_of
from holdfast.runtime.external.command.reader import TEXT_KEPT
from holdfast.runtime.external.steps import AnnouncedCall, logged_call
from holdfast.runtime.tools.tool import bounded

NO_ANSWER = "imported without an answer"
CHARACTERS_KEPT, PARTS_KEPT = 16_000_000, 5_000
"""Of a longer history only the last turns are imported, with no more text, steps and calls than this."""
RESULT_READ = 200_000
"""How much of the result of a call is read, in characters; less of it is kept."""
BLOCKS = "\n\n"
Mask = Callable[[str], str]
Timed = list[tuple[int, AnyEvent]]


@dataclass(slots=True)
class ImportedCall:
    """A tool call."""

    id: str
    tool: str
    arguments: Any
    at: int
    ended_at: int = 0
    end: CallEnded | None = None


@dataclass(slots=True)
class ImportedStep:
    """What the agent said, and the calls that it made then."""

    at: int
    text: str = ""
    thinking: str = ""
    calls: dict[str, ImportedCall] = field(default_factory=dict)
    characters: int = 0
    parts: int = 0


@dataclass(slots=True)
class ImportedTurn:
    """A message of the person, and what came of it."""

    number: int
    text: str
    at: int
    steps: list[ImportedStep] = field(default_factory=list)
    steps_left_out: int = 0
    characters: int = 0
    parts: int = 0


class ImportedHistory:
    """Collects the turns of a session, in the order of its file."""

    def __init__(self, *, characters_kept: int = CHARACTERS_KEPT, parts_kept: int = PARTS_KEPT) -> None:
        self._characters_kept, self._parts_kept = characters_kept, parts_kept
        self.turns: deque[ImportedTurn] = deque()
        self.cwd = self.title = ""
        self.used: Usage | None = None
        self.left_out = self.unreadable = 0
        self._last = self._characters = self._parts = 0

    @property
    def number(self) -> int:
        """The number of the last turn; 0 before the first one."""
        return self._last

    def ask(self, text: str, at: int) -> None:
        """Begin a turn with a message of the person."""
        self._last += 1
        self.turns.append(ImportedTurn(self._last, bounded(text, TEXT_LIMIT), at))
        self._count(len(self.turns[-1].text), 1)

    def say(self, text: str, at: int, *, thinking: bool = False) -> None:
        """Add what the agent said, or thought."""
        if not self.turns or not text.strip():
            return
        step = self._step(at)
        before = step.thinking if thinking else step.text
        if len(before) >= TEXT_KEPT:
            return
        whole = bounded(BLOCKS.join(filter(None, (before, text))), TEXT_KEPT)
        if thinking:
            step.thinking = whole
        else:
            step.text = whole
        self._count(len(whole) - len(before), 0)

    def call(self, id: str, tool: str, arguments: Any, at: int) -> None:
        """Add a call."""
        if not self.turns or not id or self._find(id) is not None:
            return
        steps = self.turns[-1].steps
        if not steps or any(call.end is not None for call in steps[-1].calls.values()):
            self._step(at)
        steps[-1].calls[id] = ImportedCall(id, tool, arguments, at)
        self._count(len(str(arguments)), 1)

    def end_call(self, end: CallEnded, at: int) -> None:
        """Add what came of a call."""
        if (call := self._find(end.id)) is not None and call.end is None:
            call.end, call.ended_at = replace(end, output=bounded(end.output, RESULT_READ)), at
            self._count(len(call.end.output), 0)

    def rewind(self, number: int) -> None:
        """Forget the turns behind this one: the person went back to it."""
        while self.turns and self.turns[-1].number > number:
            turn = self.turns.pop()
            self._characters -= turn.characters
            self._parts -= turn.parts
            self._last -= 1

    def _find(self, id: str) -> ImportedCall | None:
        steps = self.turns[-1].steps if self.turns else []
        return next((step.calls[id] for step in reversed(steps) if id in step.calls), None)

    def _step(self, at: int) -> ImportedStep:
        """Return the step that what is said belongs to: another one, if the last one has made calls."""
        steps = self.turns[-1].steps
        if not steps or steps[-1].calls:
            steps.append(ImportedStep(at))
            self._count(0, 1)
        return steps[-1]

    def _count(self, characters: int, parts: int) -> None:
        """Count what was added to the last turn, and forget what is oldest while there is too much."""
        turn = self.turns[-1]
        counted: list[ImportedTurn | ImportedStep] = [turn, *turn.steps[-1:]]
        for one in counted:
            one.characters += characters
            one.parts += parts
        self._characters += characters
        self._parts += parts
        while self._characters > self._characters_kept or self._parts > self._parts_kept:
            if len(self.turns) > 1:
                gone: ImportedTurn | ImportedStep = self.turns.popleft()
                self.left_out += 1
            elif len(turn.steps) > 1:
                gone = turn.steps.pop(0)
                turn.steps_left_out += 1
                turn.characters -= gone.characters
                turn.parts -= gone.parts
            else:
                return
            self._characters -= gone.characters
            self._parts -= gone.parts


def parse_time(text: str) -> int:
    """Return a time in milliseconds; 0 if it is none."""
    try:
        return max(0, int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0


# --- as events --------------------------------------------------------------------------------------


def imported_events(history: ImportedHistory, *, agent: str, profile: str, mask: Mask, now: int) -> Timed:
    """Return the events of all turns with their times, which never go back and are not after now."""
    timed: Timed = []
    for number, turn in enumerate(history.turns, 1):
        timed += _turn_events(turn, number, agent, profile, mask)
    last, found = 0, Timed()
    for at, event in timed:
        last = min(max(at, last), now)
        found.append((last, event))
    return found


def _turn_events(turn: ImportedTurn, number: int, agent: str, profile: str, mask: Mask) -> Timed:
    input, by = f"{IMPORTED}-{number}", PersonActor(client=f"the terminal of {agent}")
    found: Timed = [
        (turn.at, InputReceived(input=input, text=turn.text, mode="queue", by=by)),
        (turn.at, TurnStarted(turn=number, inputs=[input], profile=profile)),
    ]
    if turn.steps_left_out:
        note = f"[{turn.steps_left_out} earlier steps of this turn were left out: there were too many]"
        turn.steps[0].text = BLOCKS.join(filter(None, (note, turn.steps[0].text)))
    for index, step in enumerate(turn.steps, 1):
        found += _step_events(step, number, index, agent, mask)
    outcome, reason = ("done", IMPORTED) if turn.steps else ("stopped", NO_ANSWER)
    found.append((0, TurnFinished(turn=number, outcome=outcome, reason=reason)))  # type: ignore[arg-type]
    return found


def _step_events(step: ImportedStep, turn: int, index: int, agent: str, mask: Mask) -> Timed:
    calls = {f"{turn}-{index}-{call.id}": call for call in step.calls.values()}
    made = [logged_call(AnnouncedCall(id, call.tool, raw_input=call.arguments), mask) for id, call in calls.items()]
    found: Timed = [
        (step.at, ModelRequested(turn=turn, step=index, attempt=1, model=agent, context_version=0)),
        (
            step.at,
            ModelResponded(
                turn=turn,
                step=index,
                text=step.text,
                thinking=step.thinking,
                calls=made,
                finish_reason="tool_calls" if calls else "stop",
                usage=Usage(),  # it was paid for outside
                duration_ms=0,
            ),
        ),
    ]
    for id, call in calls.items():
        found.append((call.at, ToolCallStarted(turn=turn, call=id, tool=call.tool, effect="unsafe")))
    for id, call in sorted(calls.items(), key=lambda one: (one[1].end is None, one[1].ended_at)):
        found.append((call.ended_at, _call_end(call, id, turn, mask)))
    return found


def _call_end(call: ImportedCall, id: str, turn: int, mask: Mask) -> ToolCallFinished:
    end = call.end
    if end is None:
        output = "Its outcome is not in the agent's file."
        return ToolCallFinished(turn=turn, call=id, tool=call.tool, outcome="unknown", output=output, duration_ms=0)
    return ToolCallFinished(
        turn=turn,
        call=id,
        tool=call.tool,
        outcome="failed" if end.failed else "done",
        output=bounded(mask(end.output)),
        duration_ms=max(0, call.ended_at - call.at),
        files=sorted(end.files or (() if end.failed else files_of(call.tool, call.arguments))),
        exit_code=end.exit_code,
    )
