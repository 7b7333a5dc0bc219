"""From the lines of an agent to events of its turn. Pure: the same lines always become the same events.

Text is collected until something else happens, and a call until it has arguments, begins or asks; then all that was
collected becomes events of one append, with the offset behind the line that caused it. So whoever reads on from that
offset, after a crash, has missed nothing and reads nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2s
from typing import TypeVar

import msgspec

from holdfast.domain.events import AnyEvent
from holdfast.domain.events.external_agent import AgentPlanned, DriverOutputRead, OwedRequest, PlanEntry
from holdfast.domain.events.parts import Usage
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import (
    CallOutcome,
    FinishReason,
    ModelFailed,
    ToolCallFinished,
    WaitOpened,
)
from holdfast.domain.next_step import wait_id
from holdfast.domain.session import Session, Turn
from holdfast.runtime.external.acp.answers import question_of
from holdfast.runtime.external.acp.content import (
    arguments_of,
    exit_code_of,
    files_of,
    in_words,
    merge,
    output_of,
    shown_argument,
    text_of,
)
from holdfast.runtime.external.acp.elicitation import TEXT_SHOWN, ElicitationRequest, asked_fields
from holdfast.runtime.external.acp.options import Offered
from holdfast.runtime.external.acp.protocol import (
    NO_TOOLS,
    AcpMessage,
    PermissionRequest,
    PlanItem,
    PromptDone,
    RpcError,
    SessionUpdate,
    Steered,
    Updated,
    steered_input,
)
from holdfast.runtime.external.configuration import ExternalCommand
from holdfast.runtime.external.problems import problem_of
from holdfast.runtime.external.prompt import PROMPTS
from holdfast.runtime.external.steering import joined, postponed
from holdfast.runtime.external.steps import (
    AnnouncedCall,
    LineResult,
    StepCollector,
    call_id,
    is_over,
    unknown_end,
)
from holdfast.runtime.tools.tool import bounded
from holdfast.settings import Policy

TITLE_SHOWN = 300
FINISH: dict[str, FinishReason] = {"end_turn": "stop", "max_tokens": "length"}
PLAN_STATES = frozenset({"pending", "in_progress", "completed"})
T = TypeVar("T")


@dataclass(slots=True)
class AcpLineResult(LineResult):
    """What a line came to."""

    refuse: AcpMessage | None = None
    """A request for something that we do not offer."""
    waits: bool = False
    """The turn waits for a person."""
    done: bool = False
    """The agent has ended its work on the prompt."""
    collecting: bool = False
    """Something that was said before is not in the events: it is read again after a crash."""


class LineReader:
    """Reads the lines of one agent in one session. What it has collected is not in the log yet."""

    def __init__(
        self,
        agent: ExternalCommand,
        *,
        policy: Callable[[str], Policy],
        mask: Callable[[str], str],
        given_tools: frozenset[str] = frozenset(),
    ) -> None:
        """`given_tools` are those of the board that the agent was given: it need not ask for them."""
        self._agent = agent
        self._policy = policy
        self._mask = mask
        self._given_tools = given_tools
        self.steps = StepCollector(agent, mask)
        self._outputs: dict[str, str] = {}
        """By call: what a running call has shown so far."""
        self._plan: list[PlanItem] | None = None

    def read(self, message: AcpMessage, session: Session, *, now: int) -> AcpLineResult:
        """Return what a message comes to. `session` is as the log has it."""
        turn, read = session.turn, session.output_read
        assert turn is not None
        assert read is not None
        if message.is_answer and message.id == read.prompt:
            return self._prompt_answered(message, session, turn, now)
        if message.is_answer:
            return self._steered(message, session, turn, now)
        if message.method == "session/update":
            updated = _convert(message.params, Updated)
            return AcpLineResult() if updated is None else self._updated(updated.update, session, turn, now)
        if message.id is None:
            return AcpLineResult()
        if message.method == "session/request_permission":
            asked = _convert(message.params, PermissionRequest)
            if asked is not None and asked.options:
                return self._asked(message, asked, session, turn, now)
        if message.method == "elicitation/create":
            form = _convert(message.params, ElicitationRequest)
            if form is not None and form.is_asked:
                return self._form(message, form, session, turn, now)
        return AcpLineResult(refuse=message)

    # --- updates --------------------------------------------------------------------------------

    def _updated(self, update: SessionUpdate, session: Session, turn: Turn, now: int) -> AcpLineResult:
        match update.session_update:
            case "agent_message_chunk":
                text = text_of(update.content)
                self.steps.text += text
                return AcpLineResult(text=text)
            case "agent_thought_chunk":
                text = text_of(update.content)
                self.steps.thinking += text
                return AcpLineResult(thinking=text)
            case "tool_call" | "tool_call_update" if update.tool_call_id and not is_over(
                session, turn, update.tool_call_id
            ):
                return AcpLineResult(self._call(update, turn, now))
            case "plan":
                self._plan = update.entries
                return (
                    AcpLineResult()
                    if self.steps.text or self.steps.thinking
                    else AcpLineResult(self._collected(turn, now))
                )
            case "usage_update":
                self.steps.context_tokens = update.used
                return AcpLineResult()
            case _:
                return AcpLineResult()

    def _call(self, update: SessionUpdate, turn: Turn, now: int) -> list[AnyEvent]:
        call = call_id(turn, update.tool_call_id)
        opened = turn.open_calls.get(call)
        events: list[AnyEvent] = []
        tool = "other" if opened is None else opened.call.tool
        if opened is None:
            announced = self.steps.announced.setdefault(call, AnnouncedCall(call))
            merge(announced, update, self._given_tools)
            tool = announced.tool
            if announced.is_ready:
                events = self._collected(turn, now)
        if update.content:
            self._outputs[call] = output_of(update.content)
        if update.status not in ("completed", "failed") or (opened is None and not events):
            return events
        started = now if opened is None or opened.started is None else opened.started
        if not events:
            events = self._collected(turn, now)
        outcome: CallOutcome = "done" if update.status == "completed" else "failed"
        events.append(
            ToolCallFinished(
                turn=turn.number,
                call=call,
                tool=tool,
                outcome=outcome,
                output=bounded(self._mask(self._outputs.pop(call, "") or output_of(update.raw_output))),
                duration_ms=max(0, now - started),
                files=files_of(update),
                exit_code=exit_code_of(update.raw_output),
            )
        )
        return events

    # --- what was collected ---------------------------------------------------------------------

    def _collected(self, turn: Turn, now: int, *, held: str = "") -> list[AnyEvent]:
        """Return the events of what was collected, after which the next step begins; `held` is a call that has not
        begun, since the agent asks for a permission first.
        """
        return [*self._planned(turn), *self.steps.step(turn, now, held=held)]

    def _planned(self, turn: Turn) -> list[AnyEvent]:
        plan, self._plan = self._plan, None
        if plan is None:
            return []
        entries = [
            PlanEntry(text=item.content, state=item.status if item.status in PLAN_STATES else "pending")  # type: ignore[arg-type]
            for item in plan
        ]
        return [AgentPlanned(turn=turn.number, entries=entries)]

    # --- permissions ----------------------------------------------------------------------------

    def _asked(
        self, message: AcpMessage, asked: PermissionRequest, session: Session, turn: Turn, now: int
    ) -> AcpLineResult:
        call = call_id(turn, asked.tool_call.tool_call_id or message.json_id)
        opened = turn.open_calls.get(call)
        if opened is None:
            announced = self.steps.announced.setdefault(call, AnnouncedCall(call))
            merge(announced, asked.tool_call, self._given_tools)
            announced.begun = False
        else:
            announced = AnnouncedCall(call, opened.call.tool, raw_input=arguments_of(opened.call))
            merge(announced, asked.tool_call, self._given_tools)
        name = announced.title or announced.tool
        offered = Offered.of(asked.options, self._mask)
        policy = "allow" if announced.tool in self._given_tools else self._policy(announced.tool)
        decided = {"allow": offered.allowing, "deny": "deny"}.get(policy, "")
        reason = f"Allow {bounded(name, TITLE_SHOWN)}?"
        owed = OwedRequest(
            id=message.json_id, call=call, reason=reason, options=offered.ids, refusals=offered.refusals, answer=decided
        )
        events = self._collected(turn, now, held="" if decided and decided != "deny" else call)
        if decided:
            return AcpLineResult([*events, owed_mark(session, [owed])])
        return AcpLineResult(
            [*events, self._wait(owed, offered, announced, session, turn), owed_mark(session, [owed])], waits=True
        )

    def _wait(
        self, owed: OwedRequest, offered: Offered, call: AnnouncedCall, session: Session, turn: Turn
    ) -> WaitOpened:
        shown = [shown_argument(name, self._mask(in_words(value))) for name, value in call.arguments.items()]
        described = json.dumps([self._agent.name, session.cwd, call.tool, call.arguments], sort_keys=True, default=str)
        return WaitOpened(
            turn=turn.number,
            wait=wait_id(session, turn),
            purpose="approval",
            reason=self._mask(owed.reason),
            call=owed.call,
            choices=offered.choices,
            means=offered.means,
            shown=shown,
            call_digest=blake2s(described.encode(errors="surrogatepass"), digest_size=16).hexdigest(),
        )

    def _form(
        self, message: AcpMessage, form: ElicitationRequest, session: Session, turn: Turn, now: int
    ) -> AcpLineResult:
        """Return the first question of a form; the others follow when it is answered."""
        assert session.output_read is not None
        prompt = session.output_read.prompt % PROMPTS  # another process may use the same ids again
        owed = OwedRequest(
            id=message.json_id,
            call=call_id(turn, f"form-{prompt}-{message.json_id}"),
            reason=bounded(self._mask(form.message.strip()), TEXT_SHOWN),
            options={},
            is_form=True,
            fields=asked_fields(form, self._mask),
            until=None if form.within_ms is None else now + form.within_ms,
        )
        wait = question_of(owed, session, turn)
        assert isinstance(wait, WaitOpened)
        return AcpLineResult([*self._collected(turn, now), wait, owed_mark(session, [owed])], waits=True)

    # --- messages for it while it works -----------------------------------------------------------

    def _steered(self, message: AcpMessage, session: Session, turn: Turn, now: int) -> AcpLineResult:
        """Return what became of a message that was sent to the agent while it works."""
        read, input = session.output_read, steered_input(message)
        assert read is not None
        if input not in read.steering:
            return AcpLineResult()
        # what it said before is a step of its own; a call that it only spoke of is still to come
        collecting = bool(self.steps.announced)
        before = [] if collecting else self._collected(turn, now)
        left = [one for one in read.steering if one != input]
        mark = msgspec.structs.replace(read, owed=[], steering=left)
        return AcpLineResult([*before, *steering_end(message, session), mark], collecting=collecting)

    # --- the end --------------------------------------------------------------------------------

    def _prompt_answered(self, message: AcpMessage, session: Session, turn: Turn, now: int) -> AcpLineResult:
        done = _convert(message.result, PromptDone) or PromptDone()
        self.steps.announced.clear()
        events = self._planned(turn)
        events += [unknown_end(turn, call, "the agent did not say how it ended") for call in turn.open_calls]
        if message.error is not None:
            problem = error_problem(message.error, self._agent, now=now)
            events.append(self.steps.failed(turn, problem))
        elif done.stop_reason == "cancelled":
            reason = "the agent says that it was cancelled"
            events.append(self.steps.interrupted(turn, reason))
            if turn.stop is None:
                problem = Problem(code="no_answer", message="The agent ended its work: cancelled.")
                events.append(ModelFailed(turn=turn.number, step=turn.step, problem=problem))
        elif done.stop_reason in ("refusal", "max_turn_requests"):
            said = "refused to continue" if done.stop_reason == "refusal" else "reached its own limit of requests"
            problem = Problem(code="refused", message=f"The agent {said}.", hint="Send a message to continue.")
            events.append(self.steps.failed(turn, problem))
        else:
            reason_ = FINISH.get(done.stop_reason, "other")
            events.append(self.steps.response(turn, [], reason_, now, _usage(done)))
        read = session.output_read
        assert read is not None
        return AcpLineResult([*events, msgspec.structs.replace(read, owed=[], steering=[], prompt=0)], done=True)


def steering_end(answer: AcpMessage, session: Session) -> list[AnyEvent]:
    """Return that a message joined the turn, by the agent's answer; or that it waits for the next one, and why."""
    input = steered_input(answer)
    outcome = "failed" if answer.error is not None else (_convert(answer.result, Steered) or Steered()).outcome
    if outcome in ("injected", "startedNewTurn"):
        return [*joined(session, [input])]
    why = "it had ended its work" if outcome == "promptRequired" else str(answer.error or "it gives no reason")
    return [*postponed([input], f"the agent did not take it while it worked: {why}")]


def owed_mark(session: Session, owed: list[OwedRequest]) -> DriverOutputRead:
    """Return how far the output was read, with what the agent is owed."""
    assert session.output_read is not None
    return msgspec.structs.replace(session.output_read, owed=owed)


def error_problem(error: RpcError, agent: ExternalCommand, *, now: int) -> Problem:
    """Return what an error of an agent means for a person."""
    if error.code == NO_TOOLS:
        message = f"{agent.name} cannot work on a card: {error}."
        return Problem(code="agent_unfit", message=message, hint="Give the card another profile.")
    return problem_of(agent, str(error), now=now, code=error.code, kinds=error.kinds)


def _usage(done: PromptDone) -> Usage:
    used = done.usage
    if used is None:
        return Usage()
    return Usage(
        input_tokens=used.input_tokens, output_tokens=used.output_tokens, cached_tokens=used.cached_read_tokens or 0
    )


def _convert(raw: msgspec.Raw, type: type[T]) -> T | None:
    try:
        return msgspec.json.decode(raw, type=type)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
