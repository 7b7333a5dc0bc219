"""A turn. This file is the system; the rest serves it.

    fold the log  →  ask `next_step`  →  do it  →  append what happened  →  again, until there is rest

Recovery is not a subsystem: after a crash a new worker takes the lease and runs the same loop. First
it writes down what it found (`pick_up`): a cut answer, a tool call whose outcome nobody knows.

The worker writes only what is *done*, always under its lease. What is *said* meanwhile (a message,
a stop) is in the log before the worker sees it; it looks between any two steps, and a stop also cuts
a model or a tool in the middle.

Not here: who starts workers (`runner.py`), what is next (`domain/next_step.py`), how a model talks
(`model.py`), what writing takes (`writer.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import assert_never

import msgspec

from holdfast.clock import Clock, elapsed, until
from holdfast.domain.compaction import Compact
from holdfast.domain.events import AnyEvent, session_stream
from holdfast.domain.events.parts import Call
from holdfast.domain.events.session import (
    InputsJoined,
    ModelRequested,
    ToolCallStarted,
    TurnStarted,
    TurnSuspended,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.next_step import (
    NO_BREAK,
    Ask,
    Begin,
    Break,
    CallModel,
    Finish,
    Join,
    Partial,
    Rest,
    RunTools,
    Sleep,
    Step,
    failure_events,
    next_step,
    pick_up,
    stop_reason,
)
from holdfast.domain.session import OpenCall, Session
from holdfast.models.listen import stream_answer
from holdfast.models.model import ModelDelta, ModelError
from holdfast.runtime.agent import Agent
from holdfast.runtime.compaction import summarise_context
from holdfast.runtime.permissions import Allowed, check_permission, timeout_note, with_timeout
from holdfast.runtime.profiles import Profiles
from holdfast.runtime.prompt import model_request, response_event
from holdfast.runtime.streaming_text import StreamingTexts
from holdfast.runtime.tools.tool import Tool, ToolOutcome, effect_of, finished_event, mark_uncertain
from holdfast.runtime.work_time import WorkTime
from holdfast.runtime.writer import SessionWriter
from holdfast.store.contract import PartialText, Subscription


class Worker:
    """Works on one session, under its lease, until there is nothing left to do."""

    def __init__(
        self,
        session: Session,
        *,
        writer: SessionWriter,
        changes: Subscription,
        streaming: StreamingTexts,
        profiles: Profiles,
        clock: Clock,
        work_time: WorkTime,
    ) -> None:
        self._session = session
        self._stream = session_stream(session.id)
        self._writer = writer
        self._changes = changes
        self._streaming = streaming
        self._profiles = profiles
        self._clock = clock
        self._work_time = work_time

    async def work(self, left_behind: PartialText | None, break_: Break = NO_BREAK) -> None:
        """The loop. `left_behind` is the text so far of a step that an earlier worker left open."""
        try:
            await self._pick_up(left_behind, break_)
            while await self._step():
                await self._writer.refresh(self._session)
        except asyncio.CancelledError:
            await self._suspend()
            raise

    async def _step(self) -> bool:
        """Find the next thing and do it; False when there is rest."""
        agent = self._profiles.agent(self._session)
        worked = self._work_time.spent_ms(self._session)
        step = next_step(self._session, agent.limits, now=self._clock.now(), worked_ms=worked)
        with self._work_time.measured(self._session):
            return await self._do(agent, step)

    async def _do(self, agent: Agent, step: Step) -> bool:
        match step:
            case Begin(turn, inputs, person):
                who = self._session.profile
                await self._write(TurnStarted(turn=turn, inputs=inputs, profile=who, by_person=person))
            case Join(turn, inputs, person):
                await self._write(InputsJoined(turn=turn, inputs=inputs, by_person=person))
            case CallModel():
                await self._unless_stopped(self._call_model(agent, step))
            case RunTools(turn, calls):
                await self._unless_stopped(self._run_tools(agent, turn, calls))
            case Finish():
                await self._writer.finish(self._session, step)
            case Sleep():
                await self._unless_stopped(self._sleep(step))
            case Compact():
                seen = self._session.version
                await self._unless_stopped(
                    summarise_context(self._session, agent, step, self._writer, self._clock, version=seen)
                )
            case Ask(wait):
                await self._write(wait)
            case Rest():
                return False
            case _ as never:
                assert_never(never)
        return True

    # --- the model ------------------------------------------------------------------------------

    async def _call_model(self, agent: Agent, step: CallModel) -> None:
        tools = [tool.spec for tool in (await agent.tools()).values()]
        context = agent.tool_context(self._session)
        request = model_request(
            self._session, turn=step.turn, instructions=agent.instructions, context=context, tools=tools
        )
        seen = self._session.version
        asked = ModelRequested(
            turn=step.turn, step=step.step, attempt=step.attempt, model=agent.model.name, context_version=seen
        )
        await self._write(asked)
        started = self._clock.now()
        self._streaming.start(self._stream, turn=step.turn, step=step.step, since=self._session.version)
        try:
            answer = await stream_answer(
                agent.model, request, show=self._show, save=lambda: self._writer.save_partial(self._session)
            )
            outcome: list[AnyEvent] = [response_event(step, answer, elapsed(self._clock, started))]
        except ModelError as error:
            streaming = self._streaming.get(self._stream)
            partial = Partial(streaming.text, streaming.thinking) if streaming is not None else Partial()
            again = (error.after_ms,) if error.retry else None
            said = agent.mask(error.problem.message)  # a provider may repeat any key that it was sent
            problem = msgspec.structs.replace(error.problem, message=said)
            outcome = failure_events(self._session, problem, partial, again, now=self._clock.now(), limits=agent.limits)
        self._streaming.end(self._stream)  # before it is written: no follower gets a delta after the answer
        await self._write(*outcome)

    def _show(self, piece: ModelDelta) -> None:
        self._streaming.append(self._stream, text=piece.text, thinking=piece.thinking)

    # --- tools ----------------------------------------------------------------------------------

    async def _run_tools(self, agent: Agent, turn: int, calls: list[Call]) -> None:
        """One after the other. Who needs a permission or an answer lets the whole turn wait for it."""
        session, tools = self._session, await agent.tools()
        for call in calls:
            opened = session.open_call(call.call) or OpenCall(call)
            started, cut_before = opened.started or self._clock.now(), opened.effect
            context = agent.tool_context(session, call.call)
            tool = tools.get(call.tool)
            other = await tool.delegated_profile(context, call.arguments) if isinstance(tool, Tool) else ""
            result = check_permission(
                session, call, tools=tools, rules=agent.rules, context=context, limits=agent.ancestors, handed_to=other
            )
            if isinstance(result, WaitOpened):
                await self._write(with_timeout(result, agent.approval_timeout_ms, now=self._clock.now()))
                return
            permitted = isinstance(result, Allowed)
            if isinstance(result, Allowed):
                result = await self._carry_out(result, call)
            result = mark_uncertain(result, cut_before, carried_out=permitted)
            took = elapsed(self._clock, started)
            await self._write(finished_event(call, result, turn=turn, duration_ms=took, hide=agent.mask))

    async def _carry_out(self, permitted: Allowed, call: Call) -> ToolOutcome:
        """The intent first, then the effect. After a crash the intent is there already."""
        turn, opened = self._session.turns, self._session.open_call(call.call)
        if opened is None or opened.effect is None:
            effect = effect_of(permitted.tool, call.arguments)
            await self._write(ToolCallStarted(turn=turn, call=call.call, tool=call.tool, effect=effect))
        return await permitted.tool.call(permitted.context, call.arguments)

    async def _sleep(self, step: Sleep) -> None:
        """Until it is time, unless somebody answers first: then the log says so, and ours is refused."""
        await until(self._clock, step.until)
        note = timeout_note(self._session)
        answer = WaitAnswered(turn=step.turn, wait=step.wait, answer=step.default, by="the clock", note=note)
        await self._writer.write_unless_changed(self._session, answer)

    # --- beginnings and ends --------------------------------------------------------------------

    async def _pick_up(self, left_behind: PartialText | None, break_: Break) -> None:
        """A turn that somebody else left open: say what is known, then go on or wait for a person."""
        agent = self._profiles.agent(self._session)
        await agent.clean_up(self._session)
        partial = Partial(left_behind.text, left_behind.thinking, left_behind.at) if left_behind else Partial()
        await self._write(*pick_up(self._session, partial, break_, now=self._clock.now(), limits=agent.limits))

    async def _suspend(self) -> None:
        """The gateway says goodbye: keep the text so far and mark the turn; the next start goes on."""
        await self._writer.save_partial(self._session)
        self._streaming.end(self._stream)
        await self._writer.refresh(self._session)
        turn = self._session.turn
        if turn is not None and turn.wait is None:
            await self._write(TurnSuspended(turn=turn.number, reason="the gateway was shut down"))

    async def _unless_stopped(self, work: Coroutine[None, None, None]) -> None:
        """Do it, but look up whenever somebody said something; a stop or an answer cuts it, at rest any message."""
        waited, rested = self._session.activity == "waiting", self._session.turn is None
        task = asyncio.create_task(work)
        try:
            while not task.done():
                change = asyncio.create_task(self._changes.wait())
                try:
                    await asyncio.wait({task, change}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    change.cancel()
                if not task.done() and any(self._changes.drain().values()):
                    await self._writer.refresh(self._session)
                    answered = waited and self._session.activity != "waiting"
                    heard = answered or (rested and self._session.queue)
                    if heard or stop_reason(self._session) is not None:
                        return
            await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _write(self, *events: AnyEvent) -> None:
        await self._writer.write(self._session, *events)
