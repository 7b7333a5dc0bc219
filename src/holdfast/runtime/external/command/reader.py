"""From the lines of a command-line agent to events of its turn. Pure: the same lines always become the same events.

Text is collected until a call begins or ends; then it is one append with the call, with the offset behind the line. How
the turn ended is decided when the process has ended: until then it may still write its session, and say more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

import msgspec

from holdfast.domain.events import AnyEvent
from holdfast.domain.events.external_agent import AgentPlanned
from holdfast.domain.events.parts import Usage
from holdfast.domain.events.session import ToolCallFinished
from holdfast.domain.history import AgentMessage
from holdfast.domain.session import Session, Turn
from holdfast.external_agents import OutputFormat
from holdfast.runtime.external.command.claude import parse_claude, parse_qwen
from holdfast.runtime.external.command.codex import parse_codex
from holdfast.runtime.external.command.gemini import parse_gemini
from holdfast.runtime.external.command.items import (
    Answered,
    CallBegun,
    CallEnded,
    Failed,
    Item,
    PlanStated,
    SessionNamed,
    TextAdded,
    TextWhole,
    TokensUsed,
    files_of,
)
from holdfast.runtime.external.command.opencode import parse_opencode
from holdfast.runtime.external.command.plain import parse_plain
from holdfast.runtime.external.configuration import ExternalCommand
from holdfast.runtime.external.problems import problem_of
from holdfast.runtime.external.prompt import PROMPTS
from holdfast.runtime.external.steps import (
    AnnouncedCall,
    LineResult,
    StepCollector,
    call_id,
    is_over,
    unknown_end,
)
from holdfast.runtime.tools.tool import bounded
from holdfast.store.rows import TaskRow
from holdfast.worker_access import SERVER

PARSERS: dict[OutputFormat, Callable[[bytes], list[Item]]] = {
    "claude": parse_claude,
    "qwen": parse_qwen,
    "codex": parse_codex,
    "opencode": parse_opencode,
    "gemini": parse_gemini,
    "text": parse_plain,
}
TEXT_KEPT = 400_000
"""More of an answer than this, in characters, is left out."""
BLOCKS = "\n\n"
"""Between two texts without a call in between."""
SIGNALS = 128
"""A shell that started the agent ends with this and the number of the signal that ended it."""


@dataclass(slots=True)
class CommandLineResult(LineResult):
    """What a line came to."""

    named: SessionNamed | None = None


class CommandReader:
    """Reads the lines of one process. What it has collected is not in the log yet."""

    def __init__(
        self, external: ExternalCommand, mask: Callable[[str], str], worker_tools: frozenset[str] = frozenset()
    ) -> None:
        """`worker_tools` are those of the board, which the log names as our own workers do."""
        assert external.command is not None
        self._worker_tools = {f"{form}{SERVER}__{tool}": tool for tool in worker_tools for form in ("", "mcp__")}
        self._external = external
        self._mask = mask
        self._is_text = external.command.output == "text"
        self._parse = PARSERS[external.command.output]
        self.steps = StepCollector(external, mask)
        self._settled = {False: 0, True: 0}
        """How much of the text, and of the thoughts, is of whole texts."""
        self._used: Usage | None = None
        self._plan: PlanStated | None = None
        self.said_last: Answered | Failed | None = None
        """How the agent says that its work ended."""

    def read(self, line: bytes, session: Session, *, now: int) -> CommandLineResult:
        """Return what a line comes to. `session` is as the log has it."""
        turn = session.turn
        assert turn is not None
        result, ended = CommandLineResult(), list[CallEnded]()
        for item in self._parse(line):
            match item:
                case SessionNamed():
                    result.named = item
                case TextAdded(text=text, thinking=thinking):
                    self._add(text, result, thinking=thinking)
                case TextWhole(text=text, thinking=thinking):
                    self._complete(text, result, thinking=thinking)
                case CallBegun():
                    self._begin(item, session, turn)
                case CallEnded():
                    ended.append(item)
                case PlanStated():
                    self._plan = item
                case TokensUsed(usage=usage):
                    self._used = usage if self._used is None else sum_of(self._used, usage)
                case Answered() | Failed():
                    self.said_last = item
                case _ as never:
                    assert_never(never)
        tools = {call.id: call for call in self.steps.announced.values()}
        is_said = bool(self.steps.text or self.steps.thinking)
        if tools or (self._plan is not None and not is_said):
            result.events = self._step(session, turn, now)
        for one in ended:
            result.events += self._end(one, tools, session, turn, now, has_step=bool(result.events))
        return result

    # --- text -----------------------------------------------------------------------------------

    def _add(self, text: str, result: CommandLineResult, *, thinking: bool) -> None:
        """Add a piece to the text that is not whole yet."""
        so_far = self.steps.thinking if thinking else self.steps.text
        if len(so_far) > TEXT_KEPT:
            return
        if len(so_far) + len(text) > TEXT_KEPT:
            text = text[: TEXT_KEPT - len(so_far)] + "\n[the rest is left out]"
        if 0 < self._settled[thinking] == len(so_far):
            text = BLOCKS + text
            self._settled[thinking] += len(BLOCKS)
        self._set(so_far + text, thinking=thinking)
        self._show(text, result, thinking=thinking)

    def _complete(self, text: str, result: CommandLineResult, *, thinking: bool) -> None:
        """Replace the pieces of a text by the whole of it."""
        if not text:
            return
        so_far, at = self.steps.thinking if thinking else self.steps.text, self._settled[thinking]
        pieces = so_far[at:]
        if pieces and text.startswith(pieces):
            self._add(text.removeprefix(pieces), result, thinking=thinking)
        elif pieces:
            self._set(so_far[:at] + text, thinking=thinking)
        else:
            self._add(text, result, thinking=thinking)
        self._settled[thinking] = len(self.steps.thinking if thinking else self.steps.text)

    def _set(self, text: str, *, thinking: bool) -> None:
        if thinking:
            self.steps.thinking = text
        else:
            self.steps.text = text

    def _show(self, text: str, result: CommandLineResult, *, thinking: bool) -> None:
        if thinking:
            result.thinking += text
        else:
            result.text += text

    # --- calls ----------------------------------------------------------------------------------

    def _begin(self, item: CallBegun, session: Session, turn: Turn) -> None:
        call = _call(session, item.id)
        self.said_last = None
        if call_id(turn, call) not in turn.open_calls and not is_over(session, turn, call):
            own = call_id(turn, call)
            self.steps.announced[own] = AnnouncedCall(
                own, self._worker_tools.get(item.tool, item.tool), raw_input=item.arguments, begun=True
            )

    def _step(self, session: Session, turn: Turn, now: int) -> list[AnyEvent]:
        """Return the events of what was collected, after which the next step begins."""
        events = self._planned(session, turn)
        used, self._used = self._used, None
        steps = self.steps.step(turn, now, usage=used)
        if not steps:
            self._used = used
        self._settled = {False: 0, True: 0}
        return [*events, *steps]

    def _planned(self, session: Session, turn: Turn) -> list[AnyEvent]:
        plan, self._plan = self._plan, None
        if plan is None:
            return []
        before = session.plan
        if before is not None and before.turn == turn.number and before.entries == plan.entries:
            return []
        return [AgentPlanned(turn=turn.number, entries=plan.entries)]

    def _end(
        self,
        item: CallEnded,
        begun: dict[str, AnnouncedCall],
        session: Session,
        turn: Turn,
        now: int,
        *,
        has_step: bool,
    ) -> list[AnyEvent]:
        id = call_id(turn, _call(session, item.id))
        opened, announced = turn.open_calls.get(id), begun.get(id)
        if announced is not None:
            tool, arguments, started = announced.tool, announced.raw_input, now
        elif opened is not None:
            tool, arguments = opened.call.tool, _arguments(opened.call.arguments)
            started = now if opened.started is None else opened.started
        else:
            return []
        files = item.files or (() if item.failed else files_of(tool, arguments))
        events = [] if has_step else self._step(session, turn, now)
        finished = ToolCallFinished(
            turn=turn.number,
            call=id,
            tool=tool,
            outcome="failed" if item.failed else "done",
            output=bounded(self._mask(item.output)),
            duration_ms=max(0, now - started),
            files=sorted(files),
            exit_code=item.exit_code,
        )
        return [*events, finished]

    # --- the end --------------------------------------------------------------------------------

    def end(self, ended: TaskRow, words: str, session: Session, *, now: int) -> list[AnyEvent] | None:
        """Return how the turn ended, after its process has; None if it was cut. `words` is its last output."""
        turn = session.turn
        assert turn is not None
        last = self.said_last
        if last is None and self._is_text and ended.exit_code == 0:
            last = Answered() if self.steps.text.strip() else Failed("it ended without an answer")
        events = self._planned(session, turn)
        if isinstance(last, Answered):
            events += [unknown_end(turn, call, "the agent did not say how it ended") for call in turn.open_calls]
            return [*events, self._final(last, session, turn, now)]
        code = ended.exit_code
        if last is None and code is not None and 0 < code <= SIGNALS:
            last = Failed(f"it ended with exit code {code}" + (f": {' '.join(words.split())}" if words else ""))
        if last is None:
            return None
        said = self._mask(last.message)
        events += [unknown_end(turn, call, said) for call in turn.open_calls]
        return [*events, self.steps.failed(turn, problem_of(self._external, said, now=now))]

    def _final(self, last: Answered, session: Session, turn: Turn, now: int) -> AnyEvent:
        is_silent = not any(
            isinstance(one, AgentMessage) and one.text for one in session.messages if one.turn == turn.number
        )
        if is_silent and not self.steps.text:
            self.steps.text = last.text
        self.steps.text = self.steps.text.rstrip("\n") if self._is_text else self.steps.text
        used = last.usage or self._used
        if last.total is not None:
            read = session.output_read
            used = difference(last.total, read.used if read is not None and read.used is not None else Usage())
        return self.steps.response(turn, [], "stop", now, used)


def sum_of(one: Usage, other: Usage) -> Usage:
    """Return the cost of both."""
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
    )


def difference(total: Usage, before: Usage) -> Usage:
    """Return what was used since; an agent that starts counting again has used its total."""
    if total.input_tokens < before.input_tokens or total.output_tokens < before.output_tokens:
        return total
    return Usage(
        input_tokens=total.input_tokens - before.input_tokens,
        output_tokens=total.output_tokens - before.output_tokens,
        cached_tokens=max(0, total.cached_tokens - before.cached_tokens),
    )


def _call(session: Session, id: str) -> str:
    """Return the id of a call in its turn: some agents count from 1 in each process."""
    read = session.output_read
    return f"{0 if read is None else read.prompt % PROMPTS}-{id}"


def _arguments(given: str) -> Any:
    try:
        return msgspec.json.decode(given)
    except msgspec.MsgspecError:
        return None
