"""What the drivers of external agents share: a process under keepers that outlives the gateway, read by offset.

    intent of the process in the log → start → lines, each with its offset in one append → its end, or its death

A gateway that comes after a crash reads on where the log says. If the process has died in the middle of a turn, the
turn is resumed with another one. What is sent to the agent and what its lines mean depends on the protocol (`acp.py`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import suppress

import msgspec

from holdfast.clock import Clock
from holdfast.domain.errors import Conflict
from holdfast.domain.events import AnyEvent
from holdfast.domain.events.actor import THE_RUNTIME, AgentActor
from holdfast.domain.events.external_agent import DriverOutputRead
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import ModelFailed, TurnResumed, WaitOpened
from holdfast.domain.events.task import AgentProcess, TaskStarted
from holdfast.domain.next_step import DriverStep, Partial, Rest, RunAgent, wait_id
from holdfast.domain.resume import Break
from holdfast.domain.rights import MODE_LIMITS
from holdfast.domain.session import Session, Turn
from holdfast.domain.session_rules import not_steered_reason
from holdfast.domain.task import AGENT_CALL, task_of_call
from holdfast.domain.task_commands import StartCommand
from holdfast.runtime.agents import Agent
from holdfast.runtime.drivers import Events
from holdfast.runtime.external.configuration import ExternalCommand
from holdfast.runtime.external.out_of_memory import MemoryKills, out_of_memory
from holdfast.runtime.external.problems import wait_after
from holdfast.runtime.external.process import ExternalProcess
from holdfast.runtime.external.steering import joined, postponed, steering_inputs
from holdfast.runtime.external.steps import StepCollector, unknown_end
from holdfast.runtime.writer import SessionWriter
from holdfast.store.rows import TaskRow
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.log import command_started
from holdfast.worker_access import ToolServer, WorkerAccess


def agent_task(session: Session, number: int) -> str:
    """Return the task of the session's process with this number."""
    return task_of_call(session.id, f"{AGENT_CALL} {number}")


def mode_problem(session: Session) -> Problem | None:
    """Return why an external agent may not work: it carries out its calls itself, so nothing holds it to a mode."""
    mode = session.mode_in_force
    if mode == "profile":
        return None
    message = f"This session may {MODE_LIMITS[mode]}. An external agent carries out its calls itself, whatever we say."
    return Problem(code="rejected", message=message, hint="Use a profile with the built-in agent.")


