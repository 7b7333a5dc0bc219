"""An external agent that speaks the Agent Client Protocol, as a process that outlives the gateway.

    attach (or start and open a session) → prompt → lines, each with its offset in one append → the prompt's answer

One process works for a session, from turn to turn, until it has been idle for a while (`agent_idle`). A gateway that
comes after a crash reads on where the log says, sends what was not sent, and answers what is owed. If the process has
died, another one resumes the agent's own session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import msgspec

from holdfast.clock import until
from holdfast.domain.errors import HoldfastError, NotFound
from holdfast.domain.events import AnyEvent
from holdfast.domain.events.external_agent import AgentAttached, DriverOutputRead, OwedRequest
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import ToolCallStarted, WaitOpened
from holdfast.domain.events.task import TaskStarted
from holdfast.domain.next_step import DriverStep, RunAgent
from holdfast.domain.queue import find
from holdfast.domain.rights import strictest
from holdfast.domain.session import Session
from holdfast.rules.patterns import policy_of_tool
from holdfast.runtime.agents import Agent
from holdfast.runtime.drivers import Events, Prepared
from holdfast.runtime.drivers.external import (
    ExternalDriver,
    agent_task,
    failed,
    forgotten,
    given_tools,
    idle,
    mode_problem,
    not_external,
)
from holdfast.runtime.external.acp.answers import answer_to, cancelled, is_refused, next_wait, outcome
from holdfast.runtime.external.acp.lines import LineReader, error_problem, steering_end
from holdfast.runtime.external.acp.process import AcpProcess, AgentNotReady, Ready
from holdfast.runtime.external.acp.protocol import (
    answer,
    notification,
    parse,
    refusal,
    request,
    steered_input,
    steering_request,
)
from holdfast.runtime.external.configuration import ExternalCommand, to_fork
from holdfast.runtime.external.problems import without_countdown
from holdfast.runtime.external.prompt import prompt_id, prompt_text, prompted_turn, remembers
from holdfast.runtime.external.steering import joined, postponed, steering_inputs
from holdfast.runtime.external.steps import request_event
from holdfast.runtime.permissions import with_timeout
from holdfast.settings import Policy
from holdfast.worker_access import ToolServer


class AcpDriver(ExternalDriver):
    """Drives an external agent in one session."""

    name = "acp"

    _started = ""
    """The task that was prepared."""
    _number = 0
    """The number of its process."""
    _owed: Sequence[OwedRequest] = ()
    """The requests of the agent that have no answer yet."""

    # --- prepare --------------------------------------------------------------------------------

    async def prepare(self, session: Session, agent: Agent, step: DriverStep, *, now: int) -> Prepared:
        """Return the request of a new prompt, and the process if there is none; nothing while a prompt is open."""
        turn = session.turn
        if turn is None or not isinstance(step, RunAgent):
            return Prepared(Events(), perform=True)
        if agent.external is None:
            return Prepared(Events([failed(turn, not_external(session))]), perform=False)
        if turn.kept_waiting is not None:
            return Prepared(Events([without_countdown(session, turn.kept_waiting)]), perform=False)
        process = await self._attached(session)
        read = session.output_read
        if process is not None and read is not None and prompted_turn(read.prompt) == turn.number:
            return Prepared(Events(), perform=True)
        asked = request_event(turn, turn.step + 1, agent.external)
        if (problem := mode_problem(session)) is not None:
            return Prepared(Events([asked, failed(turn, problem, step=turn.step + 1)]), perform=False)
        if process is not None and read is not None:
            mark = DriverOutputRead(
                task=process.task, offset=read.offset, owed=[], prompt=prompt_id(turn, turn.step + 1)
            )
            return Prepared(Events([asked, mark]), perform=True)
        try:
            started = await self._another_process(session, agent, agent.external)
        except HoldfastError as error:
            problem = Problem(code="agent_missing", message=error.message, hint=error.hint)
            return Prepared(Events([asked, failed(turn, problem, step=turn.step + 1)]), perform=False)
        self._started = started.task
        return Prepared(Events([asked], [self._tasks.intent(started)]), perform=True)

    async def _attached(self, session: Session) -> AcpProcess | None:
        """Return the process that is ready for this chapter of the session, if there is one."""
        known = session.attached
        if known is None or known.chapter != session.chapter.number or not self._has_tools(session, known):
            return None
        row = await self._tasks.task_log.find(known.task)
        if row is None:
            return None
        process = self._process(known.task)
        read = session.output_read
        if row.state == "running" and not row.stop_by:
            self._tasks.follow_to_end(row)
            return process
        # it has ended: what it said last is read, if it was at work
        at_work = read is not None and read.task == known.task and read.prompt != 0
        return process if at_work else None

    def _has_tools(self, session: Session, known: AgentAttached) -> bool:
        """Whether a process has the tools of the session's run. One that works on the turn keeps what it has."""
        read, turn = session.output_read, session.turn
        if read is not None and turn is not None and prompted_turn(read.prompt) == turn.number:
            return True
        return given_tools(self._access.server(session)) == (known.run, known.tools_url)

    async def _another_process(self, session: Session, agent: Agent, external: ExternalCommand) -> TaskStarted:
        """Return the start of another process, after those before it have ended."""
        number = 1 if session.attached is None else session.attached.number
        if session.attached is not None:
            await self._end_process(session.attached.task, "another process takes its place")
            number += 1
        while (row := await self._tasks.task_log.find(agent_task(session, number))) is not None:
            await self._end_process(row.id, "it was not ready when its gateway ended")
            number += 1
        self._number = number
        return await self._new_process(session, agent, external, list(external.argv), number=number)

    def _process(self, task: str) -> AcpProcess:
        return AcpProcess(self._tasks, task, pause=self._writer.timings.agent_output)

    # --- perform --------------------------------------------------------------------------------

    async def perform(self, session: Session, agent: Agent, step: DriverStep) -> Events:
        """Let the agent work until it is done, asks for a permission, or dies."""
        assert agent.external is not None
        if session.turn is None or not isinstance(step, RunAgent):
            return Events()
        if self._started:
            task, self._started = self._started, ""
            if (problem := await self._make_ready(task, session, agent, agent.external)) is not None:
                return await self._or_wait(Events([failed(session.turn, problem)]), agent.external)
        session = self._writer.session
        assert session.attached is not None
        process = self._process(session.attached.task)
        process.discard(session.output_read)
        if (wait := next_wait(session)) is not None:
            return Events([wait])
        with suppress(NotFound):  # it has ended: its last lines are read all the same
            await self._send_due(process, agent)
            await self._send_steering(process)
        return await self._or_wait(await self._read(process, agent, agent.external), agent.external)

    async def _make_ready(self, task: str, session: Session, agent: Agent, external: ExternalCommand) -> Problem | None:
        """Start the process, and open the agent's session in it; return why that is not possible, if it is not."""
        row = await self._start_process(task, external)
        if isinstance(row, Problem):
            return row
        before = session.attached
        if before is not None and before.chapter != session.chapter.number:
            before = None
        if before is not None and external.load_after_ms:
            await self._wait_since_end(before.task, external.load_after_ms)
        process, server = self._process(task), self._access.server(session)
        try:
            async with asyncio.timeout(self._writer.timings.agent_ready):
                with self._access.listing(session) as listed:
                    adopted = to_fork(session, external)
                    ready = await process.make_ready(external, before, cwd=row.cwd, server=server, adopted=adopted)
                    if server is not None and external.tools_late:
                        await listed.wait()
        except (AgentNotReady, TimeoutError, NotFound) as error:
            await self._end_process(task, "it could not be made ready")
            if isinstance(error, AgentNotReady):
                return error_problem(error.error, external, now=self._clock.now())
            seconds = self._writer.timings.agent_ready
            said = process.last_words()
            message = f"{external.name} was not ready within {seconds:g} s. {said}".strip()
            return Problem(code="agent_failed", message=message)
        if session.must_remember and before is not None and ready.context != "proven":
            await self._end_process(task, "it does not remember the run before")
            return forgotten(external, agent.mask(ready.reason))
        await self._commit(self._attach_events(task, ready, agent, server))
        return None

    async def _wait_since_end(self, task: str, span_ms: int) -> None:
        """Wait until this long after the end of the process before: the agent could destroy its session."""
        row = await self._tasks.task_log.find(task)
        if row is not None and row.finished_at is not None:
            await until(self._clock, row.finished_at + span_ms)

    def _attach_events(self, task: str, ready: Ready, agent: Agent, server: ToolServer | None) -> list[AnyEvent]:
        session = self._writer.session
        assert session.turn is not None
        prompt, (run, url) = prompt_id(session.turn, session.turn.step), given_tools(server)
        attached = AgentAttached(
            task=task,
            number=self._number,
            agent=ready.agent,
            version=ready.version,
            remote=ready.remote,
            how=ready.how,
            chapter=session.chapter.number,
            context=ready.context,
            prompt=prompt,
            reason=agent.mask(ready.reason),
            steers=ready.steers,
            run=run,
            tools_url=url,
            version_before=ready.version_before(session.attached),
        )
        return [attached, DriverOutputRead(task=task, offset=ready.offset, owed=[], prompt=prompt)]

    async def _send_due(self, process: AcpProcess, agent: Agent) -> None:
        """Send the prompt and the answers that are due, unless they were sent."""
        session = self._writer.session
        turn, read, attached = session.turn, session.output_read, session.attached
        assert turn is not None
        assert read is not None
        assert attached is not None
        blocks = [
            {
                "type": "text",
                "text": prompt_text(session, read.prompt, knows=remembers(session), instructions=agent.instructions),
            }
        ]
        await process.send(request(read.prompt, "session/prompt", {"sessionId": attached.remote, "prompt": blocks}))
        open_, begun = list[OwedRequest](), list[AnyEvent]()
        for owed in read.owed:
            if (result := answer_to(owed, session, turn)) is None:
                open_.append(owed)
                continue
            await process.send(answer(owed.id, result))
            opened = turn.open_calls.get(owed.call)
            if not is_refused(owed, turn) and opened is not None and opened.effect is None:
                begun.append(ToolCallStarted(turn=turn.number, call=owed.call, tool=opened.call.tool, effect="unsafe"))
        self._owed = open_
        if begun:
            mark = msgspec.structs.replace(read, owed=open_)
            await self._commit([*begun, mark])

    async def _read(self, process: AcpProcess, agent: Agent, external: ExternalCommand) -> Events:
        """Write down what the agent says; return what ends this stretch of its work."""
        reader = self._reader(agent, external)
        session = self._writer.session
        assert session.output_read is not None
        self._show_step(reader.steps)
        lines = process.lines(session.output_read.offset)
        while (said := await self._next_line(lines)) is not None:
            line, offset = said
            message = parse(line)
            if message is None:
                continue
            session = self._writer.session
            if session.turn is None:
                return Events()
            found = reader.read(message, session, now=self._clock.now())
            if found.refuse is not None:
                await process.send(refusal(found.refuse.json_id, found.refuse.method))
            if found.text or found.thinking:
                self._writer.add_text(found.text, found.thinking)
            if not found.events:
                continue
            assert session.output_read is not None
            events = self._with_offset(
                found.events, session, session.output_read.offset if found.collecting else offset
            )
            if found.done:
                events = [*await self._steered(lines, session), *events]
            if found.waits or found.done:
                self._writer.end_text()
                now = self._clock.now()
                return Events([with_timeout_of(event, agent, now=now) for event in events])
            self._writer.end_text()
            await self._commit(events)
            for owed in self._owed:  # a rule of the profile gave the answer, and the log has it
                await process.send(answer(owed.id, outcome(owed, owed.answer)))
            self._owed = ()
            self._show_step(reader.steps)
        return await self._died(process, agent, reader.steps)

    def _reader(self, agent: Agent, external: ExternalCommand) -> LineReader:
        attached = self._writer.session.attached
        given = self._worker_tools if attached is not None and attached.run else frozenset[str]()
        return LineReader(external, policy=lambda tool: _policy(agent, tool), mask=agent.mask, given_tools=given)

    def _with_offset(self, events: list[AnyEvent], session: Session, offset: int) -> list[AnyEvent]:
        """Return the events with the offset behind the line that they came of, as the last one."""
        *others, last = events
        if not isinstance(last, DriverOutputRead):
            assert session.output_read is not None
            others, last = events, msgspec.structs.replace(session.output_read, owed=list(self._owed))
        else:
            self._owed = last.owed
        return [*others, msgspec.structs.replace(last, offset=offset)]

    # --- messages for it while it works -----------------------------------------------------------

    async def _steer(self) -> None:
        """Send what is to join its work; what it cannot take waits for the next turn."""
        session = self._writer.session
        read, attached = session.output_read, session.attached
        if attached is None or not attached.steers or read is None or read.prompt == 0:
            await super()._steer()
            return
        if session.turn is None or not (inputs := steering_inputs(session)):
            return
        steering = [*read.steering, *inputs]
        await self._commit([msgspec.structs.replace(read, owed=list(self._owed), steering=steering)])
        with suppress(NotFound):  # it has ended: its last lines are read all the same
            await self._send_steering(self._process(attached.task))

    async def _send_steering(self, process: AcpProcess) -> None:
        """Send the messages that the log says are to be sent while it works, unless they were."""
        session = self._writer.session
        assert session.attached is not None
        assert session.output_read is not None
        for input in session.output_read.steering:
            if (queued := find(session.queue, input)) is not None:
                await process.send(steering_request(input, session.attached.remote, queued.event.text))

    async def _steered(self, lines: AsyncIterator[tuple[bytes, int]], session: Session) -> list[AnyEvent]:
        """Return what became of the messages that it had not taken when its work ended: it may still say so.

        The lines that are read for that are read again in the next turn.
        """
        assert session.output_read is not None
        left, events = list(session.output_read.steering), list[AnyEvent]()
        with suppress(TimeoutError, StopAsyncIteration):
            async with asyncio.timeout(self._writer.timings.agent_stop):
                while left:
                    message = parse((await anext(lines))[0])
                    if message is not None and message.is_answer and (input := steered_input(message)) in left:
                        left.remove(input)
                        events += steering_end(message, session)
        return [*events, *postponed(left, "the agent ended its work and did not say whether it has read it")]

    # --- stop and shutdown ----------------------------------------------------------------------

    async def cancel(self, session: Session, step: DriverStep, reason: str, *, begun: bool) -> Events:
        """Ask the agent to stop, and read its last lines; end its process if it does not."""
        read, attached = session.output_read, session.attached
        if session.turn is None or attached is None or read is None or read.prompt == 0:
            return Events()
        process = self._process(attached.task)
        if not await process.is_running():
            return Events([idle(read)])
        with suppress(TimeoutError, NotFound):
            async with asyncio.timeout(self._writer.timings.agent_stop):
                return Events(await self._stopped(process, attached, session))
        await self._end_process(attached.task, "it did not stop its work when it was asked to")
        return Events([*joined(session, read.steering), idle(read)])

    async def _stopped(self, process: AcpProcess, attached: AgentAttached, session: Session) -> list[AnyEvent]:
        """Ask it to stop, and wait until it says that it has. What it says meanwhile is not kept; a message that was
        sent to it meanwhile is of the turn that is stopped, unless it says that it did not take it.
        """
        read, events = session.output_read, list[AnyEvent]()
        assert read is not None
        left = list(read.steering)
        for owed in read.owed:
            await process.send(answer(owed.id, cancelled(owed)))
        await process.send(notification("session/cancel", {"sessionId": attached.remote}))
        async for line, offset in process.lines(read.offset):
            message = parse(line)
            if message is None or not message.is_answer:
                continue
            if (input := steered_input(message)) in left:
                left.remove(input)
                events += steering_end(message, session)
            if message.id == read.prompt:
                return [*events, *joined(session, left), idle(read, offset=offset)]
        return [*events, *joined(session, left), idle(read)]


def with_timeout_of(event: AnyEvent, agent: Agent, *, now: int) -> AnyEvent:
    """Return a wait with the time at which it is denied, if the profile has a limit; any other event as it is."""
    return with_timeout(event, agent.approval_timeout_ms, now=now) if isinstance(event, WaitOpened) else event


def _policy(agent: Agent, tool: str) -> Policy:
    """Return what the rules say about a tool of an external agent; where they say nothing, a person is asked.

    The agent acts by itself, so only rules for a whole tool are applied, not those for a path or a command.
    """
    return strictest([policy_of_tool(tool, rules) or "ask" for rules in agent.all_rules])
