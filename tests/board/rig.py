"""A board without doors: real store, cards, dispatcher and tools. Workers are the demo agent, or played by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.board.cards import Cards
from holdfast.board.dispatcher import Dispatcher
from holdfast.board.run import RunTimer
from holdfast.board.worker_tools import WorkerTools
from holdfast.clock import SystemClock
from holdfast.domain.card import Card
from holdfast.domain.commands import CardCommand, CreateCard, CreateSession, SessionCommand
from holdfast.domain.events import AnyEvent, Record, card_stream, session_stream
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.card import RunStarted
from holdfast.domain.events.parts import Call, Usage
from holdfast.domain.events.problem import Problem, ProblemCode
from holdfast.domain.events.session import (
    InputsJoined,
    ModelRequested,
    ModelResponded,
    Outcome,
    ToolCallFinished,
    ToolCallStarted,
    TurnStarted,
)
from holdfast.domain.next_step import Finish, Partial, closing_events
from holdfast.domain.session import Session
from holdfast.lifecycle.awake_clock import AwakeClock
from holdfast.lifecycle.running_tasks import RunningTasks
from holdfast.models.registry import ModelRegistry
from holdfast.processes.supervisor import Supervisor
from holdfast.profiles import WORKSPACES, Profiles
from holdfast.runtime.agents import Agents
from holdfast.runtime.creation import Creation
from holdfast.runtime.runner import Runner
from holdfast.runtime.streaming_text import StreamingTexts
from holdfast.runtime.tools.delegate import Delegate
from holdfast.runtime.tools.files import file_tools
from holdfast.runtime.tools.question import QUESTION
from holdfast.runtime.tools.terminal import command_tools
from holdfast.runtime.tools.tool import ToolOutcome
from holdfast.sessions import Caller, Sessions
from holdfast.store.contract import Append, Appended, CommandKey, Lease, Write
from holdfast.store.sqlite.store import SqliteStore
from holdfast.tasks.agents import AgentTasks
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.defaults import CommandDefaults
from holdfast.tasks.git_snapshots import GitSnapshots
from holdfast.tasks.log import TaskLog
from holdfast.tasks.queries import TaskQueries
from tests.actors import person
from tests.runtime.rig import StoppedClock

ANN = person("ann")


class BoardRig:
    """One life of a gateway on a home. Made on a running loop; without `start` everything is done by hand."""

    def __init__(
        self,
        home: Path,
        *,
        store: SqliteStore | None = None,
        clock: StoppedClock | SystemClock | None = None,
        config: str = "",
    ) -> None:
        self.home = home
        for path in (home, home / "tasks"):
            path.mkdir(mode=0o700, exist_ok=True)
        if config:
            (home / "config.toml").write_text(config)
        self.clock = clock or SystemClock()
        self.store = store or SqliteStore(home / "holdfast.db")
        self.seconds = 0.0
        """What the dispatcher's clock says that stands still while the machine sleeps."""
        self.sessions = Sessions(self.store, self.clock)
        self.profiles = Profiles(home / "config.toml")
        task_log = TaskLog(self.store, self.clock, GitSnapshots(home / "tasks"), self.profiles)
        self.tasks = CommandTasks(
            self.store,
            task_log=task_log,
            supervisor=Supervisor(home / "tasks"),
            defaults=CommandDefaults(home / "tasks", self.profiles, 0o022),
            sessions=self.sessions,
            clock=self.clock,
        )
        self.task_queries = task_queries = TaskQueries(
            self.store,
            tasks=self.tasks,
            sessions=self.sessions,
            clock=self.clock,
            profiles=self.profiles,
        )
        self.running = RunningTasks(self.store, task_queries, self.tasks, AwakeClock())
        self.cards = Cards(
            self.store, sessions=self.sessions, running=self.running, clock=self.clock, root=home / WORKSPACES
        )
        creation = Creation(self.store, sessions=self.sessions, profiles=self.profiles)
        self.tools = {tool.name: tool for tool in WorkerTools(self.store, self.cards, self.sessions, creation).tools}
        agent_tasks = AgentTasks(self.store, task_log=task_log, sessions=self.sessions, clock=self.clock)
        tools = [
            *file_tools(),
            QUESTION,
            *command_tools(self.tasks, task_queries, self.clock),
            Delegate(agent_tasks, task_queries, creation).tool,
        ]
        models = ModelRegistry(self.profiles)
        self.agents = Agents(self.profiles, models, tools=tools, worker_tools=[*self.tools.values()])
        self.dispatcher = Dispatcher(
            self.store,
            cards=self.cards,
            sessions=self.sessions,
            profiles=self.profiles,
            clock=self.clock,
            timer=RunTimer(lambda: self.seconds),
        )
        self.runner = Runner(
            self.store,
            sessions=self.sessions,
            task_log=task_log,
            streaming=StreamingTexts(self.store),
            agents=self.agents,
            clock=self.clock,
        )
        self._ids = itertools.count(1)

    async def start(self) -> BoardRig:
        await self.tasks.start()
        await self.runner.start()
        await self.dispatcher.start()
        return self

    async def close(self) -> None:
        await self.dispatcher.stop()
        await self.runner.stop()
        await self.tasks.stop()
        await self.agents.close()
        await self.store.close()

    # --- people ---------------------------------------------------------------------------------

    def caller(self, id: str | None = None, by: Actor = ANN) -> Caller:
        return Caller(CommandKey(id or f"command-{next(self._ids)}-{id_of(self)}", "digest"), by)

    async def create(self, card: str, body: str = "", *, id: str | None = None, **more: object) -> str:
        wanted = {"title": f"card {card}", "body": body, "profile": "demo"} | more
        command = msgspec.convert(wanted, CreateCard)
        await self.cards.create(command, card=card, caller=self.caller(id))
        return card

    async def tell(self, card: str, command: CardCommand, *, id: str | None = None, by: str = "ann") -> Appended:
        return await self.cards.execute(card, command, self.caller(id, person(by)))

    async def new_session(self, session: str, cwd: Path | None = None) -> str:
        await self.sessions.create(
            CreateSession(), session=session, profile="demo", cwd=str(cwd or self.home), caller=self.caller()
        )
        return session

    async def say(self, session: str, command: SessionCommand) -> Appended:
        return await self.sessions.execute(session, command, self.caller())

    # --- looking --------------------------------------------------------------------------------

    async def look(self) -> None:
        await self.dispatcher.run_once()
        await self.dispatcher.clean_workspaces()

    async def card(self, card: str) -> Card:
        return await self.cards.get(card)

    async def records(self, card: str) -> list[Record]:
        return await self.store.load(card_stream(card), after=0)

    async def events(self, card: str) -> list[AnyEvent]:
        return [record.event for record in await self.records(card)]

    async def until(self, card: str, enough: Callable[[Card], bool]) -> Card:
        """Wait until the card is so."""
        with self.store.subscribe(card_stream(card)) as changes:
            while not enough(state := await self.cards.get(card)):
                await changes.wait()
                changes.drain()
        return state

    async def rest(self, session: str) -> Session:
        """Wait until nobody works in a session."""
        return await self.until_session(session, lambda state: state.activity == "idle")

    async def until_session(self, session: str, enough: Callable[[Session], bool]) -> Session:
        """Wait until the session is so."""
        with self.store.subscribe(session_stream(session)) as changes:
            while not enough(state := await self.sessions.get(session)):
                await changes.wait()
                changes.drain()
        return state

    async def worker(self, card: str) -> Hand:
        """Play the worker of the open run."""
        run = (await self.cards.get(card)).run
        assert run is not None
        return await Hand(self, run.started).take()