class ExternalDriver(ABC):
    """Drives an external agent in one session."""

    joins = False

    def __init__(
        self,
        writer: SessionWriter,
        clock: Clock,
        tasks: CommandTasks,
        access: WorkerAccess,
        worker_tools: frozenset[str],
    ) -> None:
        """`worker_tools` are the names of the tools that it is given when it works on a card."""
        self._writer = writer
        self._clock = clock
        self._tasks = tasks
        self._access = access
        self._worker_tools = worker_tools
        self._killed = MemoryKills()
        self._changed = asyncio.Event()

    async def pick_up(self, session: Session, agent: Agent, left: Partial, break_: Break, *, now: int) -> Events:
        """The agent works on by itself: nothing was interrupted. One that was stopped meanwhile is informed."""
        if session.turn is not None and session.turn.stop is not None and session.turn.step > 0:
            return await self.cancel(session, RunAgent(session.turn.number), "", begun=True)
        return Events()

    def next(self, session: Session, agent: Agent, *, now: int) -> DriverStep:
        """Let the agent work while a turn is open."""
        return Rest() if session.turn is None else RunAgent(session.turn.number)

    @abstractmethod
    async def cancel(self, session: Session, step: DriverStep, reason: str, *, begun: bool) -> Events:
        """Have the agent stop its work."""

    def session_changed(self) -> None:
        """Have `_next_line` look for messages that steer."""
        self._changed.set()

    async def leave(self, session: Session, *, now: int) -> Events:
        """The agent continues without us."""
        return Events()

    # --- its process ----------------------------------------------------------------------------

    async def _new_process(
        self, session: Session, agent: Agent, external: ExternalCommand, argv: list[str], *, number: int
    ) -> TaskStarted:
        """Return the start of the process with this number."""
        context = agent.tool_context(session)
        started = command_started(
            StartCommand(argv=argv, name=external.name),
            task=agent_task(session, number),
            cwd=str(context.cwd),
            by=AgentActor(session=session.id, call=AGENT_CALL),
            session="",  # its end is no news for the session, and it ends by rules of its own
        )
        env = dict(external.env) | (dict(external.env_on_card) if session.run else {})
        needs = AgentProcess(session=session.id, env=env, variables=list(external.variables), piped=external.piped)
        started = msgspec.structs.replace(started, agent=needs)
        if context.sandbox.mode != "on" and context.sandbox.network:  # of its profile and of those that created it
            return msgspec.structs.replace(started, no_sandbox="its profile does not ask for one")
        confine = self._tasks.defaults.confine
        return await asyncio.to_thread(
            confine, started, context.sandbox, workspace=context.cwd, own=context.workspace, agent=external.files
        )

    async def _start_process(self, task: str, external: ExternalCommand) -> TaskRow | Problem:
        """Start the process whose intent is in the log; return why that is not possible, if it is not."""
        row = await self._tasks.task_log.find(task)
        assert row is not None
        self._tasks.follow_to_end(row)
        row = await self._tasks.wait_started(task)
        if row.state == "running" or row.pid is not None:
            return row
        hint = f"Install it: `{external.install}`" if external.install else "Look at `argv` in its profile."
        reason = row.reason.removeprefix("never started: ").removeprefix("The command could not start: ")
        return Problem(code="agent_missing", message=f"{external.name} could not be started: {reason}.", hint=hint)

    async def _end_process(self, task: str, reason: str, *, force: bool = True) -> None:
        """End a process, with all that it started, and wait for its end; without force it may end by itself first."""
        row = await self._tasks.task_log.find(task)
        if row is None or row.state != "running":
            return
        with suppress(Conflict):  # it has just ended
            await self._tasks.request_stop(row, by=THE_RUNTIME, reason=reason, force=force)
        await self._tasks.wait_ended(task)

    # --- its output -----------------------------------------------------------------------------

    async def _next_line(self, lines: AsyncIterator[tuple[bytes, int]]) -> tuple[bytes, int] | None:
        """Return the agent's next line with the offset behind it; None at the end. Messages that come meanwhile and are
        to join its work are passed on to it.
        """
        line = asyncio.ensure_future(anext(lines, None))
        while not line.done():
            self._changed.clear()
            changed = asyncio.ensure_future(self._changed.wait())
            try:
                await self._steer()
                await asyncio.wait((line, changed), return_when=asyncio.FIRST_COMPLETED)
            except BaseException:
                line.cancel()
                await asyncio.gather(line, return_exceptions=True)
                raise
            finally:
                changed.cancel()
        return line.result()

    async def _steer(self) -> None:
        """Pass on what is to join the work of the agent; by default it waits for the next turn, and the log says so."""
        session = self._writer.session
        if session.turn is not None and (inputs := steering_inputs(session)):
            await self._commit([*postponed(inputs, not_steered_reason(session))])

    def _show_step(self, steps: StepCollector) -> None:
        """Show the text of the step that begins."""
        turn = self._writer.session.turn
        if turn is not None:
            steps.begin_step(now=self._clock.now())
            self._writer.start_text(turn=turn.number, step=turn.step)

    async def _died(self, process: ExternalProcess, agent: Agent, steps: StepCollector) -> Events:
        """Return what is known of a turn whose agent died, and that it is resumed; or the wait for a person."""
        row = await self._tasks.wait_ended(process.task)
        session = self._writer.session
        name = session.attached.agent if session.attached is not None else "the agent"
        words = agent.mask(process.last_words())
        said = "" if row.signal == "SIGKILL" else words.rpartition("\n")[2]  # it had no time to say why
        how = out_of_memory(row, words, killed=self._killed.new()) or row.reason
        reason = f"the process of {name} ended: {how}" + (f" ({said})" if said else "")
        return self._resume_after(reason, agent, steps)

    def _resume_after(self, reason: str, agent: Agent, steps: StepCollector) -> Events:
        """Return the end of what was cut, and that the turn is resumed; or the wait for a person."""
        session = self._writer.session
        turn, read = session.turn, session.output_read
        assert turn is not None
        assert read is not None
        self._writer.end_text()
        # messages that joined are sent again with the rest: it is not known whether it has read them
        events: list[AnyEvent] = [*joined(session, read.steering)]
        events += [steps.interrupted(turn, reason)] if turn.asked else []
        events += [unknown_end(turn, call, reason) for call in turn.open_calls]
        events.append(idle(read))
        if turn.stop is not None:
            return Events(events)
        attempt = turn.resumes + 1
        if attempt > agent.limits.resume_attempts:
            why = f"{reason}, {turn.resumes + 1} times in a row without progress"
            wait = wait_id(session, turn)
            return Events([*events, WaitOpened(turn=turn.number, wait=wait, purpose="resume", reason=why)])
        resumed = TurnResumed(turn=turn.number, attempt=attempt, interruption="crash", reason=reason, away_ms=0)
        return Events([*events, resumed])

    async def _or_wait(self, events: Events, external: ExternalCommand) -> Events:
        """Return what happened, with a wait if a person or the time can mend why it failed."""
        session = self._writer.session
        failure = next((event for event in events.session if isinstance(event, ModelFailed)), None)
        if failure is None or session.turn is None or session.turn.stop is not None:
            return events
        wait = wait_after(session, failure, external, now=self._clock.now())
        if wait is None:
            return events
        if wait.purpose == "login" and session.attached is not None:  # it would go on with the old log-in
            await self._end_process(session.attached.task, "somebody must log in first")
        return Events([*events.session, wait], events.companions)

    async def _commit(self, events: list[AnyEvent]) -> None:
        await self._writer.commit(Events(events), at=self._clock.now())


def idle(read: DriverOutputRead, *, offset: int | None = None) -> DriverOutputRead:
    """Return how far the output was read of an agent that works on nothing any more."""
    end = read.offset if offset is None else offset
    return msgspec.structs.replace(read, owed=[], steering=[], prompt=0, offset=end)


def given_tools(server: ToolServer | None) -> tuple[int, str]:
    """Return what the log says of the tools that a process was given: the run, and where they are."""
    return (0, "") if server is None else (server.run, server.url)


def forgotten(external: ExternalCommand, reason: str) -> Problem:
    """Return the problem of an agent that must remember the run before, by the policy of its card, and does not."""
    message = f"{external.name} does not remember what the run before did: {reason}."
    return Problem(
        code="agent_unfit", message=message, hint="`holdfast card unblock CARD --fresh` starts a new session."
    )


def failed(turn: Turn, problem: Problem, *, step: int | None = None) -> ModelFailed:
    """Return the event of a turn whose agent cannot work."""
    return ModelFailed(turn=turn.number, step=turn.step if step is None else step, problem=problem)


def not_external(session: Session) -> Problem:
    """Return the problem of a session whose profile has lost its agent."""
    message = f"The profile {session.profile!r} has no external agent, but this session was begun with one."
    hint = "Give the profile its agent back, or start a new session."
    return Problem(code="unknown_driver", message=message, hint=hint)
