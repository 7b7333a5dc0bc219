"""An external agent that is a command: one process a turn, which resumes the agent's session by its id.

    intent of the process, with its command line → start, prompt on its standard input → lines by offset → its end

A gateway that comes after a crash reads on where the log says; the process has not noticed. A process that was killed
is followed by another one, which resumes and learns that it was interrupted. Nobody can be asked for a permission, so
the agent runs in a mode in which it does not ask, and one without limits only where its profile says so.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec

from holdfast.domain.errors import Conflict, HoldfastError, NotFound
from holdfast.domain.events.external_agent import AgentAttached, AttachedBy, ContextKnown, DriverOutputRead
from holdfast.domain.events.parts import Usage
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import ModelFailed
from holdfast.domain.events.task import TaskStarted
from holdfast.domain.next_step import DriverStep, RunAgent
from holdfast.domain.session import Session
from holdfast.external_agent_checks import HOW_TO_ALLOW
from holdfast.rules.patterns import policy_of_tool
from holdfast.runtime.agents import Agent
from holdfast.runtime.drivers import Events, Prepared
from holdfast.runtime.drivers.external import (
    ExternalDriver,
    failed,
    forgotten,
    given_tools,
    idle,
    mode_problem,
    not_external,
)
from holdfast.runtime.external.command.arguments import (
    McpAddress,
    OwnSession,
    chooses_session,
    command_arguments,
    own_session_id,
    takes_prompt,
)
from holdfast.runtime.external.command.items import Answered, SessionNamed
from holdfast.runtime.external.command.reader import CommandReader
from holdfast.runtime.external.configuration import ExternalCommand, to_fork
from holdfast.runtime.external.problems import without_countdown
from holdfast.runtime.external.process import ExternalProcess
from holdfast.runtime.external.prompt import prompt_id, prompt_text, prompted_turn
from holdfast.runtime.external.steps import request_event
from holdfast.worker_access import TOKEN_VARIABLE


class CommandDriver(ExternalDriver):
    """Drives a command-line agent in one session."""

    name = "command"

    # --- prepare --------------------------------------------------------------------------------

    async def prepare(self, session: Session, agent: Agent, step: DriverStep, *, now: int) -> Prepared:
        """Return the request and the process of a turn; nothing while its process works."""
        turn, external, read = session.turn, agent.external, session.output_read
        if turn is None or not isinstance(step, RunAgent):
            return Prepared(Events(), perform=True)
        if external is None or external.command is None:
            return Prepared(Events([failed(turn, not_external(session))]), perform=False)
        if turn.kept_waiting is not None:
            return Prepared(Events([without_countdown(session, turn.kept_waiting)]), perform=False)
        if read is not None and prompted_turn(read.prompt) == turn.number:
            return Prepared(Events(), perform=True)
        asked, prompt = request_event(turn, turn.step + 1, external), prompt_id(turn, turn.step + 1)
        if (
            problem := mode_problem(session)
            or self._unfit(external, session)
            or rights_problem(agent, external, session)
        ):
            return Prepared(Events([asked, failed(turn, problem, step=turn.step + 1)]), perform=False)
        try:
            started = await self._next_process(session, agent, external, prompt)
            intent = self._tasks.intent(started)
        except HoldfastError as error:
            problem = Problem(code="rejected", message=error.message, hint=error.hint)
            return Prepared(Events([asked, failed(turn, problem, step=turn.step + 1)]), perform=False)
        used = self._used_before(session, external)
        mark = DriverOutputRead(task=started.task, offset=0, owed=[], prompt=prompt, used=used)
        return Prepared(Events([asked, mark], [intent]), perform=True)

    def _used_before(self, session: Session, external: ExternalCommand) -> Usage | None:
        """Return what the agent's own session has cost so far, where it counts that."""
        if session.adopted is not None and to_fork(session, external):
            return session.adopted.used
        read = session.output_read
        return None if read is None or resumable(session, external) is None else read.used

    async def _next_process(
        self, session: Session, agent: Agent, external: ExternalCommand, prompt: int
    ) -> TaskStarted:
        """Return the start of the turn's process, after the one before it has ended."""
        if session.output_read is not None:
            await self._end_process(session.output_read.task, "another process takes its place")
        argv = command_arguments(
            external,
            own_session(session, external, prompt),
            prompt=self._prompt(session, agent, external, prompt),
            servers=self._mcp_servers(session),
        )
        started = await self._new_process(session, agent, external, argv, number=prompt)
        mode = external.command_mode
        assert started.agent is not None
        env = dict(started.agent.env)
        if mode is not None:
            env |= dict(mode.env) | (dict(mode.sandbox_env) if started.sandbox is not None else {})
        run = session.run if self._access.server(session) is not None else 0
        needs = msgspec.structs.replace(started.agent, env=env, card=session.card if run else "", run=run)
        return msgspec.structs.replace(started, agent=needs)

    def _unfit(self, external: ExternalCommand, session: Session) -> Problem | None:
        """Return why the agent cannot work on the card of the session, if it has one."""
        if self._access.server(session) is None:
            return None
        if session.must_remember and resumable(session, external) is None:
            reason = "" if session.attached is None else session.attached.reason
            return forgotten(external, reason or "it has no session to resume")
        if external.command is not None and external.command.mcp:
            return None
        message = f"{external.name} cannot work on a card as a command: it has no tools to report with."
        return Problem(code="agent_unfit", message=message, hint='Give the card a profile with driver = "acp".')

    def _mcp_servers(self, session: Session) -> tuple[McpAddress, ...]:
        """Return the MCP servers that the agent is given by its flags."""
        server = self._access.server(session)
        return () if server is None else (McpAddress(server.name, server.url, TOKEN_VARIABLE),)

    def _prompt(self, session: Session, agent: Agent, external: ExternalCommand, prompt: int) -> str:
        knows = own_session(session, external, prompt).how != "new"
        return prompt_text(session, prompt, knows=knows, instructions=agent.instructions)

    def _process(self, task: str) -> ExternalProcess:
        return ExternalProcess(self._tasks, task, pause=self._writer.timings.agent_output)

    # --- perform --------------------------------------------------------------------------------

    async def perform(self, session: Session, agent: Agent, step: DriverStep) -> Events:
        """Let the agent work until its process has ended."""
        external, read = agent.external, session.output_read
        if session.turn is None or external is None or read is None or not isinstance(step, RunAgent):
            return Events()
        row = await self._start_process(read.task, external)
        if isinstance(row, Problem):
            return Events([failed(session.turn, row), idle(read)])
        process = self._process(read.task)
        with suppress(NotFound):  # it has ended: its last lines are read all the same
            await self._give_prompt(process, agent, external)
        return await self._or_wait(await self._read(process, agent, external), external)

    async def _give_prompt(self, process: ExternalProcess, agent: Agent, external: ExternalCommand) -> None:
        """Write the prompt to its standard input, unless it is in its command line, and close that."""
        session = self._writer.session
        assert session.output_read is not None
        prompt = session.output_read.prompt
        in_arguments = takes_prompt(external, own_session(session, external, prompt).how)
        text = "" if in_arguments else self._prompt(session, agent, external, prompt)
        with suppress(Conflict):  # it was closed, so all of it is there
            await process.give_input(text.encode(errors="replace"))

    async def _read(self, process: ExternalProcess, agent: Agent, external: ExternalCommand) -> Events:
        """Write down what the agent says; return how the turn ended when its process has."""
        reader = CommandReader(external, agent.mask, self._worker_tools)
        session = self._writer.session
        assert session.output_read is not None
        offset, known = session.output_read.offset, session.attached
        is_named = offset > 0 or (known is not None and known.task == process.task)
        self._show_step(reader.steps)
        lines = process.lines(offset, unended=True)
        while True:
            try:
                async with asyncio.timeout(self._patience(reader)):
                    said = await self._next_line(lines)
            except TimeoutError:
                await self._end_process(process.task, "it had answered, and did not end")
                break
            if said is None:
                break
            line, offset = said
            session = self._writer.session
            if session.turn is None:
                return Events()
            found = reader.read(line, session, now=self._clock.now())
            attached = [] if found.named is None or is_named else self._attached(found.named, external)
            is_named = is_named or found.named is not None
            if attached and attached[0].context == "unproven" and attached[0].reason:
                return await self._another_session(process, agent, attached, reader)
            if found.text or found.thinking:
                self._writer.add_text(found.text, found.thinking)
            if found.events:
                assert session.output_read is not None
                self._writer.end_text()
                mark = msgspec.structs.replace(session.output_read, offset=offset)
                await self._commit([*attached, *found.events, mark])
                self._show_step(reader.steps)
            elif attached:  # the text of the line is not in the log yet, so its offset is not, either
                await self._commit([*attached])
        return await self._ended(process, agent, external, reader, offset=offset, is_named=is_named)

    def _patience(self, reader: CommandReader) -> float | None:
        """Return how long a process may be silent: one that has answered must end."""
        return self._writer.timings.agent_stop if isinstance(reader.said_last, Answered) else None

    # --- the agent's own session ----------------------------------------------------------------

    def _attached(self, named: SessionNamed, external: ExternalCommand) -> list[AgentAttached]:
        """Return that the agent works in this session of its own, if that is news; unproven if another was asked for.

        An agent whose output is plain text does not say which session it is: it has the one that it was given.
        """
        session = self._writer.session
        read, before, turn = session.output_read, resumable(session, external), session.turn
        assert read is not None
        assert turn is not None
        assert external.command is not None
        is_text = external.command.output == "text"
        own = own_session(session, external, read.prompt)
        how: AttachedBy = own.how
        context: ContextKnown = "none"
        last, reason, remote = session.attached, "", named.id
        if is_text:
            remote = own.id if before is not None or chooses_session(external) else ""
        if before is not None:
            context = "unproven" if is_text else "proven"
            if remote != before.remote:
                context, reason = "unproven", f"it opened session {remote} instead of {before.remote}"
            elif not turn.interruptions and named.version in ("", before.version):
                return []  # as in the turn before
        elif how == "fork":
            context = "proven"  # an agent that does not find the session ends with an error
            if remote == own.adopted or (chooses_session(external) and remote != own.id):
                context, reason = "unproven", f"it opened session {remote} instead of a copy of {own.adopted}"
        elif last is not None and last.chapter == session.chapter.number and last.agent == external.name:
            if not external.command.resume:
                return []  # each of its turns starts a new session
            reason = last.reason or "its process ended before it had a session"
        return [self._attach_event(named.version, external, remote, how, context, reason)]

    def _attach_event(
        self, version: str, external: ExternalCommand, remote: str, how: AttachedBy, context: ContextKnown, reason: str
    ) -> AgentAttached:
        session = self._writer.session
        assert session.output_read is not None
        prompt, (run, url) = session.output_read.prompt, given_tools(self._access.server(session))
        return AgentAttached(
            task=session.output_read.task,
            number=prompt,
            agent=external.name,
            version=version,
            remote=remote,
            how=how,
            chapter=session.chapter.number,
            context=context,
            prompt=prompt,
            reason=reason,
            run=run,
            tools_url=url,
        )

    async def _another_session(
        self, process: ExternalProcess, agent: Agent, attached: list[AgentAttached], reader: CommandReader
    ) -> Events:
        """End a process that does not know the conversation, so that another one gets an account of it."""
        await self._end_process(process.task, "it does not work in the session that it was to resume")
        await self._commit([*attached])
        return self._resume_after("the agent did not resume its session", agent, reader.steps)

    # --- the end --------------------------------------------------------------------------------

    async def _ended(
        self,
        process: ExternalProcess,
        agent: Agent,
        external: ExternalCommand,
        reader: CommandReader,
        *,
        offset: int,
        is_named: bool,
    ) -> Events:
        """Return how the turn ended; that it is resumed, if its process was killed."""
        row = await self._tasks.wait_ended(process.task)
        session = self._writer.session
        if session.turn is None or session.output_read is None:
            return Events()
        words = agent.mask(process.last_words())
        assert external.command is not None
        own = own_session(session, external, session.output_read.prompt)
        is_unknown = own.how != "new" and not is_named and row.exit_code != 0
        ended = reader.end(row, words, session, now=self._clock.now())
        if ended is None:
            return await self._died(process, agent, reader.steps)
        self._writer.end_text()
        problem = next((event.problem for event in ended if isinstance(event, ModelFailed)), None)
        if problem is not None and problem.code == "agent_failed" and is_unknown:
            done = "copied" if own.how == "fork" else "resumed"
            reason = f"its session could not be {done} ({problem.message})"
            attached = self._attach_event("", external, "", own.how, "unproven", reason)
            await self._commit([attached])
            return self._resume_after("the agent could not resume its session", agent, reader.steps)
        last = reader.said_last
        total = last.total if isinstance(last, Answered) and last.total is not None else session.output_read.used
        return Events([*ended, msgspec.structs.replace(idle(session.output_read, offset=offset), used=total)])

    async def cancel(self, session: Session, step: DriverStep, reason: str, *, begun: bool) -> Events:
        """End the process, with all that it started."""
        read = session.output_read
        if session.turn is None or read is None or read.prompt == 0:
            return Events()
        await self._end_process(read.task, reason or "its turn was stopped", force=False)
        return Events([idle(read)])