def id_of(rig: BoardRig) -> str:
    return f"{id(rig):x}"


class Hand:
    """A worker by hand: it writes what a worker writes, under its lease, one thing after the other."""

    def __init__(self, rig: BoardRig, run: RunStarted) -> None:
        self.rig = rig
        self.run = run
        self.session = run.session
        self._lease: Lease | None = None
        self.called: Call | None = None
        """Its last tool call."""

    async def take(self) -> Hand:
        self._lease = await self.rig.store.claim(session_stream(self.session), holder="hand")
        return self

    async def state(self) -> Session:
        return await self.rig.sessions.get(self.session)

    async def write(self, *events: AnyEvent) -> None:
        append = Append((Write(session_stream(self.session), events),), self.rig.clock.now(), lease=self._lease)
        await self.rig.store.append(append)

    async def begin(self) -> str:
        """Start a turn with what is queued; what it was told."""
        state = await self.state()
        first = state.queue[0].event
        await self.write(TurnStarted(turn=state.turns + 1, inputs=[first.input], profile=state.profile))
        return first.text

    async def join(self) -> list[str]:
        """Hear what people said meanwhile."""
        state = await self.state()
        heard = [queued.event for queued in state.queue if queued.event.mode == "steer"]
        if heard:
            await self.write(InputsJoined(turn=state.turns, inputs=[event.input for event in heard]))
        return [event.text for event in heard]

    async def wants(self, tool: str, **arguments: object) -> Call:
        """The model asks for a tool, and the intent is written."""
        state = await self.state()
        assert state.turn is not None
        turn, step = state.turn.number, state.turn.step + 1
        call = Call(call=f"{turn}.{step}.0", tool=tool, arguments=msgspec.json.encode(arguments).decode())
        answered = ModelResponded(
            turn=turn,
            step=step,
            text="",
            thinking="",
            calls=[call],
            finish_reason="tool_calls",
            usage=Usage(),
            duration_ms=1,
        )
        asked = ModelRequested(turn=turn, step=step, attempt=1, model="hand", context_version=state.version)
        await self.write(asked, answered, ToolCallStarted(turn=turn, call=call.call, tool=tool, effect="keyed"))
        self.called = call
        return call

    async def carry_out(self, call: Call) -> ToolOutcome:
        """The tool itself; nothing of it is written to the session yet."""
        context = (await self.rig.agents.of(await self.state())).tool_context(await self.state(), call.call)
        return await self.rig.tools[call.tool].call(context, call.arguments)

    async def calls(self, tool: str, **arguments: object) -> ToolOutcome:
        """All of it."""
        call = await self.wants(tool, **arguments)
        result = await self.carry_out(call)
        state = await self.state()
        await self.write(
            ToolCallFinished(
                turn=state.turns,
                call=call.call,
                tool=tool,
                outcome=result.outcome,
                output=result.output,
                duration_ms=1,
            )
        )
        return result

    async def end(self, outcome: Outcome = "done", code: ProblemCode | None = None) -> None:
        """The turn is over."""
        state = await self.state()
        problem = Problem(code=code, message=f"It was {code}.") if code else None
        finish = Finish(state.turns, outcome, problem.message if problem else "no more to do", problem)
        await self.write(*closing_events(state, finish, Partial(), now=self.rig.clock.now()))
