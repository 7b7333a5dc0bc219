"""One gateway, started, run, and taken apart in order; `assembly.py` puts it together.

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
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from socket import gethostname
from socket import socket as Socket
from typing import NoReturn

import uvloop

from holdfast import __version__
from holdfast.assembly import Machine, assemble
from holdfast.clock import SystemClock, wait_for_event
from holdfast.config import ConfigError, Home, own_environment
from holdfast.domain.errors import Conflict, Gone, HoldfastError, NotFound, Unavailable
from holdfast.domain.events import SYSTEM, AnyEvent
from holdfast.domain.events.system import GatewayStarted, GatewayStopped
from holdfast.gateway.connections import ConnectionLimits
from holdfast.gateway.guard import Guard
from holdfast.gateway.server import Server, listen, start_logging
from holdfast.gateway.state import Again, Gateway
from holdfast.gateway.welcome import Welcome
from holdfast.lifecycle.drain import Drain
from holdfast.lifecycle.run_files import RunFiles, port_of_killed
from holdfast.models.registry import ModelRegistry
from holdfast.processes.open_files import raise_limit, restore_limit
from holdfast.profiles import Profiles
from holdfast.read_settings import load_settings
from holdfast.runtime.work_time import HeartbeatFile, boot_id
from holdfast.settings import NODE_NAME, Settings, has_password
from holdfast.store.contract import LOCAL_NODE, Append, Store, Write
from holdfast.store.home_lock import HomeLock
from holdfast.store.sqlite.connections import no_space
from holdfast.store.sqlite.store import open_store as open_sqlite
from holdfast.tasks.sandbox import SandboxBuilder, not_dumpable, remove_tmp, sessions_with_tmp
from holdfast.timings import USUAL, StoreTimings, Timings

SUSPEND_SECONDS = 1.5
BEGIN_AGAIN_SECONDS = 1.0
DEFAULT_PORT = 4690
DOCTOR = "Run `holdfast doctor`."
OpenStore = Callable[[Path, StoreTimings], Awaitable[Store]]
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AskedStore:
    """What the caller of `serve` says about the store; what is empty is as in config.toml."""

    address: str = ""
    """Of a PostgreSQL database."""
    node: str = ""
    """The name of this gateway among those that work on it."""


def serve(
    home: Home,
    *,
    port: int | None,
    background: bool,
    browser: bool = False,
    default_port: int = DEFAULT_PORT,
    store: AskedStore | None = None,
    open_store: OpenStore | None = None,
    timings: Timings = USUAL,
) -> int:
    """Run a gateway until it is shut down. Returns the exit code of the process.

    `store` is what the caller says about the store, instead of config.toml.

    A restart replaces the program in the same process: the parent process keeps its child, and a gateway
    that an agent restarts does not become part of the agent's command.
    """
    asked = store or AskedStore()
    try:
        umask = home.prepare()
        settings = load_settings(home.config)
        open_store = open_store or _store_opener(settings, asked)
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
        host = _Host(home, settings, umask, lock, raise_limit(), default_port, timings)
        again = Again()
        used = uvloop.run(_run(host, port=port, welcome=welcome, open_store=open_store, again=again))
    except HoldfastError as error:
        return _could_not_start(error.message, error.hint)
    except OSError as error:
        return _could_not_start(*_reason(home, error))
    finally:
        lock.release()
    if again.wanted:
        os.umask(umask)
        restore_limit()
        options = {"--port": str(used), "--store": asked.address, "--node": asked.node}
        _restart_program(home, options, background=background, environment=again.environment)
    return 0


def _store_opener(settings: Settings, asked: AskedStore) -> OpenStore:
    """What opens the store: SQLite in the home, unless a database was asked for."""
    if has_password(asked.address):
        what = "The address holds a password, which everybody on this machine could see."
        raise ConfigError(f"{what} Put the address into a variable and name that as url_env in [store] of config.toml.")
    if not asked.address and not settings.store.is_server:
        if asked.node:
            raise ConfigError(
                "--node is for several gateways on one PostgreSQL database: give its address with --store."
            )
        return open_sqlite
    name = asked.node or settings.node.name or gethostname()
    if not NODE_NAME.fullmatch(name):
        raise ConfigError(f"{name!r} cannot be the name of a node: use up to 63 letters, digits, `.`, `_` and `-`.")
    if name == LOCAL_NODE:
        what = f"A node cannot be called {name}: this name is reserved for the only node of a log in SQLite."
        raise ConfigError(f"{what} Give it another name with --node, or as `name` in [node] of config.toml.")
    address = asked.address or settings.store.address
    if not address:
        where = "[store] in config.toml takes the database address from it"
        raise ConfigError(f"{settings.store.url_env} is not set in this terminal; {where}.")
    try:
        from holdfast.store.postgres.store import open_address
    except ModuleNotFoundError as error:
        raise ConfigError(f"PostgreSQL needs {error.name}: install holdfast[postgres].") from error
    return lambda path, timings: open_address(address, path.with_name("tasks"), timings, name, settings.node.labels)


def _restart_program(home: Home, options: dict[str, str], *, background: bool, environment: dict[str, str]) -> NoReturn:
    """Replace the program of this process. Its parent, its terminal and the running commands stay."""
    arguments = [sys.executable, "-P", "-m", "holdfast", "--home", str(home.path), "serve"]
    arguments += [word for name, value in options.items() if value for word in (name, value)]
    arguments += ["--background"] if background else []
    os.execve(sys.executable, arguments, own_environment() | environment)  # noqa: S606


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
    default_port: int
    timings: Timings


async def _run(host: _Host, *, port: int | None, welcome: Welcome | None, open_store: OpenStore, again: Again) -> int:
    """Run until the shutdown; return the port that it listened on."""
    home = host.home
    shutdown = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, shutdown.set)
    bound = _bind(host, port)
    try:
        store = await open_store(home.database, host.timings.store)
    except BaseException:
        bound.close()
        raise
    async with AsyncExitStack() as closing:
        closing.callback(log.info, "gateway ended")
        closing.push_async_callback(store.close)
        number = int(bound.getsockname()[1])
        gateway = _assemble(host, store, port=number, shutdown=shutdown, again=again)
        closing.push_async_callback(gateway.models.close)
        closing.push_async_callback(gateway.agents.close)
        files = RunFiles(home, host.lock, shutdown)
        closing.push_async_callback(files.stop)
        await _use_shared_settings(gateway, closing)
        started = await _begin(gateway, wait=False)
        await gateway.devices.load()
        public_urls = host.settings.gateway.public_urls
        devices, workers = gateway.devices, gateway.worker_access
        guard = Guard(port=number, token=files.token, devices=devices, workers=workers, public_urls=public_urls)
        server = Server(gateway, guard, ConnectionLimits(open_files=host.open_files, timings=host.timings.gateway))
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        if not started:  # it serves reads; the rest begins when the disk takes writes
            _announce(home, gateway, files, public_urls)
            closing.push_async_callback(gateway.notify.disk_watch.stop)
            await gateway.notify.watch_disk()
            if not await _begin(gateway, wait=True):
                await serving
                return number
        await _recover(gateway)
        drain = Drain(store, runner=gateway.runner, tasks=gateway.tasks, shutdown=shutdown)
        if store.is_shared:
            closing.push_async_callback(drain.stop)
            drain.start()
        _collect_garbage_less_often()
        if started:
            _announce(home, gateway, files, public_urls)
        if welcome is not None:
            await welcome.show(home, gateway)
        warming = asyncio.gather(gateway.models.warm_up(), server.warm_up())
        await asyncio.wait({serving, asyncio.create_task(shutdown.wait())}, return_when=asyncio.FIRST_COMPLETED)
        await _shut_down(gateway, serving)
        await gateway.notify.stop()
        await gateway.retention.stop()
        await gateway.stale_report.stop()
        await gateway.exporter.stop()
        await warming
        return number


def _assemble(host: _Host, store: Store, *, port: int, shutdown: asyncio.Event, again: Again) -> Gateway:
    clock, profiles = SystemClock(), Profiles(host.home.config, minute_ms=host.timings.minute_ms)
    assembled = assemble(
        host.home,
        store,
        profiles=profiles,
        models=ModelRegistry(profiles, host.timings.runtime),
        machine=Machine(clock=clock, umask=host.umask, heartbeat=HeartbeatFile(host.home.heartbeat, clock)),
        timings=host.timings,
        url=f"http://127.0.0.1:{port}",
    )
    return replace(
        assembled,
        public_urls=tuple(host.settings.gateway.public_urls),
        shutdown=shutdown,
        again=again,
    )


async def _use_shared_settings(gateway: Gateway, closing: AsyncExitStack) -> None:
    """Where several nodes share settings and keys: have them before anything begins."""
    if gateway.shared_settings is not None:
        closing.push_async_callback(gateway.shared_settings.stop)
        await gateway.shared_settings.start()
        await gateway.notify.share_key()


async def _recover(gateway: Gateway) -> None:
    """Resume everything that the last gateway left open. Commands are accepted only afterwards."""
    sandbox = gateway.sandbox
    await asyncio.to_thread(lambda: sandbox.problem)  # tried once, before a command needs it
    await _remove_left_tmp(gateway.store, sandbox)
    await gateway.models.detect()
    await gateway.tasks.start()
    await gateway.exporter.start()
    gateway.retention.start()
    gateway.stale_report.start()
    gateway.idle_agents.start()
    await gateway.runner.start()
    gateway.reset_scheduler.start()
    await gateway.dispatcher.start()
    await gateway.notify.start()
    gateway.recovered.set()


async def _shut_down(gateway: Gateway, serving: asyncio.Task[None]) -> None:
    """Suspend the running turns while the server closes its connections, then write that the shutdown was clean."""
    await gateway.dispatcher.stop()
    await gateway.reset_scheduler.stop()
    await gateway.idle_agents.stop()
    log.info("shutting down: suspending %d sessions", len(gateway.runner.working))
    suspending = asyncio.create_task(gateway.runner.stop())
    await asyncio.wait({suspending}, timeout=SUSPEND_SECONDS)
    await gateway.tasks.stop()
    await serving
    try:
        async with asyncio.timeout(SUSPEND_SECONDS):
            node, reason = gateway.store.node, "it was asked to shut down"
            await _note(gateway, GatewayStopped(pid=os.getpid(), reason=reason, node=node))
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
    node, life = gateway.store.node, gateway.store.life
    lives = [row for row in await gateway.store.nodes() if row.name == node and row.life != life]
    before = lives[0].version if lives else ""
    started = GatewayStarted(pid=os.getpid(), version=__version__, boot=boot_id(), version_before=before, node=node)
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


def _bind(host: _Host, asked: int | None) -> Socket:
    """Bind the port that was asked for; by default the usual one, or any free one when that is taken.

    After a crash the port of the gateway before comes first, unless another one was asked for: agents that work on know
    no other address, and neither do open pages.
    """
    port, unread = host.settings.gateway.port if asked is None else asked, host.timings.gateway.unread
    if not port and (before := port_of_killed(host.home)):
        with suppress(OSError):  # somebody else has it now
            return listen(before, unread_seconds=unread)
    try:
        return listen(host.default_port if port is None else port, unread_seconds=unread)
    except OSError as error:
        if port is None:
            return listen(0, unread_seconds=unread)
        where = "with --port" if asked is not None else "as `port` in [gateway] of config.toml"
        hint = f"End the program that uses it, or choose another port {where}; 0 takes any free one."
        raise Unavailable(f"Port {port} cannot be used: {error.strerror}.", hint=hint) from error


def _announce(home: Home, gateway: Gateway, files: RunFiles, public_urls: list[str]) -> None:
    """Publish its address for every client."""
    address = {"pid": os.getpid(), "url": gateway.url, "version": __version__, "started_at": gateway.started_at}
    files.announce(address | {"public_urls": public_urls})
    log.info("gateway %s listens on %s, home %s", __version__, gateway.url, home.path)