def own_session(session: Session, external: ExternalCommand, prompt: int) -> OwnSession:
    """Return the agent's own session for a prompt: the one that is resumed, a copy of an adopted one, or a new one."""
    if (before := resumable(session, external)) is not None:
        return OwnSession("resume", before.remote)
    adopted = to_fork(session, external)
    return OwnSession("fork" if adopted else "new", own_session_id(session.id, prompt), adopted)


def resumable(session: Session, external: ExternalCommand) -> AgentAttached | None:
    """Return the agent's own session that the next process resumes; None if it begins a new one."""
    known, command = session.attached, external.command
    if known is None or command is None or not command.resume or not known.remote:
        return None
    if known.chapter != session.chapter.number or known.agent != external.name:
        return None
    return None if known.context == "unproven" and command.output != "text" else known


def rights_problem(agent: Agent, external: ExternalCommand, session: Session) -> Problem | None:
    """Return why the agent may not act without asking."""
    is_confined = agent.tool_context(session).sandbox.mode == "on"
    if external.unrestricted and not (is_confined or external.may_be_unrestricted):
        message = f"{external.name} would act without asking, and nothing would limit it."
        return Problem(code="rejected", message=message, hint=f"In its profile, {HOW_TO_ALLOW}")
    mode = external.command_mode
    for tool in ("write", "terminal") if mode is None else mode.uses:
        for layer in agent.ancestors:
            if policy_of_tool(tool, layer.rules) != "allow":
                message = (
                    f"{external.name} uses {tool!r} without asking, and the profile {layer.profile!r}, on whose behalf "
                    "it works, does not allow that."
                )
                hint = f'Allow "{tool}" in that profile, or use an agent that asks (driver = "acp").'
                return Problem(code="rejected", message=message, hint=hint)
    return None
