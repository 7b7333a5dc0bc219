"""A whole gateway but for its HTTP server: every part, constructed with its collaborators. Nothing is started here.

`app.py` starts the parts in order and stops them; tests assemble the same parts and start those that they need.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.board.cards import Cards
from holdfast.board.dispatcher import Dispatcher
from holdfast.board.node_requests import NodeRequests
from holdfast.board.run import RunTimer
from holdfast.board.worker_calls import WorkerCalls
from holdfast.board.worker_tools import WorkerTools
from holdfast.clock import Clock, SystemClock
from holdfast.config import Home
from holdfast.gateway.devices import Devices, Revocations
from holdfast.gateway.state import Gateway
from holdfast.gateway.streams import Streams
from holdfast.lifecycle.awake_clock import AwakeClock, since_boot
from holdfast.lifecycle.idle_agents import IdleAgents
from holdfast.lifecycle.reset_scheduler import ResetScheduler
from holdfast.lifecycle.reset_service import ResetService
from holdfast.lifecycle.retention import Retention
from holdfast.lifecycle.running_tasks import RunningTasks
from holdfast.lifecycle.stale_report import StaleReport
from holdfast.models.registry import ModelRegistry
from holdfast.nodes import Nodes
from holdfast.notify.chat_commands import ChatWork
from holdfast.notify.service import Notifications
from holdfast.periodic import FollowerState
from holdfast.processes.supervisor import Supervisor
from holdfast.profiles import WORKSPACES, Profiles
from holdfast.runtime.agents import Agents
from holdfast.runtime.creation import Creation
from holdfast.runtime.drivers.acp import AcpDriver
from holdfast.runtime.drivers.command import CommandDriver
from holdfast.runtime.runner import DriverFactory, Runner
from holdfast.runtime.tools import file_tools
from holdfast.runtime.tools.delegate import Delegate
from holdfast.runtime.tools.question import QUESTION
from holdfast.runtime.tools.recall import Recall
from holdfast.runtime.tools.terminal import command_tools
from holdfast.runtime.work_time import HeartbeatFile
from holdfast.runtime.writer import StreamingTexts
from holdfast.sessions import Sessions
from holdfast.shared_settings import SharedSettings
from holdfast.store.contract import Store
from holdfast.tasks.agents import AgentTasks
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.defaults import CommandDefaults
from holdfast.tasks.files import TaskFileExporter
from holdfast.tasks.git_snapshots import GitSnapshots
from holdfast.tasks.log import TaskLog
from holdfast.tasks.prune import Pruning
from holdfast.tasks.queries import TaskQueries
from holdfast.tasks.sandbox import SandboxBuilder
from holdfast.tasks.task_answers import TaskAnswers
from holdfast.timings import USUAL, Timings
from holdfast.worker_access import WorkerAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a gateway takes from the machine that it runs on."""

    clock: Clock = field(default_factory=SystemClock)
    monotonic: Callable[[], float] = time.monotonic
    since_boot: Callable[[], float] = since_boot
    umask: int = 0o022
    """The user's own, for files that commands create."""
    heartbeat: HeartbeatFile | None = None
    """Says how long nobody worked; without it a break has no length."""
    sandbox: SandboxBuilder | None = None
    """By default the one that bubblewrap gives, if it is installed."""


def assemble(
    home: Home,
    store: Store,
    *,
    profiles: Profiles,
    models: ModelRegistry,
    machine: Machine,
    agents: Agents | None = None,
    timings: Timings = USUAL,
    url: str = "",
) -> Gateway:
    """Construct every part of a gateway at `url`. Its agents are by default the profiles, with all tools."""
    clock, streaming, work = machine.clock, StreamingTexts(store), _Work(home, store, profiles, machine, timings, url)
    agents = agents or work.agents(models)
    runner = Runner(
        store,
        sessions=work.sessions,
        task_log=work.tasks.task_log,
        streaming=streaming,
        agents=agents,
        clock=clock,
        heartbeat=machine.heartbeat,
        timings=timings.runtime,
    )
    work.connect(runner)
    streams, pruning = Streams(store, streaming, timings.gateway), Pruning(store, work.tasks.supervisor, clock)
    exporter = TaskFileExporter(store, sessions=work.sessions, changes=work.tasks.task_log.changes, profiles=profiles)
    return Gateway(
        store=store,
        sessions=work.sessions,
        streaming=streaming,
        streams=streams,
        devices=work.devices(streams, Revocations(home.revocations)),
        runner=runner,
        tasks=work.tasks,
        task_queries=work.queries,
        agent_tasks=work.agent_tasks,
        exporter=exporter,
        pruning=pruning,
        retention=work.retention(pruning),
        stale_report=StaleReport(store, work.queries, clock, profiles, timings.lifecycle),
        idle_agents=work.idle_agents,
        worker_calls=WorkerCalls(work.worker_tools, work.sessions, agents),
        worker_access=work.access,
        running_tasks=work.running,
        reset_service=work.resets,
        reset_scheduler=work.reset_scheduler,
        cards=work.cards,
        dispatcher=work.dispatcher,
        profiles=profiles,
        shared_settings=work.shared_settings,
        notify=work.notify,
        models=models,
        agents=agents,
        sandbox=work.sandbox,
        clock=clock,
        followers=[runner.state, *work.states, exporter.state, store.search_state],
        home=str(home.path),
        url=url,
        started_at=clock.now(),
    )


