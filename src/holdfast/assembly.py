"""The whole of a gateway but for its doors: every part, constructed with its collaborators. Nothing is started here.

`app.py` starts the parts in order and stops them; tests assemble the same parts and start those that they need.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.board.cards import Cards
from holdfast.board.dispatcher import Dispatcher
from holdfast.board.run import RunTimer
from holdfast.board.worker_tools import WorkerTools
from holdfast.clock import Clock, SystemClock
from holdfast.config import Home
from holdfast.gateway.devices import Devices, Revocations
from holdfast.gateway.state import Gateway
from holdfast.gateway.streams import Streams
from holdfast.lifecycle.awake_clock import AwakeClock, since_boot
from holdfast.lifecycle.reset_scheduler import ResetScheduler
from holdfast.lifecycle.reset_service import ResetService
from holdfast.lifecycle.retention import Retention
from holdfast.lifecycle.running_tasks import RunningTasks
from holdfast.lifecycle.stale_report import StaleReport
from holdfast.models.registry import ModelRegistry
from holdfast.processes.supervisor import Supervisor
from holdfast.profiles import WORKSPACES, Profiles
from holdfast.runtime.agents import Agents
from holdfast.runtime.creation import Creation
from holdfast.runtime.runner import Runner
from holdfast.runtime.tools import file_tools
from holdfast.runtime.tools.delegate import Delegate
from holdfast.runtime.tools.question import QUESTION
from holdfast.runtime.tools.recall import Recall
from holdfast.runtime.tools.terminal import command_tools
from holdfast.runtime.work_time import HeartbeatFile
from holdfast.runtime.writer import StreamingTexts
from holdfast.sessions import Sessions
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
) -> Gateway:
    """Construct every part of a gateway. Its agents are by default the profiles, with every tool that there is."""
    clock, sessions, streaming = machine.clock, Sessions(store, machine.clock), StreamingTexts(store)
    sandbox = machine.sandbox or SandboxBuilder(home.path.absolute())
    tasks = _command_tasks(home, store, sessions=sessions, profiles=profiles, machine=machine, sandbox=sandbox)
    queries = TaskQueries(store, tasks=tasks, sessions=sessions, clock=clock, profiles=profiles)
    agent_tasks = AgentTasks(store, task_log=tasks.task_log, sessions=sessions, clock=clock)
    awake, timer = AwakeClock(machine.monotonic, machine.since_boot), RunTimer(machine.monotonic)
    running = RunningTasks(store, queries, tasks, awake)
    cards = Cards(store, sessions=sessions, running=running, clock=clock, root=home.path / WORKSPACES)
    dispatcher = Dispatcher(store, cards=cards, sessions=sessions, profiles=profiles, clock=clock, timer=timer)
    if agents is None:
        creation = Creation(store, sessions=sessions, profiles=profiles)
        delegate, recall = Delegate(agent_tasks, queries, creation).tool, Recall(sessions).tool
        commands = command_tools(tasks, queries, clock)
        tools = [*file_tools(), QUESTION, *commands, delegate, recall, dispatcher.inbox.tool]
        agents = Agents(profiles, models, tools=tools, worker_tools=WorkerTools(store, cards, sessions, creation).tools)
    task_log, beat = tasks.task_log, machine.heartbeat
    runner = Runner(
        store, sessions=sessions, task_log=task_log, streaming=streaming, agents=agents, clock=clock, heartbeat=beat
    )
    streams, pruning = Streams(store, streaming), Pruning(store, tasks.supervisor, clock)
    resets = ResetService(store, sessions=sessions, running=running, profiles=profiles, clock=clock)
    exporter = TaskFileExporter(store, sessions=sessions, changes=task_log.changes, profiles=profiles)
    return Gateway(
        store=store,
        sessions=sessions,
        streaming=streaming,
        streams=streams,
        devices=Devices(store.devices, streams, clock, Revocations(home.revocations)),
        runner=runner,
        tasks=tasks,
        task_queries=queries,
        agent_tasks=agent_tasks,
        exporter=exporter,
        pruning=pruning,
        retention=Retention(store, pruning=pruning, sessions=sessions, profiles=profiles, clock=clock),
        stale_report=StaleReport(store, queries, clock, profiles),
        running_tasks=running,
        reset_service=resets,
        reset_scheduler=ResetScheduler(store, reset_service=resets, profiles=profiles, awake=awake, clock=clock),
        cards=cards,
        dispatcher=dispatcher,
        profiles=profiles,
        models=models,
        agents=agents,
        sandbox=sandbox,
        clock=clock,
        followers=[runner.state, tasks.state, exporter.state, *dispatcher.states, store.search_state],
        home=str(home.path),
        started_at=clock.now(),
    )


def _command_tasks(
    home: Home, store: Store, *, sessions: Sessions, profiles: Profiles, machine: Machine, sandbox: SandboxBuilder
) -> CommandTasks:
    return CommandTasks(
        store,
        task_log=TaskLog(store, machine.clock, GitSnapshots(home.tasks), profiles),
        supervisor=Supervisor(home.tasks),
        defaults=CommandDefaults(home.tasks, profiles, machine.umask, sandbox),
        sessions=sessions,
        clock=machine.clock,
    )
