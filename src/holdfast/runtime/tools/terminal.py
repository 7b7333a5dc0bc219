"""The tools `terminal` and `process`: commands that outlive the gateway.

A command in the foreground goes through the same keeper as one in the background. The task of a call is
found by the call's id: after a crash the call is carried out again, finds the command that it had started,
and waits on. Past its timeout nothing is killed; the command becomes a background task, and the model is notified.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal, assert_never

import msgspec

from holdfast.clock import Clock
from holdfast.domain.errors import Gone, HoldfastError, NotFound, Rejected
from holdfast.domain.events.actor import AgentActor
from holdfast.domain.events.session import CallOutcome, Effect
from holdfast.domain.events.task import TaskStarted
from holdfast.domain.task import NEVER_STARTED, task_of_call
from holdfast.domain.task_commands import StartCommand
from holdfast.runtime.tools.context import ToolContext, ToolFailed
from holdfast.runtime.tools.tool import AnyTool, CommandEnd, Tool, ToolOutput
from holdfast.schemas.tasks import TaskView
from holdfast.settings import OTHERS_TASKS, Policy
from holdfast.store.contract import Write
from holdfast.store.rows import TaskRow
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.log import command_started
from holdfast.tasks.queries import TaskQueries
from holdfast.tasks.views import table
from holdfast.timings import USUAL, TaskTimings

TIMEOUT_SECONDS = 120
LONGEST_SECONDS = 86_400


class TerminalArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command for the shell."""

    command: Annotated[str, msgspec.Meta(min_length=1, description="The command line for the shell.")]
    timeout: Annotated[
        int,
        msgspec.Meta(
            ge=1,
            le=LONGEST_SECONDS,
            description="After this many seconds it continues in the background; it is not killed.",
        ),
    ] = TIMEOUT_SECONDS
    background: Annotated[bool, msgspec.Meta(description="Do not wait for it: servers, long builds.")] = False
    cwd: Annotated[str, msgspec.Meta(description="The directory to run it in, inside the working directory.")] = "."
    lifetime: Annotated[
        Literal["chapter", "session", "persist"],
        msgspec.Meta(
            description="How long it may run: until the next reset, until the session is archived, or without limit."
        ),
    ] = "session"
    notify: Annotated[bool, msgspec.Meta(description="Wake this conversation when it ends in the background.")] = False
    stdin: Annotated[bool, msgspec.Meta(description="Keep its input open, for `process` with action write.")] = False


class ProcessArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something to do with a background task."""

    action: Literal["list", "poll", "log", "wait", "kill", "write"]
    task: Annotated[str, msgspec.Meta(description="The id of the task; for all but list.")] = ""
    timeout: Annotated[
        int, msgspec.Meta(ge=1, le=LONGEST_SECONDS, description="For wait: how many seconds at most.")
    ] = TIMEOUT_SECONDS
    offset: Annotated[int, msgspec.Meta(ge=0, description="For log: from which byte on; by default the end.")] = 0
    text: Annotated[str, msgspec.Meta(description="For write: what to type; end a line with a newline.")] = ""


def command_tools(
    tasks: CommandTasks, task_queries: TaskQueries, clock: Clock, timings: TaskTimings = USUAL.tasks
) -> list[AnyTool]:
    """Return the tools `terminal` and `process`."""
    terminal, process = TerminalTools(tasks, task_queries, clock), ProcessTool(tasks, task_queries, timings.kill)
    return [
        Tool(
            "terminal",
            "Run a shell command. It keeps running when the server restarts, and its output is kept.",
            "keyed",
            TerminalArguments,
            terminal.run,
            subject_field="command",
            companions=terminal.companions,
            default_policy="ask",
            file_changes="unknown",
        ),
        Tool(
            "process",
            "Manage background tasks: list, poll, log, wait, kill, write to their input.",
            "idempotent",
            ProcessArguments,
            process.run,
            subject_field="action",
            effect_of_call=_effect,
            default_policy="ask",
            policy_of_call=_policy,
            file_changes="none",
        ),
    ]


def _effect(arguments: ProcessArguments) -> Effect:
    match arguments.action:
        case "list" | "poll" | "log" | "wait":
            return "pure"
        case "kill":
            return "idempotent"
        case "write":
            return "unsafe"
        case _ as never:
            assert_never(never)


def _policy(arguments: ProcessArguments) -> Policy:
    return "ask" if arguments.action in ("kill", "write") else "allow"


class TerminalTools:
    """Starts commands for agents."""

    def __init__(self, tasks: CommandTasks, task_queries: TaskQueries, clock: Clock) -> None:
        self._tasks = tasks
        self._task_queries = task_queries
        self._clock = clock

    async def companions(self, context: ToolContext, arguments: TerminalArguments) -> tuple[Write, ...]:
        """Return the intent of this call's task, unless it is in the log."""
        task = task_of_call(context.session, context.call)
        if await self._find(task) is not None:
            return ()
        try:
            return (self._tasks.intent(await asyncio.to_thread(self._task, task, context, arguments)),)
        except Rejected as error:
            raise ToolFailed.by(error) from error

    async def run(self, context: ToolContext, arguments: TerminalArguments) -> ToolOutput:
        """Start the command of this call, unless that was done before; wait for it, or leave it in the background."""
        task = task_of_call(context.session, context.call)
        row = await self._find(task)
        if row is None:  # an older version had written the intent of the call and no task
            try:
                await self._tasks.start_command(await asyncio.to_thread(self._task, task, context, arguments))
            except Rejected as error:
                raise ToolFailed.by(error) from error
            row = await self._task_queries.find(task)
        since = row.started_at
        if row.state == "running" and row.pid is None:  # the gateway was killed before the command began
            since = self._clock.now()
        if not self._tasks.is_here(row):  # its session has moved to this node
            since = self._clock.now()  # when it began is by the clock of that node, which may be another
            return await self._outcome_elsewhere(row, arguments, since=since)
        self._tasks.follow_to_end(row)
        return await self._outcome(task, arguments, since=since)

    async def _outcome_elsewhere(self, row: TaskRow, arguments: TerminalArguments, *, since: int) -> ToolOutput:
        """Wait for a command on another node, as long as that node lives; then nobody knows what became of it."""

        async def outcome() -> ToolOutput:
            if row.state == "running" and row.pid is None:
                await self._task_queries.begin_elsewhere(row)
            return await self._outcome(row.id, arguments, since=since)

        waiting = asyncio.create_task(outcome())
        lost = asyncio.create_task(self._task_queries.wait_node_lost(row.node))
        try:
            await asyncio.wait({waiting, lost}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return waiting.result()
        finally:
            for task in (waiting, lost):
                task.cancel()
            await asyncio.gather(waiting, lost, return_exceptions=True)
        away = f"node {row.node}, where it runs, is away"
        row = await self._tasks.task_log.background(row.id, away)
        if row.state != "running":
            return await self._ended(row)
        begun = "It may have begun." if row.pid is None else f"It began there as pid {row.pid}."
        text = f"It is not known what became of it: {away}. {begun} When that node is back, task {row.id} has its end."
        return ToolOutput(text, task=row.id, outcome="unknown")

    async def _find(self, task: str) -> TaskRow | None:
        """Return the task's row, if it is in the log."""
        try:
            return await self._task_queries.find(task)
        except Gone as error:
            text = f"It was started before, as task {task}, which was pruned: its result is no longer known."
            raise ToolFailed(text) from error
        except NotFound:
            return None

    def _task(self, task: str, context: ToolContext, arguments: TerminalArguments) -> TaskStarted:
        """Return the intent of a command, with its sandbox. Call it in a thread."""
        cwd = context.resolve(arguments.cwd)
        if not cwd.is_dir():
            raise ToolFailed(f"{arguments.cwd} is not a directory.")
        command = StartCommand(
            shell=arguments.command, lifetime=arguments.lifetime, notify=arguments.notify, stdin=arguments.stdin
        )
        started = command_started(
            command,
            task=task,
            cwd=str(cwd),
            by=AgentActor(session=context.session, call=context.call),
            session=context.session,
            foreground=not arguments.background,
            kept=context.kept_output,
        )
        confine = self._tasks.defaults.confine
        return confine(started, context.sandbox, workspace=context.cwd, own=context.workspace)

    async def _outcome(self, task: str, arguments: TerminalArguments, *, since: int) -> ToolOutput:
        if arguments.background:
            row = await self._tasks.wait_started(task)
            if row.state != "running":
                return await self._ended(row)
            text = f"It runs in the background as task {task}, pid {row.pid}."
            return ToolOutput(text, task=task, end=CommandEnd(running=True))
        left = since / 1000 + arguments.timeout - self._clock.now() / 1000
        try:
            async with asyncio.timeout(max(0.0, left)):
                row = await self._tasks.wait_ended(task)
        except TimeoutError:
            row = await self._tasks.task_log.background(task, f"it took longer than {arguments.timeout} s")
            if row.state == "running":
                so_far = await self._task_queries.excerpt(row)
                text = f"It still runs after {arguments.timeout} s and continues in the background as task {task}."
                return ToolOutput(f"{text} So far it printed:\n{so_far}", task=task, end=CommandEnd(running=True))
        if row.reason.startswith(NEVER_STARTED):
            raise ToolFailed(f"{row.reason}.")
        return await self._ended(row)

    async def _ended(self, row: TaskRow) -> ToolOutput:
        """Return how a command ended; `unknown` if it was lost."""
        outcome: CallOutcome = "unknown" if row.state == "lost" else "done"
        return ToolOutput(await self._task_queries.result_text(row), task=row.id, end=_end(row), outcome=outcome)


class ProcessTool:
    """Lets agents list, read and stop tasks, as people can."""

    def __init__(self, tasks: CommandTasks, task_queries: TaskQueries, kill_seconds: float) -> None:
        self._tasks = tasks
        self._task_queries = task_queries
        self._kill_seconds = kill_seconds

    async def run(self, context: ToolContext, arguments: ProcessArguments) -> ToolOutput:
        """Carry out one action."""
        if arguments.action == "list":
            return ToolOutput(await self._list(context))
        if not arguments.task:
            raise ToolFailed(f"{arguments.action} needs the id of a task; `list` shows them.")
        try:
            row = await self._task_queries.find(arguments.task)
            if not context.other_sessions and not await self._task_queries.belongs_to(row, context.session):
                raise ToolFailed(
                    f"Task {row.id} belongs to another session, and this profile sees only tasks of this session "
                    f'and of the agents that it started. The rule "{OTHERS_TASKS}" = "allow" would open it.'
                )
            if arguments.action == "write":
                started = await self._tasks.task_log.started(row.id)
                _check_input(context, started)
            return ToolOutput(await self._act(context, row, arguments), task=row.id)
        except HoldfastError as error:
            raise ToolFailed.by(error) from error

    async def _list(self, context: ToolContext) -> str:
        views = await self._task_queries.running()
        if context.other_sessions:
            return table(views, session=context.session)
        own = await self._task_queries.running(within=context.session)
        hidden = len(views) - len(own)
        note = f"\n({hidden} more run in other sessions; this profile does not see them.)" if hidden else ""
        return table(own, session=context.session) + note

    async def _act(self, context: ToolContext, row: TaskRow, arguments: ProcessArguments) -> str:
        task = row.id
        match arguments.action:
            case "poll":
                return (
                    _sentence(await self._task_queries.view(row))
                    + "\n"
                    + await self._task_queries.excerpt(row, lines=20)
                )
            case "log":
                return await self._task_queries.excerpt(row, offset=arguments.offset)
            case "wait":
                try:
                    async with asyncio.timeout(arguments.timeout):
                        row = await self._task_queries.wait_ended(task)
                except TimeoutError:
                    return f"It still runs after {arguments.timeout} s of waiting."
                return await self._task_queries.result_text(row)
            case "kill":
                by = AgentActor(session=context.session, call=context.call)
                await self._task_queries.stop(row, by=by, reason="it asked for the end", force=False)
                try:
                    async with asyncio.timeout(self._kill_seconds):
                        row = await self._task_queries.wait_ended(row.id)
                except TimeoutError:
                    return f"It was asked to end, but still runs after {self._kill_seconds:g} s; `list` shows it."
                return f"{row.state}: {row.reason}"
            case "write":
                data = arguments.text.encode()
                taken = await self._task_queries.write(row, data)
                return f"It took {taken} of {len(data)} bytes."
            case "list":
                return await self._list(context)
            case _ as never:
                assert_never(never)


def _check_input(context: ToolContext, started: TaskStarted) -> None:
    """Refuse input to a command that the agent could not have run itself: a shell would run any input."""
    if not context.may_run_commands:
        raise ToolFailed("This agent may not run commands (terminal is denied), so it cannot type into one either.")
    if not context.other_sessions and not isinstance(started.by, AgentActor):
        raise ToolFailed(
            f"Task {started.task} was started by {started.by}, outside of the rules for agents; only people type "
            f'into it. The rule "{OTHERS_TASKS}" = "allow" would open it.'
        )


def _end(row: TaskRow) -> CommandEnd:
    code = row.exit_code
    return CommandEnd(None if code is None else int(str(code)), row.signal, row.state == "stopped")


def _sentence(view: TaskView) -> str:
    return table([view], session=view.session)
