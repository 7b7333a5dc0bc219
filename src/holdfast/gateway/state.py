"""What every route can reach, in one value."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

from starlette.requests import HTTPConnection

from holdfast.board.cards import Cards
from holdfast.board.dispatcher import Dispatcher
from holdfast.clock import Clock
from holdfast.follower_state import FollowerState
from holdfast.gateway.dashboard_files import DashboardFiles
from holdfast.gateway.devices import Devices
from holdfast.gateway.once import OncePerKey
from holdfast.gateway.origins import ServedOrigin
from holdfast.gateway.streams import Follower, Streams
from holdfast.lifecycle.reset_scheduler import ResetScheduler
from holdfast.lifecycle.reset_service import ResetService
from holdfast.lifecycle.retention import Retention
from holdfast.lifecycle.running_tasks import RunningTasks
from holdfast.lifecycle.stale_report import StaleReport
from holdfast.models.registry import ModelRegistry
from holdfast.profiles import Profiles
from holdfast.runtime.agents import Agents
from holdfast.runtime.runner import Runner
from holdfast.schemas.tasks import WriteResult
from holdfast.sessions import Sessions
from holdfast.store.contract import Store
from holdfast.tasks.agents import AgentTasks
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.files import TaskFileExporter
from holdfast.tasks.prune import Pruning
from holdfast.tasks.queries import TaskQueries
from holdfast.tasks.sandbox import SandboxBuilder


@dataclass(slots=True)
class Again:
    """Whether the gateway is to start again after the shutdown, and what is then set in its environment."""

    wanted: bool = False
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gateway:
    """The running gateway as its routes see it."""

    store: Store
    sessions: Sessions
    streams: Streams
    devices: Devices
    dashboard: DashboardFiles
    runner: Runner
    tasks: CommandTasks
    task_queries: TaskQueries
    agent_tasks: AgentTasks
    exporter: TaskFileExporter
    pruning: Pruning
    running_tasks: RunningTasks
    reset_service: ResetService
    reset_scheduler: ResetScheduler
    cards: Cards
    dispatcher: Dispatcher
    retention: Retention
    stale_report: StaleReport
    profiles: Profiles
    models: ModelRegistry
    agents: Agents
    sandbox: SandboxBuilder
    clock: Clock
    followers: list[FollowerState]
    """Whatever follows the log, and how it is doing."""
    home: str
    started_at: int
    url: str = ""
    shutdown: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the gateway is to shut down."""
    again: Again = field(default_factory=Again)
    recovered: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has found out what became of everything that was open; before that no command is taken."""
    typed: OncePerKey[WriteResult] = field(default_factory=OncePerKey)
    """What was typed into commands, and what they took of it."""


def gateway_of(connection: HTTPConnection) -> Gateway:
    """The gateway behind a request or a socket."""
    return cast(Gateway, connection.app.state.gateway)


def device_of(connection: HTTPConnection) -> str:
    """The device that asks, as the guard found; empty for the owner's token."""
    return str(connection.scope.get("device", ""))


def follower_of(connection: HTTPConnection) -> Follower:
    """Whoever asks, as one that follows something."""
    return Follower(device_of(connection), connection.scope["connection"])


def origin_of(connection: HTTPConnection) -> ServedOrigin:
    """The origin under which it reached us."""
    return cast(ServedOrigin, connection.scope["origin"])
