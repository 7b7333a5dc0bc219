"""A driver whose agent is a shell script under a keeper. It says one thing a line, and is told things by its input.

    call ID          it makes a call, which runs until …
    result ID TEXT   … this
    ask ID           it wants to make a call and waits for `ID allow` or `ID deny`
    answer TEXT      its last words

The smallest driver of an agent that is a process of its own; `runtime/drivers/__init__.py` says what one must do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from holdfast.clock import Clock
from holdfast.config import Home
from holdfast.domain.commands import AnswerWait
from holdfast.domain.errors import NotFound
from holdfast.domain.events import AnyEvent, Record, session_stream
from holdfast.domain.events.actor import AgentActor
from holdfast.domain.events.external_agent import DriverOutputRead, OwedRequest
from holdfast.domain.events.parts import Call, Usage
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import (
    InputReceived,
    ModelFailed,
    ModelRequested,
    ModelResponded,
    SessionCreated,
    ToolCallFinished,
    ToolCallStarted,
    TurnFinished,
    WaitOpened,
)
from holdfast.domain.history import UserMessage
from holdfast.domain.next_step import DriverStep, Partial, Rest, RunAgent, wait_id
from holdfast.domain.resume import Break
from holdfast.domain.session import Session, Turn
from holdfast.domain.session_fold import after
from holdfast.domain.task import task_of_call
from holdfast.domain.task_commands import StartCommand
from holdfast.runtime.agents import Agent
from holdfast.runtime.drivers import Events, Prepared
from holdfast.runtime.writer import SessionWriter
from holdfast.store.contract import Append, Store, Write
from holdfast.store.rows import TaskRow
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.log import command_started
from holdfast.timings import ProcessTimings, RuntimeTimings, Timings
from tests.board.rig import ANN, BoardRig
from tests.engines import open_store
from tests.eventually import PATIENCE
from tests.runtime.rig import ID, seen

SECONDS_FOR_LAST_WORDS = 10.0


def agent_task(session: Session) -> str:
    """The task of the process of the open turn, the same for whoever computes it."""
    assert session.turn is not None
    return task_of_call(session.id, f"turn {session.turn.number}")


class ScriptDriver:
    """Runs the script that a person sent as a message, one process a turn."""

    name = "script"
    joins = False

    def __init__(self, writer: SessionWriter, clock: Clock, tasks: CommandTasks) -> None:
        self._writer = writer
        self._clock = clock
        self._tasks = tasks

    async def pick_up(self, session: Session, agent: Agent, left: Partial, break_: Break, *, now: int) -> Events:
        """The agent works on by itself: nothing was interrupted. One that was stopped meanwhile is told so."""
        if session.turn is not None and session.turn.stop is not None:
            return await self.cancel(session, RunAgent(session.turn.number), "", begun=True)
        return Events()

    def next(self, session: Session, agent: Agent, *, now: int) -> DriverStep:
        return Rest() if session.turn is None else RunAgent(session.turn.number)

    async def prepare(self, session: Session, agent: Agent, step: DriverStep, *, now: int) -> Prepared:
        """Before its first line the process of a turn becomes a task, which joins the append."""
        assert session.turn is not None
        if session.turn.step > 0:
            return Prepared(Events(), perform=True)
        (script,) = [m.text for m in session.messages if isinstance(m, UserMessage) and m.turn == session.turn.number]
        started = command_started(
            StartCommand(shell=script, stdin=True),
            task=agent_task(session),
            cwd=session.cwd,
            by=AgentActor(session=session.id, call=""),
            session="",
        )
        return Prepared(Events([self._asked(session, session.turn)], [self._tasks.intent(started)]), perform=True)

    async def perform(self, session: Session, agent: Agent, step: DriverStep) -> Events:
        """Let it work; each line and the offset behind it are one commit. The last ones are the result."""
        task = agent_task(session)
        self._tasks.follow_to_end(await self._row(task))
        await self._tasks.wait_started(task)
        if (answer := self._answer(session)) is not None:
            with suppress(NotFound):  # it had the answer before a crash, and has ended since
                await self._tasks.supervisor.write(task, f"{answer[0]} {answer[1]}\n".encode())
            await self._commit(self._begun(session, answer[0]))
        async for line, offset in self._lines(task):
            events = self._events(self._writer.session, line, offset)
            if line.startswith(("ask", "answer")):
                return Events(events)
            await self._commit(events)
        assert self._writer.session.turn is not None
        problem = Problem(code="no_answer", message="The script ended without an answer.")
        turn = self._writer.session.turn
        return Events([ModelFailed(turn=turn.number, step=turn.step, problem=problem)])

    def session_changed(self) -> None:
        pass

    async def cancel(self, session: Session, step: DriverStep, reason: str, *, begun: bool) -> Events:
        """End the process, and read its last lines."""
        task, facts = agent_task(session), Events()
        await self._tasks.supervisor.kill(task, grace=0)
        async with asyncio.timeout(SECONDS_FOR_LAST_WORDS):
            async for line, offset in self._lines(task):
                so_far = after(session, facts.session, at=self._clock.now())
                facts.add(Events(self._events(so_far, line, offset)))
        return facts

    async def leave(self, session: Session, *, now: int) -> Events:
        """It goes on without us."""
        return Events()

    # --- lines ----------------------------------------------------------------------------------

    async def _lines(self, task: str) -> AsyncIterator[tuple[str, int]]:
        """The lines that are not in the log, each with the offset behind it, until the process has ended."""
        read = self._writer.session.output_read
        offset = read.offset if read is not None and read.task == task else 0
        rest = b""
        async for window in self._tasks.supervisor.follow(task, offset):
            rest += window.data
            while b"\n" in rest:
                line, _, rest = rest.partition(b"\n")
                offset += len(line) + 1
                yield line.decode(), offset

    def _events(self, session: Session, line: str, offset: int) -> list[AnyEvent]:
        """What a line comes to, and last that it was read."""
        turn = session.turn
        assert turn is not None
        verb, _, rest = line.partition(" ")
        id, _, text = rest.partition(" ")
        owed: list[OwedRequest] = []
        events: list[AnyEvent] = []
        match verb:
            case "call":
                events = [self._responded(turn, "", id), self._started(turn, id), self._asked(session, turn)]
            case "result":
                done = ToolCallFinished(
                    turn=turn.number, call=id, tool="script", outcome="done", output=text, duration_ms=0
                )
                events = [done]
            case "ask":
                reason = "the script wants to make a call"
                owed = [OwedRequest(id=id, call=id, reason=reason, options={})]
                wait = wait_id(session, turn)
                opened = WaitOpened(turn=turn.number, wait=wait, purpose="approval", reason=reason, call=id)
                events = [self._responded(turn, "", id), opened]
            case _:
                events = [self._responded(turn, rest)]
        return [*events, DriverOutputRead(task=agent_task(session), offset=offset, owed=owed)]

    def _answer(self, session: Session) -> tuple[str, str] | None:
        """The request that it waits with, and what somebody has answered."""
        read, turn = session.output_read, session.turn
        if read is None or turn is None or read.task != agent_task(session):
            return None
        return next(((one.id, turn.answers[one.call].answer) for one in read.owed if one.call in turn.answers), None)

    def _begun(self, session: Session, call: str) -> list[AnyEvent]:
        """It has its answer, and makes the call."""
        assert session.turn is not None
        assert session.output_read is not None
        read = DriverOutputRead(task=agent_task(session), offset=session.output_read.offset, owed=[])
        return [self._started(session.turn, call), self._asked(session, session.turn), read]

    def _asked(self, session: Session, turn: Turn) -> ModelRequested:
        return ModelRequested(
            turn=turn.number, step=turn.step + 1, attempt=1, model="script", context_version=session.version
        )

    def _responded(self, turn: Turn, text: str, *calls: str) -> ModelResponded:
        return ModelResponded(
            turn=turn.number,
            step=turn.step,
            text=text,
            thinking="",
            calls=[Call(call=call, tool="script", arguments="{}") for call in calls],
            finish_reason="tool_calls" if calls else "stop",
            usage=Usage(),
            duration_ms=0,
        )

    def _started(self, turn: Turn, call: str) -> ToolCallStarted:
        return ToolCallStarted(turn=turn.number, call=call, tool="script", effect="unsafe")

    async def _row(self, task: str) -> TaskRow:
        row = await self._tasks.task_log.find(task)
        assert row is not None
        return row

    async def _commit(self, events: list[AnyEvent]) -> None:
        await self._writer.commit(Events(events), at=self._clock.now())


SCRIPT = """echo x >> ran
echo call a; echo call b; echo result b second; echo result a first
echo ask c; read id answer; echo "result $id $answer"
echo answer that is all"""


class DriverLife:
    """A gateway with the driver, and a client that says one thing and allows what it is asked about."""

    def __init__(self, directory: Path, store: Store | None = None) -> None:
        quick = Timings(processes=ProcessTimings(follow=0.005), runtime=RuntimeTimings(plan=PATIENCE))
        self.cwd = directory / "cwd"
        for path in (directory / "home", self.cwd):
            path.mkdir(parents=True, exist_ok=True)
        self.store = store or open_store(Home(directory / "home"))
        self.rig = rig = BoardRig(directory / "home", store=self.store, timings=quick)
        rig.runner.drivers["script"] = lambda writer, clock: ScriptDriver(writer, clock, rig.tasks)

    async def start(self, script: str = SCRIPT, *, driver: str = "script") -> None:
        born = SessionCreated(session=ID, profile="demo", cwd=str(self.cwd), title="", by=ANN, driver=driver)
        said = InputReceived(input="one", text=script, mode="queue", by=ANN)
        write = Write(session_stream(ID), (born, said))
        await self.rig.start()
        await self.store.append(Append((write,), self.rig.clock.now(), command=self.rig.caller("create-it").key))

    async def until(self, enough: type, count: int = 1) -> list[Record]:
        with self.store.subscribe(session_stream(ID)) as changes:
            while not seen(enough, count)(records := await self.records()):
                await changes.wait()
                changes.drain()
        return records

    async def to_the_end(self) -> list[Record]:
        """Allow what is asked, and wait for the end of the turn."""
        state = await self.rig.until_session(ID, lambda state: _waits(state) or state.last_turn is not None)
        if state.turn is not None and state.turn.wait is not None:
            answer = AnswerWait(wait=state.turn.wait.wait, answer="allow")
            await self.rig.sessions.execute(ID, answer, self.rig.caller("answer-it"))
        return await self.until(TurnFinished)

    async def records(self) -> list[Record]:
        return await self.store.load(session_stream(ID), after=0)


def _waits(state: Session) -> bool:
    return state.turn is not None and state.turn.wait is not None
