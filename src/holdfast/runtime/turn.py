"""The loop of a turn, the centre of the system.

    plan: what follows from the facts, up to the next effect  →  commit  →  perform  →  facts  →  again, until `Rest`

Recovery is not a subsystem: after a crash a new worker runs the same loop. First it describes what it found
(`pick_up`): an interrupted answer, a tool call whose outcome is not known.

What others write meanwhile (a message, a stop) is in the log before the worker sees it. A stop cancels a model call or
a tool in the middle. Decisions are committed only if the session has not changed; else the worker plans again.

Not here: what starts workers (`runner.py`), what comes next (`domain/next_step.py`), what an agent does
(`drivers/builtin.py`), how events are written (`writer.py`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from holdfast.clock import Clock, until
from holdfast.domain.events.actor import THE_CLOCK
from holdfast.domain.events.session import InputsJoined, TurnStarted, WaitAnswered
from holdfast.domain.next_step import (
    Advance,
    Begin,
    Finish,
    Join,
    Partial,
    Rest,
    Sleep,
    Step,
    closing_events,
    session_step,
    stop_reason,
)
from holdfast.domain.resume import NO_BREAK, Break
from holdfast.domain.session import Session
from holdfast.domain.session_fold import after
from holdfast.domain.summary import cancelled_hand_over
from holdfast.runtime.agents import Agent, Agents
from holdfast.runtime.drivers import Driver, Events, Prepared
from holdfast.runtime.permissions import timeout_note
from holdfast.runtime.work_time import WorkTime
from holdfast.runtime.writer import SessionWriter
from holdfast.store.contract import Subscription
from holdfast.tasks.log import TaskLog


@dataclass(frozen=True, slots=True)
class Plan:
    """The next effect, and all that must be on disk before it begins."""

    step: Step
    agent: Agent
    decisions: Events
    session: Session
    """The session after facts and decisions are stored."""
    at: int


class SessionWorker:
    """Runs the turns of one session under its lease, until there is nothing left to do."""

    def __init__(
        self,
        writer: SessionWriter,
        driver: Driver,
        *,
        changes: Subscription,
        agents: Agents,
        task_log: TaskLog,
        clock: Clock,
        work_time: WorkTime,
        plan_seconds: float,
    ) -> None:
        self._plan_seconds = plan_seconds
        self._writer = writer
        self._driver = driver
        self._changes = changes
        self._agents = agents
        self._task_log = task_log
        self._clock = clock
        self._work_time = work_time
        self._timed_out = ""
        """The wait that has timed out."""

    async def run(self, left: Partial, break_: Break = NO_BREAK) -> None:
        """The loop. `left` is the text so far of a step that an earlier worker left open."""
        try:
            facts, at = await self._pick_up(left, break_), self._clock.now()
            while True:
                plan = await self._plan_in_time(facts, at)
                if plan is None or not await self._writer.commit(
                    facts, plan.decisions, at=plan.at, planned=plan.session
                ):
                    facts = Events()  # only the facts were stored, since the session has changed: plan again
                elif isinstance(plan.step, Rest):
                    return
                else:
                    facts = await self._perform(plan)
                at = self._clock.now()
        except asyncio.CancelledError:
            await self._leave()
            raise

    # --- plan -----------------------------------------------------------------------------------

    async def _plan_in_time(self, facts: Events, at: int) -> Plan | None:
        """Return the next plan; if that takes long (a server that does not answer), store the facts and return None."""
        try:
            async with asyncio.timeout(self._plan_seconds if facts else None):
                return await self._plan(facts, at)
        except TimeoutError:
            await self._writer.commit(facts, at=at)
            return None
        except Exception:
            await self._writer.commit(facts, at=at)  # a bug in the plan loses no fact
            raise

    async def _plan(self, facts: Events, at: int) -> Plan:
        session, decisions = after(self._writer.session, facts.session, at=at), Events()
        agent = await self._agents.of(session)
        while True:
            worked = self._work_time.spent_ms(session)
            step: Step | Advance = session_step(
                session, agent.limits, now=at, worked_ms=worked, joins=self._driver.joins
            )
            if isinstance(step, Advance):
                step = self._driver.next(session, agent, now=at)
            prepared = await self._prepare(session, agent, step, at)
            decisions.add(prepared.events)
            session = after(session, prepared.events.session, at=at)
            if prepared.perform:
                return Plan(step, agent, decisions, session, at)

    async def _prepare(self, session: Session, agent: Agent, step: Step, at: int) -> Prepared:
        match step:
            case Begin(turn, inputs, by_person):
                started = TurnStarted(turn=turn, inputs=inputs, profile=session.profile, by_person=by_person)
                events = [*cancelled_hand_over(session), started]
                return Prepared(Events(events, await self._task_log.turn_started(session, started)), perform=False)
            case Join(turn, inputs, by_person):
                return Prepared(Events([InputsJoined(turn=turn, inputs=inputs, by_person=by_person)]), perform=False)
            case Sleep(turn, wait, _, default) if wait == self._timed_out:
                note = timeout_note(session)
                answer = WaitAnswered(turn=turn, wait=wait, answer=default, by=THE_CLOCK, note=note)
                return Prepared(Events([answer]), perform=False)
            case Finish():
                companions = await self._task_log.turn_finished(session, step, watched=agent.watched_tools)
                closing = closing_events(session, step, self._writer.end_text(), now=at)
                return Prepared(Events(closing, companions), perform=True)
            case Sleep() | Rest():
                return Prepared(Events(), perform=True)
            case _:
                return await self._driver.prepare(session, agent, step, now=at)

    # --- perform --------------------------------------------------------------------------------

    async def _perform(self, plan: Plan) -> Events:
        """Perform an effect; cancel it on a stop or an answer, and while idle on any message."""
        if isinstance(plan.step, Finish):
            return Events()
        self._writer.check_lease()
        before = self._writer.session
        if await self._is_cancelled_by_log(before):
            return await self._cancel(plan, begun=False)
        cancelled = False
        with self._work_time.measured(before):
            effect = asyncio.create_task(self._effect(plan))
            try:
                while not effect.done():
                    either: list[asyncio.Future[Any]] = [effect, self._changes.next()]
                    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                    if not effect.done() and (cancelled := await self._is_cancelled_by_log(before)):
                        break
                    self._driver.session_changed()
            finally:
                if not effect.done():
                    effect.cancel()
                    await asyncio.gather(effect, return_exceptions=True)
        return await self._cancel(plan, begun=True) if cancelled and effect.cancelled() else effect.result()

    async def _effect(self, plan: Plan) -> Events:
        step = plan.step
        match step:
            case Sleep(_, wait, moment):
                await until(self._clock, moment)
                self._timed_out = wait
                return Events()
            case Begin() | Join() | Rest():
                return Events()
            case _:
                return await self._driver.perform(self._writer.session, plan.agent, step)

    async def _is_cancelled_by_log(self, before: Session) -> bool:
        """Return whether a new event cancels the effect."""
        if not any(self._changes.drain().values()):
            return False
        await self._writer.refresh()
        session = self._writer.session
        answered = before.activity == "waiting" and session.activity != "waiting"
        written_to = before.turn is None and bool(session.queue)
        return answered or written_to or stop_reason(session) is not None

    async def _cancel(self, plan: Plan, *, begun: bool) -> Events:
        session = self._writer.session
        reason = stop_reason(session) or "something else came first"
        match plan.step:
            case Begin() | Join() | Finish() | Sleep() | Rest():
                return Events()
            case step:
                return await self._driver.cancel(session, step, reason, begun=begun)

    # --- beginnings and ends --------------------------------------------------------------------

    async def _pick_up(self, left: Partial, break_: Break) -> Events:
        """Return what is known about the turn or the summary that an earlier worker left open, if one did."""
        session = self._writer.session
        if session.turn is None and session.chapter.in_progress is None:
            return Events()
        agent = await self._agents.of(session)
        return await self._driver.pick_up(session, agent, left, break_, now=self._clock.now())

    async def _leave(self) -> None:
        """Store the text so far at a shutdown; the next start resumes."""
        await self._writer.save_text()
        self._writer.end_text()
        await self._writer.refresh()
        now = self._clock.now()
        await self._writer.commit(await self._driver.leave(self._writer.session, now=now), at=now)
