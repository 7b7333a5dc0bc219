"""What every route can reach, in one value."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import cast

from starlette.requests import HTTPConnection

from holdfast.board.cards import Cards
from holdfast.board.dispatcher import Dispatcher
from holdfast.clock import Clock
from holdfast.domain.errors import Conflict
from holdfast.gateway.dashboard_files import DashboardFiles
from holdfast.gateway.devices import Devices
from holdfast.gateway.guard import ServedOrigin
from holdfast.gateway.streams import Follower, Streams
from holdfast.lifecycle.reset_scheduler import ResetScheduler
from holdfast.lifecycle.reset_service import ResetService
from holdfast.lifecycle.retention import Retention
from holdfast.lifecycle.running_tasks import RunningTasks
from holdfast.lifecycle.stale_report import StaleReport
from holdfast.models.registry import ModelRegistry
from holdfast.periodic import FollowerState
from holdfast.profiles import Profiles
from holdfast.runtime.agents import Agents
from holdfast.runtime.runner import Runner
from holdfast.runtime.writer import StreamingTexts
from holdfast.schemas.tasks import WriteResult
from holdfast.sessions import Sessions
from holdfast.store.contract import CommandKey, Store
from holdfast.tasks.agents import AgentTasks
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.files import TaskFileExporter
from holdfast.tasks.prune import Pruning
from holdfast.tasks.queries import TaskQueries
from holdfast.tasks.sandbox import SandboxBuilder

ANSWERS_KEPT = 1_000


class OncePerKey:
    """Answers to commands that the log does not keep, by command id, while this gateway runs.

    A retry gets the first answer instead of a second effect.
    """

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[str, asyncio.Future[WriteResult]]] = OrderedDict()

    async def once(self, key: CommandKey, act: Callable[[], Awaitable[WriteResult]]) -> WriteResult:
        """Act, or wait for what came of it when it was asked for before. What failed may be tried again."""
        known = self._answers.get(key.id)
        if known is not None:
            if known[0] != key.digest:
                raise Conflict("This command id belongs to another command.")
            return await asyncio.shield(known[1])
        future = asyncio.ensure_future(act())
        self._answers[key.id] = (key.digest, future)
        if len(self._answers) > ANSWERS_KEPT:
            self._answers.popitem(last=False)
        try:
            return await asyncio.shield(future)  # whoever asked may be gone; what was begun is finished
        except Exception:
            self._answers.pop(key.id, None)
            raise


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
    streaming: StreamingTexts
    streams: Streams
    devices: Devices
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
    dashboard: DashboardFiles = field(default_factory=DashboardFiles)
    url: str = ""
    shutdown: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the gateway is to shut down."""
    again: Again = field(default_factory=Again)
    recovered: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has found out what became of everything that was open; before that no command is taken."""
    typed: OncePerKey = field(default_factory=OncePerKey)
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
