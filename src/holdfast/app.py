"""The composition root: one gateway, put together, run, and taken apart in order.

Start and recovery are one path: what the last gateway left open is simply open. SIGTERM, SIGINT and
SIGHUP shut it down cleanly; after SIGKILL only the events of a clean shutdown are missing.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from socket import socket as Socket

from holdfast import __version__
from holdfast.board.cards import Cards
from holdfast.board.dispatcher import Dispatcher
from holdfast.board.worker_tools import WorkerTools
from holdfast.clock import Clock, SystemClock, wait_for_event
from holdfast.config import ConfigError, Home, command_environment
from holdfast.domain.errors import Conflict, Gone, HoldfastError, NotFound, Unavailable
from holdfast.domain.events import SYSTEM, AnyEvent
from holdfast.domain.events.system import GatewayStarted, GatewayStopped
from holdfast.gateway.connections import ConnectionLimits
from holdfast.gateway.dashboard_files import DashboardFiles
from holdfast.gateway.devices import Devices
from holdfast.gateway.guard import Guard
from holdfast.gateway.logs import start_logging
from holdfast.gateway.revocations import Revocations
from holdfast.gateway.server import Server, listen
from holdfast.gateway.state import Again, Gateway
from holdfast.gateway.streams import Streams
from holdfast.gateway.welcome import Welcome
from holdfast.lifecycle.awake_clock import AwakeClock
from holdfast.lifecycle.reset_scheduler import ResetScheduler
from holdfast.lifecycle.reset_service import ResetService
from holdfast.lifecycle.restart import restart_program
from holdfast.lifecycle.retention import Retention
from holdfast.lifecycle.run_files import RunFiles
from holdfast.lifecycle.running_tasks import RunningTasks
from holdfast.lifecycle.stale_report import StaleReport
from holdfast.models.registry import ModelRegistry
from holdfast.processes.open_files import raise_limit, restore_limit
from holdfast.processes.supervisor import Supervisor
from holdfast.profiles import WORKSPACES, Profiles
from holdfast.read_settings import load_settings
from holdfast.runtime.agents import Agents
from holdfast.runtime.creation import Creation
from holdfast.runtime.heartbeat import HeartbeatFile, boot_id
from holdfast.runtime.runner import Runner
from holdfast.runtime.streaming_text import StreamingTexts
from holdfast.runtime.tools.delegate import Delegate
from holdfast.runtime.tools.files import file_tools
from holdfast.runtime.tools.question import QUESTION
from holdfast.runtime.tools.recall import Recall
from holdfast.runtime.tools.terminal import command_tools
from holdfast.runtime.tools.tool import AnyTool
from holdfast.sessions import Sessions
from holdfast.settings import Settings
from holdfast.store.contract import Append, Store, Write
from holdfast.store.home_lock import HomeLock
from holdfast.store.sqlite.connections import no_space
from holdfast.store.sqlite.store import open_store as open_sqlite
from holdfast.tasks.agents import AgentTasks
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.defaults import CommandDefaults
from holdfast.tasks.files import TaskFileExporter
from holdfast.tasks.git_snapshots import GitSnapshots
from holdfast.tasks.log import TaskLog
from holdfast.tasks.prune import Pruning
from holdfast.tasks.queries import TaskQueries
from holdfast.tasks.sandbox import SandboxBuilder, not_dumpable, remove_tmp, sessions_with_tmp

SUSPEND_SECONDS = 1.5
BEGIN_AGAIN_SECONDS = 1.0
DEFAULT_PORT = 4690
DOCTOR = "`holdfast doctor` examines the home."
OpenStore = Callable[[Path], Awaitable[Store]]
log = logging.getLogger(__name__)


def serve(
    home: Home, *, port: int | None, background: bool, browser: bool = False, open_store: OpenStore = open_sqlite
) -> int:
    """Run a gateway until it is shut down. Returns the exit code of the process.

    A restart replaces the program in the same process: whoever started the gateway keeps its child, and a gateway
    that an agent restarts does not become part of the agent's command.
    """
    try:
        umask = home.prepare()
        settings = load_settings(home.config)
        lock = HomeLock(home.lock)
    except ConfigError as error:
        return _explain(str(error), "", 2)
    except Conflict as error:
        return _explain(error.message, error.hint, 5)
    except OSError as error:
        return _explain(*_reason(home, error), 1)
    try:
        not_dumpable()
        start_logging(home.log, settings.gateway.log_bytes)
        welcome = None if background else Welcome(browser=browser)
        host = _Host(home, settings, umask, lock, raise_limit())
        again = Again()
        used = asyncio.run(_run(host, port=port, welcome=welcome, open_store=open_store, again=again))
    except HoldfastError as error:
        return _could_not_start(error.message, error.hint)
    except OSError as error:
        return _could_not_start(*_reason(home, error))
    finally:
        lock.release()
    if again.wanted:
        os.umask(umask)
        restore_limit()
        restart_program(home, port=used, background=background, environment=again.environment)
    return 0


def _reason(home: Home, error: OSError) -> tuple[str, str]:
    """Why it could not start, and what to do."""
    if error.errno == errno.ENOSPC:
        full = no_space(home.path)
        return full.message, full.hint
    return f"{error}.", DOCTOR


def _could_not_start(message: str, hint: str) -> int:
    log.error("the gateway could not start: %s", message, extra={"hint": hint})
    return _explain(message, hint, 1)


def _explain(message: str, hint: str, code: int) -> int:
    sys.stderr.write(f"error: {message}\n" + (f"  hint: {hint}\n" if hint else ""))
    return code


@dataclass(frozen=True, slots=True)
class _Host:
    """Where a gateway runs."""

    home: Home
    settings: Settings
    umask: int
    lock: HomeLock
    open_files: int
    """How many files the gateway may have open."""


async def _run(host: _Host, *, port: int | None, welcome: Welcome | None, open_store: OpenStore, again: Again) -> int:
    """Run until the shutdown; return the port that it listened on."""
    home = host.home
    shutdown = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, shutdown.set)
    bound = _bind(port, host.settings.gateway.port)
    store = await open_store(home.database)
    async with AsyncExitStack() as closing:
        closing.callback(log.info, "gateway ended")
        closing.push_async_callback(store.close)
        number = int(bound.getsockname()[1])
        gateway, exporter = _put_together(host, store, port=number, shutdown=shutdown, again=again)
        closing.push_async_callback(gateway.models.close)
        closing.push_async_callback(gateway.agents.close)
        files = RunFiles(home, host.lock, lost=shutdown.set)
        closing.push_async_callback(files.stop)
        started = await _begin(gateway, wait=False)
        await gateway.devices.load()
        public_urls = host.settings.gateway.public_urls
        guard = Guard(port=number, token=files.token, devices=gateway.devices, public_urls=public_urls)
        server = Server(gateway, guard, ConnectionLimits(open_files=host.open_files))
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        if not started:  # it serves reads; the rest begins when the disk takes writes
            _announce(home, gateway, files, public_urls)
            if not await _begin(gateway, wait=True):
                await serving
                return number
        stale = StaleReport(store, gateway.task_queries, gateway.clock, gateway.profiles)
        await _recover(gateway, exporter, stale)
        _collect_garbage_less_often()
        if started:
            _announce(home, gateway, files, public_urls)
        if welcome is not None:
            await welcome.show(home, gateway)
        warming = asyncio.create_task(gateway.models.warm_up())
        await asyncio.wait({serving, asyncio.create_task(shutdown.wait())}, return_when=asyncio.FIRST_COMPLETED)
        await _shut_down(gateway, serving)
        await gateway.retention.stop()
        await stale.stop()
        await exporter.stop()
        await warming
        return number


async def _recover(gateway: Gateway, exporter: TaskFileExporter, stale: StaleReport) -> None:
    """Resume everything that the last gateway left open. Commands are accepted only afterwards."""
    sandbox = gateway.sandbox
    await asyncio.to_thread(lambda: sandbox.problem)  # tried once, before a command needs it
    await _remove_left_tmp(gateway.store, sandbox)
    await gateway.models.detect()
    await gateway.tasks.start()
    await exporter.start()
    await gateway.retention.start()
    await stale.start()
    await gateway.runner.start()
    await gateway.reset_scheduler.start()
    await gateway.dispatcher.start()
    gateway.recovered.set()


def _command_tasks(
    host: _Host,
    store: Store,
    profiles: Profiles,
    *,
    task_log: TaskLog,
    sessions: Sessions,
    sandbox: SandboxBuilder,
    clock: Clock,
) -> CommandTasks:
    defaults = CommandDefaults(
        host.home.tasks,
        lambda: command_environment(profiles.settings.secret_names),
        host.umask,
        profiles.mask,
        sandbox,
    )
    supervisor = Supervisor(host.home.tasks)
    return CommandTasks(
        store, task_log=task_log, supervisor=supervisor, defaults=defaults, sessions=sessions, clock=clock
    )


def _tools(
    tasks: CommandTasks, task_queries: TaskQueries, agent_tasks: AgentTasks, *, creation: Creation, sessions: Sessions
) -> list[AnyTool]:
    """Return what every agent can do, apart from reading the inbox."""
    return [
        *file_tools(),
        QUESTION,
        *command_tools(tasks, task_queries, SystemClock()),
        Delegate(agent_tasks, task_queries, creation).tool,
        Recall(sessions).tool,
    ]


def _put_together(
    host: _Host, store: Store, *, port: int, shutdown: asyncio.Event, again: Again
) -> tuple[Gateway, TaskFileExporter]:
    """Construct every part with its collaborators; nothing is started yet."""
    home, clock, streaming = host.home, SystemClock(), StreamingTexts(store)
    profiles, sandbox = Profiles(home.config), SandboxBuilder(home.path.absolute())
    sessions, task_log = Sessions(store, clock), TaskLog(store, clock, GitSnapshots(home.tasks), profiles.mask)
    tasks = _command_tasks(host, store, profiles, task_log=task_log, sessions=sessions, sandbox=sandbox, clock=clock)
    task_queries = TaskQueries(store, tasks=tasks, sessions=sessions, clock=clock, profiles=profiles)
    agent_tasks = AgentTasks(store, task_log=task_log, sessions=sessions, clock=clock)
    creation = Creation(store, sessions=sessions, profiles=profiles)
    awake = AwakeClock()
    running_tasks = RunningTasks(store, task_queries, tasks, awake)
    cards = Cards(store, sessions=sessions, running=running_tasks, clock=clock, root=home.path / WORKSPACES)
    dispatcher = Dispatcher(store, cards=cards, sessions=sessions, profiles=profiles, clock=clock)
    tools = [*_tools(tasks, task_queries, agent_tasks, creation=creation, sessions=sessions), dispatcher.inbox.tool]
    models, worker_tools = ModelRegistry(profiles), WorkerTools(store, cards, sessions, creation).tools
    agents = Agents(profiles, models, tools=tools, worker_tools=worker_tools)
    beat = HeartbeatFile(home.heartbeat, clock)
    runner = Runner(
        store, sessions=sessions, task_log=task_log, streaming=streaming, agents=agents, clock=clock, heartbeat=beat
    )
    streams = Streams(store, streaming)
    reset_service = ResetService(store, sessions=sessions, running=running_tasks, profiles=profiles, clock=clock)
    pruning = Pruning(store, tasks.supervisor, clock)
    exporter = TaskFileExporter(store, sessions=sessions, root=home.tasks, hide=profiles.mask)
    gateway = Gateway(
        store=store,
        sessions=sessions,
        streams=streams,
        devices=Devices(store.devices, streams, clock, Revocations(home.revocations)),
        dashboard=DashboardFiles(),
        runner=runner,
        tasks=tasks,
        task_queries=task_queries,
        agent_tasks=agent_tasks,
        pruning=pruning,
        retention=Retention(store, pruning, clock, lambda: profiles.settings.retention, sessions=sessions),
        running_tasks=running_tasks,
        reset_service=reset_service,
        cards=cards,
        dispatcher=dispatcher,
        reset_scheduler=ResetScheduler(store, reset_service=reset_service, profiles=profiles, awake=awake, clock=clock),
        profiles=profiles,
        models=models,
        agents=agents,
        sandbox=sandbox,
        clock=clock,
        followers=[runner.state, tasks.state, exporter.state, *dispatcher.states, store.search_state],
        home=str(home.path),
        url=f"http://127.0.0.1:{port}",
        started_at=clock.now(),
        shutdown=shutdown,
        again=again,
        recovered=asyncio.Event(),
    )
    return gateway, exporter


async def _shut_down(gateway: Gateway, serving: asyncio.Task[None]) -> None:
    """Suspend the running turns while the server closes its connections, then write that the shutdown was clean."""
    await gateway.dispatcher.stop()
    await gateway.reset_scheduler.stop()
    log.info("shutting down: suspending %d sessions", len(gateway.runner.working))
    suspending = asyncio.create_task(gateway.runner.stop())
    await asyncio.wait({suspending}, timeout=SUSPEND_SECONDS)
    await gateway.tasks.stop()
    await serving
    try:
        async with asyncio.timeout(SUSPEND_SECONDS):
            await _note(gateway, GatewayStopped(pid=os.getpid(), reason="somebody said goodbye"))
    except (HoldfastError, TimeoutError) as error:
        log.warning("the clean shutdown could not be written: %s", error)


def _collect_garbage_less_often() -> None:
    """Exclude what exists now from garbage collection, and collect less often: a turn makes thousands of objects.

    Reference counting frees nearly all of them; together this takes about a tenth off the processor time of a turn.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


