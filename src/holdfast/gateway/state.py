"""The running gateway as routes see it, and what the guard found out about a request."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import cast

from starlette.requests import HTTPConnection

from holdfast.board.cards import Cards
from holdfast.board.dispatcher import Dispatcher
from holdfast.board.worker_calls import WorkerCalls
from holdfast.clock import Clock
from holdfast.domain.errors import Conflict
from holdfast.gateway.dashboard_files import DashboardFiles
from holdfast.gateway.devices import Devices
from holdfast.gateway.guard import ServedOrigin
from holdfast.gateway.streams import Follower, Streams
from holdfast.lifecycle.idle_agents import IdleAgents
from holdfast.lifecycle.reset_scheduler import ResetScheduler
from holdfast.lifecycle.reset_service import ResetService
from holdfast.lifecycle.retention import Retention
from holdfast.lifecycle.running_tasks import RunningTasks
from holdfast.lifecycle.stale_report import StaleReport
from holdfast.models.registry import ModelRegistry
from holdfast.nodes import Nodes
from holdfast.notify.service import Notifications
from holdfast.periodic import FollowerState
from holdfast.profiles import Profiles
from holdfast.runtime.agents import Agents
from holdfast.runtime.runner import Runner
from holdfast.runtime.writer import StreamingTexts
from holdfast.schemas.tasks import WriteResult
from holdfast.sessions import Sessions
from holdfast.shared_settings import SharedSettings
from holdfast.store.contract import CommandKey, Store
from holdfast.tasks.agents import AgentTasks
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.files import TaskFileExporter
from holdfast.tasks.prune import Pruning
from holdfast.tasks.queries import TaskQueries
from holdfast.tasks.sandbox import SandboxBuilder
from holdfast.worker_access import WorkerAccess

ANSWERS_KEPT = 1_000


class OncePerKey:
    """Answers to commands that the log does not keep, by command id, while this gateway runs.

    A retry gets the first answer instead of a second effect.
    """

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[str, asyncio.Future[WriteResult]]] = OrderedDict()

    async def once(self, key: CommandKey, act: Callable[[], Awaitable[WriteResult]]) -> WriteResult:
        """Act once per key; later calls with the key get the same result. After a failure it may be tried again."""
        known = self._answers.get(key.id)
        if known is not None:
            if known[0] != key.digest:
                raise Conflict("This Idempotency-Key was used for another command.")
            return await asyncio.shield(known[1])
        future = asyncio.ensure_future(act())
        self._answers[key.id] = (key.digest, future)
        if len(self._answers) > ANSWERS_KEPT:
            self._answers.popitem(last=False)
        try:
            return await asyncio.shield(future)  # finish even if the caller disconnects
        except Exception:
            self._answers.pop(key.id, None)
            raise


@dataclass(slots=True)
class Again:
    """Whether to restart after the shutdown, and the variables to add to the environment."""

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
    idle_agents: IdleAgents
    worker_calls: WorkerCalls
    worker_access: WorkerAccess
    profiles: Profiles
    shared_settings: SharedSettings | None
    """The settings of all nodes; None where there is one node."""
    notify: Notifications
    models: ModelRegistry
    agents: Agents
    sandbox: SandboxBuilder
    clock: Clock
    followers: list[FollowerState]
    """The health of every part that follows the log."""
    home: str
    started_at: int
    dashboard: DashboardFiles = field(default_factory=DashboardFiles)
    url: str = ""
    public_urls: tuple[str, ...] = ()
    """Further addresses under which browsers reach it."""
    shutdown: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the gateway is to shut down."""
    again: Again = field(default_factory=Again)
    recovered: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when all work that the last gateway left open is known; until then commands are refused."""
    typed: OncePerKey = field(default_factory=OncePerKey)
    """Responses to input that was sent to commands."""

    @property
    def nodes(self) -> Nodes:
        """The nodes that there are."""
        return self.cards.nodes


def gateway_of(connection: HTTPConnection) -> Gateway:
    """Return the gateway that serves a request or a socket."""
    return cast(Gateway, connection.app.state.gateway)


def device_of(connection: HTTPConnection) -> str:
    """Return the calling device, as the guard found it; empty for the owner's token."""
    return str(connection.scope.get("device", ""))


def follower_of(connection: HTTPConnection) -> Follower:
    """Return the caller as a follower of a stream."""
    return Follower(device_of(connection), connection.scope["connection"])


def origin_of(connection: HTTPConnection) -> ServedOrigin:
    """Return the origin that the request was sent to."""
    return cast(ServedOrigin, connection.scope["origin"])
