"""The built-in agent: asks a model, carries out the tool calls of its answer, and summarises a long context."""

from __future__ import annotations

import os
from typing import assert_never

import msgspec

from holdfast.clock import Clock, elapsed
from holdfast.domain.compaction import Compact, Trim
from holdfast.domain.context_limits import sizes
from holdfast.domain.events.parts import Call
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import (
    Effect,
    ModelRequested,
    ModelResponded,
    ToolCallFinished,
    ToolCallStarted,
    TurnSuspended,
    WaitOpened,
)
from holdfast.domain.history import TOKEN_SHIFT, text_size
from holdfast.domain.model_notes import mode_note
from holdfast.domain.next_step import (
    Ask,
    CallModel,
    DriverStep,
    Finish,
    Partial,
    Rest,
    RunAgent,
    RunTool,
    builtin_step,
    failure_events,
)
from holdfast.domain.resume import Break, pick_up
from holdfast.domain.session import OpenCall, Session
from holdfast.domain.summary import interrupted_summary
from holdfast.models.model import ModelAnswer, ModelDelta, ModelError, ModelRequest, ToolSpec, stream_answer
from holdfast.runtime.agents import Agent
from holdfast.runtime.compaction import digest_event, start_event, write_summary
from holdfast.runtime.drivers import Events, Prepared
from holdfast.runtime.permissions import Allowed, check_permission, with_timeout
from holdfast.runtime.tools.context import ToolContext, ToolFailed
from holdfast.runtime.tools.reading import open_text
from holdfast.runtime.tools.tool import Tool, ToolOutput, effect_of, failed_outcome, finished_event, mark_uncertain
from holdfast.runtime.writer import SessionWriter

AGENTS_FILE = "AGENTS.md"
AGENTS_LIMIT = 32_000