class _Work:
    """The parts around sessions, tasks and cards, in the order in which they need each other."""

    def __init__(
        self, home: Home, store: Store, profiles: Profiles, machine: Machine, timings: Timings, url: str
    ) -> None:
        clock = machine.clock
        self._store, self._profiles, self._clock, self._timings = store, profiles, clock, timings
        self.sandbox = machine.sandbox or SandboxBuilder(home.path.absolute())
        self.sessions = sessions = Sessions(store, clock)
        self.access = WorkerAccess(home.worker_key, url)
        self.tasks = CommandTasks(
            store,
            task_log=TaskLog(store, clock, GitSnapshots(home.tasks), profiles),
            supervisor=Supervisor(home.tasks, timings=timings.processes),
            defaults=CommandDefaults(home.tasks, profiles, machine.umask, self.sandbox, self.access),
            sessions=sessions,
            clock=clock,
            timings=timings.tasks,
        )
        self.queries = TaskQueries(
            store, tasks=self.tasks, sessions=sessions, clock=clock, profiles=profiles, timings=timings.tasks
        )
        self.agent_tasks = AgentTasks(store, task_log=self.tasks.task_log, sessions=sessions, clock=clock)
        awake = AwakeClock(machine.monotonic, machine.since_boot)
        self.running = RunningTasks(store, self.queries, self.tasks, awake)
        self.resets = ResetService(store, sessions=sessions, running=self.running, profiles=profiles, clock=clock)
        self.reset_scheduler = ResetScheduler(
            store,
            reset_service=self.resets,
            profiles=profiles,
            awake=awake,
            clock=clock,
            timings=timings.lifecycle,
        )
        self.idle_agents = IdleAgents(
            store, tasks=self.tasks, sessions=sessions, profiles=profiles, clock=clock, timings=timings.lifecycle
        )
        root = home.path / WORKSPACES
        nodes = Nodes(store, profiles, timings.runtime)
        self.cards = Cards(store, sessions=sessions, running=self.running, nodes=nodes, clock=clock, root=root)
        timer = RunTimer(machine.monotonic)
        self.dispatcher = Dispatcher(
            store, cards=self.cards, sessions=sessions, profiles=profiles, clock=clock, timer=timer
        )
        chats = ChatWork(
            store=store,
            sessions=sessions,
            agent_tasks=self.agent_tasks,
            tasks=self.queries,
            cards=self.cards,
            startable=self.dispatcher.startable,
            inbox=self.dispatcher.inbox,
            profiles=profiles,
            clock=clock,
        )
        self._creation = Creation(store, sessions=sessions, profiles=profiles)
        self.worker_tools = WorkerTools(store, self.cards, sessions, self._creation).tools
        settings = store.settings
        self.shared_settings = None if settings is None else SharedSettings(store, settings, profiles, clock)
        self.notify = Notifications(chats, home.push_key, timings.telegram)

    @property
    def drivers(self) -> dict[str, DriverFactory]:
        """The drivers of external agents, by name."""
        tools = frozenset(tool.name for tool in self.worker_tools)
        return {
            AcpDriver.name: lambda writer, clock: AcpDriver(writer, clock, self.tasks, self.access, tools),
            CommandDriver.name: lambda writer, clock: CommandDriver(writer, clock, self.tasks, self.access, tools),
        }

    @property
    def states(self) -> list[FollowerState]:
        """How those of them are doing that follow the log."""
        shared = [] if self.shared_settings is None else [self.shared_settings.state]
        return [self.tasks.state, *self.dispatcher.states, *self.notify.states, *shared]

    def connect(self, runner: Runner) -> None:
        """Give the runner its drivers, and let other nodes ask this one."""
        runner.drivers |= self.drivers
        if self._store.exchange is not None:
            tasks = TaskAnswers(self.queries, self.tasks)
            self._store.exchange.answer_with(NodeRequests(runner, tasks, self.dispatcher.cleanup).answer)

    def agents(self, models: ModelRegistry) -> Agents:
        """Return the agents of the profiles, with every tool that there is."""
        tools = [
            *file_tools(),
            QUESTION,
            *command_tools(self.tasks, self.queries, self._clock, self._timings.tasks),
            Delegate(self.agent_tasks, self.queries, self._creation).tool,
            Recall(self.sessions).tool,
            self.dispatcher.inbox.tool,
        ]
        return Agents(self._profiles, models, tools=tools, worker_tools=self.worker_tools)

    def devices(self, streams: Streams, revocations: Revocations) -> Devices:
        """Return the browsers that signed in."""
        return Devices(self._store, streams, self.notify.push, self._clock, revocations, self._timings.gateway)

    def retention(self, pruning: Pruning) -> Retention:
        """Return what deletes by the rules for retention."""
        return Retention(
            self._store,
            pruning=pruning,
            sessions=self.sessions,
            profiles=self._profiles,
            clock=self._clock,
            timings=self._timings.lifecycle,
        )