async def _begin(gateway: Gateway, *, wait: bool) -> bool:
    """Write that a gateway has started; return whether that is done. With `wait`, wait for space on a full disk."""
    started = GatewayStarted(pid=os.getpid(), version=__version__, boot=boot_id())
    while not gateway.shutdown.is_set():
        try:
            await _note(gateway, started)
        except Unavailable as error:
            if not wait:
                log.warning("the gateway serves reads only until the disk takes writes: %s", error)
                return False
            await wait_for_event(gateway.shutdown, within=BEGIN_AGAIN_SECONDS)
        else:
            return True
    return False


async def _note(gateway: Gateway, event: AnyEvent) -> None:
    await gateway.store.append(Append((Write(SYSTEM, (event,)),), gateway.clock.now()))


async def _remove_left_tmp(store: Store, sandbox: SandboxBuilder) -> None:
    """Delete the `/tmp` of sessions that were archived or deleted, unless a command still runs there."""
    running = {row.session for row in await store.running_tasks()}
    for session in sessions_with_tmp(sandbox.tmp):
        try:
            gone = (await store.session(session)).archived
        except (NotFound, Gone):
            gone = True
        if gone and session not in running:
            await asyncio.to_thread(remove_tmp, sandbox.tmp, session)


def _bind(asked: int | None, configured: int | None) -> Socket:
    """Bind the port that was asked for; by default the usual one, or any free one when that is taken."""
    port = configured if asked is None else asked
    try:
        return listen(DEFAULT_PORT if port is None else port)
    except OSError as error:
        if port is None:
            return listen(0)
        where = "with --port" if asked is not None else "as `port` in [gateway] of config.toml"
        hint = f"End the program that uses it, or choose another port {where}; 0 takes any free one."
        raise Unavailable(f"Port {port} cannot be used: {error.strerror}.", hint=hint) from error


def _announce(home: Home, gateway: Gateway, files: RunFiles, public_urls: list[str]) -> None:
    """Tell every client where it is."""
    address = {"pid": os.getpid(), "url": gateway.url, "version": __version__, "started_at": gateway.started_at}
    files.announce(address | {"public_urls": public_urls})
    log.info("gateway %s listens on %s, home %s", __version__, gateway.url, home.path)