class BuiltinDriver:
    """Drives the built-in agent in one session."""

    name = "builtin"
    joins = True

    def __init__(self, writer: SessionWriter, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._request: ModelRequest | None = None
        """The request of the model call that was prepared."""
        self._fixed_tokens = 0
        """The tokens of its instructions and tools."""
        self._thought_until = 0
        """When the last piece of thinking of the open request came; 0 before the first."""
        self._allowed: Allowed | None = None
        """The tool call that was prepared, bound to what was checked."""
        self._begun_before: Effect | None = None
        """The effect of that call, if an earlier worker had begun it."""

    async def pick_up(self, session: Session, agent: Agent, left: Partial, break_: Break, *, now: int) -> Events:
        """Remove what interrupted tool calls left behind, and return what is known of the open turn."""
        await agent.clean_up(session)
        return Events(pick_up(session, left, break_, now=now, limits=agent.limits))

    def next(self, session: Session, agent: Agent, *, now: int) -> DriverStep:
        """Carry out a call, make the context shorter, or ask the model."""
        return builtin_step(session, agent.limits, now=now, unmeasured=self._unmeasured(session))

    def _unmeasured(self, session: Session) -> int:
        """Return the tokens of its instructions and tools that are not in the size of the session yet."""
        return 0 if session.counted else max(0, self._fixed_tokens - session.fixed_tokens)

    async def prepare(self, session: Session, agent: Agent, step: DriverStep, *, now: int) -> Prepared:
        """Return the intent of a model call, a tool call or a summary; or a question or a refusal instead."""
        match step:
            case CallModel():
                return await self._prepare_model(session, agent, step)
            case RunTool(turn, call):
                return await self._prepare_tool(session, agent, turn, call, now)
            case Trim(event):
                return Prepared(Events([event]), perform=False)
            case Compact(digest=True):
                return Prepared(Events([digest_event(session, agent, step)]), perform=False)
            case Compact():
                return Prepared(Events([start_event(session, agent, step)]), perform=True)
            case Ask(wait):
                return Prepared(Events([wait]), perform=False)
            case Finish() | Rest():
                return Prepared(Events(), perform=True)
            case RunAgent():
                raise TypeError("our own agent is no process")
            case _ as never:
                assert_never(never)

    async def perform(self, session: Session, agent: Agent, step: DriverStep) -> Events:
        """Ask the model, carry out the tool call, or write the summary."""
        match step:
            case CallModel():
                return await self._call_model(session, agent, step)
            case RunTool(turn, call):
                return Events([await self._run_tool(session, agent, turn, call)])
            case Compact():
                return Events([await write_summary(session, agent, step, self._clock)])
            case Trim() | Ask() | Finish() | Rest() | RunAgent():
                return Events()
            case _ as never:
                assert_never(never)

    def session_changed(self) -> None:
        """A message joins between two steps, so nothing is to do."""

    async def cancel(self, session: Session, step: DriverStep, reason: str, *, begun: bool) -> Events:
        """Return the failure of a tool call that did not run, or the interruption of a summary."""
        if isinstance(step, RunTool) and not begun and self._begun_before is None:
            return Events([_not_run(step.turn, step.call, reason)])
        return Events(interrupted_summary(session, reason, now=self._clock.now()))

    async def leave(self, session: Session, *, now: int) -> Events:
        """Return the interruption of a summary, and the suspension of the turn."""
        reason = "the gateway was shut down"
        events = interrupted_summary(session, reason, now=now)
        if session.turn is not None and session.turn.wait is None:
            events.append(TurnSuspended(turn=session.turn.number, interruption="shutdown", reason=reason))
        return Events(events)

    # --- the model ------------------------------------------------------------------------------

    async def _prepare_model(self, session: Session, agent: Agent, step: CallModel) -> Prepared:
        tools = [tool.spec for tool in (await agent.tools()).values()]
        context = agent.tool_context(session)
        self._request = await agent.mounts.run(
            lambda: model_request(
                session,
                turn=step.turn,
                step=step.step,
                instructions=agent.instructions,
                context=context,
                tools=tools,
            )
        )
        known, self._fixed_tokens = self._fixed_tokens, fixed_size(self._request)
        if self._fixed_tokens > known:
            found = sizes(session, agent.limits.compaction, unmeasured=self._unmeasured(session))
            if found.limit and found.size > found.threshold:
                return Prepared(Events(), perform=False)  # decided without knowing how large it is: decide again
        asked = ModelRequested(
            turn=step.turn,
            step=step.step,
            attempt=step.attempt,
            model=agent.model.name,
            context_version=session.version,
            fixed_tokens=self._fixed_tokens,
        )
        return Prepared(Events([asked]), perform=True)

    async def _call_model(self, session: Session, agent: Agent, step: CallModel) -> Events:
        writer, started = self._writer, self._clock.now()
        assert self._request is not None
        self._thought_until = 0
        writer.start_text(turn=step.turn, step=step.step)
        try:
            answer = await stream_answer(
                agent.model,
                self._request,
                show=self._show,
                save=writer.save_text,
                save_seconds=writer.timings.save,
            )
        except ModelError as error:
            again = (error.after_ms,) if error.retry else None
            said = agent.mask(error.problem.message)  # a provider may repeat a key that it was sent
            problem = msgspec.structs.replace(error.problem, message=said)
            now, partial = self._clock.now(), writer.end_text()
            return Events(failure_events(session, problem, partial, again, now=now, limits=agent.limits))
        writer.end_text()  # before it is written: no follower gets a delta after the answer
        took = elapsed(self._clock, started)
        thought = min(took, max(0, self._thought_until - started)) if answer.thinking else 0
        return Events([response_event(step, answer, took, thinking_ms=thought)])

    def _show(self, piece: ModelDelta) -> None:
        if piece.thinking:
            self._thought_until = self._clock.now()
        self._writer.add_text(piece.text, piece.thinking)

    # --- tools ----------------------------------------------------------------------------------

    async def _prepare_tool(self, session: Session, agent: Agent, turn: int, call: Call, now: int) -> Prepared:
        """Return the intent, unless an earlier worker wrote it; or a question to a person; or a refusal."""
        tools, context = await agent.tools(), agent.tool_context(session, call.call)
        tool = tools.get(call.tool)
        other = await tool.delegated_profile(context, call.arguments) if isinstance(tool, Tool) else ""
        found = await agent.mounts.run(
            lambda: check_permission(
                session, call, tools=tools, rules=agent.rules, context=context, limits=agent.ancestors, handed_to=other
            )
        )
        opened = session.open_call(call.call) or OpenCall(call)
        match found:
            case WaitOpened():
                wait = with_timeout(found, agent.approval_timeout_ms, now=now)
                return Prepared(Events([wait]), perform=False)
            case ToolOutput():
                result = mark_uncertain(found, opened.effect, carried_out=False)
                took = 0 if opened.started is None else max(0, now - opened.started)
                refused = finished_event(call, result, turn=turn, duration_ms=took, hide=agent.mask)
                return Prepared(Events([refused]), perform=False)
            case Allowed():
                self._allowed, self._begun_before = found, opened.effect
                if opened.effect is not None:
                    return Prepared(Events(), perform=True)
                return await self._intent(found, agent, turn, call)
            case _ as never:
                assert_never(never)

    async def _intent(self, allowed: Allowed, agent: Agent, turn: int, call: Call) -> Prepared:
        """Return the intent of an allowed call, with its companion writes; or its failure."""
        tool, effect = allowed.tool, effect_of(allowed.tool, call.arguments)
        try:
            companions = await tool.companion_writes(allowed.context, call.arguments) if isinstance(tool, Tool) else ()
        except (ToolFailed, OSError) as error:
            result = failed_outcome(error)
            failed = finished_event(call, result, turn=turn, duration_ms=0, hide=agent.mask)
            return Prepared(Events([failed]), perform=False)
        intent = ToolCallStarted(turn=turn, call=call.call, tool=call.tool, effect=effect)
        return Prepared(Events([intent], [*companions]), perform=True)

    async def _run_tool(self, session: Session, agent: Agent, turn: int, call: Call) -> ToolCallFinished:
        allowed, opened = self._allowed, session.open_call(call.call)
        assert allowed is not None
        assert opened is not None
        result = await allowed.tool.call(allowed.context, call.arguments)
        started = self._clock.now() if opened.started is None else opened.started
        result = mark_uncertain(result, self._begun_before, carried_out=True)
        return finished_event(call, result, turn=turn, duration_ms=elapsed(self._clock, started), hide=agent.mask)


def _not_run(turn: int, call: Call, reason: str) -> ToolCallFinished:
    return ToolCallFinished(
        turn=turn, call=call.call, tool=call.tool, outcome="failed", output=f"Not run: {reason}.", duration_ms=0
    )


# --- requests to the model, and the events made from its answers ----------------------------------


def model_request(
    session: Session, *, turn: int, step: int = 1, instructions: str, context: ToolContext, tools: list[ToolSpec]
) -> ModelRequest:
    """Return the request: instructions, working directory, messages and tools."""
    parts = [
        instructions.strip(),
        f"Your working directory is {context.cwd}.",
        mode_note(session.mode_in_force),
        _of_the_directory(context),
    ]
    whole = "\n\n".join(filter(None, parts))
    seen = session.visible_history
    return ModelRequest(turn, whole, seen[:], tools, step=step, tokens=seen.tokens(), session=session.id)


def fixed_size(request: ModelRequest) -> int:
    """Return about how many tokens of a request are instructions and tools."""
    return text_size(request.instructions) + sum(map(_tool_size, request.tools))


_sizes: dict[int, tuple[dict[str, object], int]] = {}
"""The size of a tool's parameters, by their identity: they are the same object at every call."""
SIZES = 1_000


def _tool_size(tool: ToolSpec) -> int:
    known = _sizes.get(id(tool.parameters))
    if known is None or known[0] is not tool.parameters:
        if len(_sizes) >= SIZES:
            _sizes.clear()
        known = _sizes[id(tool.parameters)] = (tool.parameters, len(msgspec.json.encode(tool.parameters)))
    return (len(tool.name) + len(tool.description) + known[1]) >> TOKEN_SHIFT


def _of_the_directory(context: ToolContext) -> str:
    """Return the instructions of the project; a file that cannot be read is reported in them."""
    try:
        if context.cwd.is_dir() and not os.path.lexists(context.cwd / AGENTS_FILE):
            return ""
        path = context.resolve(AGENTS_FILE)
        if not path.exists():
            return ""
        with open_text(context, path, AGENTS_FILE) as file:
            text = file.read(4 * AGENTS_LIMIT).decode("utf-8", "replace")
            more = len(text) > AGENTS_LIMIT or file.read(1)
    except ToolFailed as error:
        return f"{AGENTS_FILE} in the working directory cannot be read: {error}"
    except OSError as error:
        return f"{AGENTS_FILE} in the working directory cannot be read: {error.strerror}."
    cut = "\n[… the rest is omitted]" if more else ""
    return f"{AGENTS_FILE} in the working directory says:\n{text[:AGENTS_LIMIT]}{cut}"


def response_event(step: CallModel, answer: ModelAnswer, duration_ms: int, *, thinking_ms: int = 0) -> ModelResponded:
    """Return the event of an answer. Its calls get ids of ours, since providers reuse theirs."""
    calls = [
        Call(call=f"{step.turn}.{step.step}.{index}", tool=wanted.tool, arguments=wanted.arguments)
        for index, wanted in enumerate(answer.calls)
    ]
    return ModelResponded(
        turn=step.turn,
        step=step.step,
        text=answer.text,
        thinking=answer.thinking,
        calls=calls,
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        duration_ms=duration_ms,
        signature=answer.signature,
        thinking_ms=thinking_ms,
    )


# --- a driver that is missing --------------------------------------------------------------------


class MissingDriver(BuiltinDriver):
    """For sessions whose driver this gateway does not have: it describes the open turn like its base, then fails it."""

    joins = False

    def __init__(self, writer: SessionWriter, clock: Clock, *, known: list[str]) -> None:
        super().__init__(writer, clock)
        self._known = known

    def next(self, session: Session, agent: Agent, *, now: int) -> DriverStep:  # noqa: ARG002
        """Fail the turn."""
        if session.turn is None:
            return Rest()
        message = f"This gateway does not have the driver {session.driver!r} of this session."
        hint = f"It has: {', '.join(self._known)}. Start the version that created the session, or start a new session."
        problem = Problem(code="unknown_driver", message=message, hint=hint)
        return Finish(session.turn.number, "failed", message, problem)
