"""Three gateways at work while their database server crashes, is restarted, cut off, silent and frozen.

Every acknowledgement is kept outside of them, and every command leaves a line in a file that no gateway writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.gateway import until
from tests.e2e.test_nodes import NAMES, PATIENT, TIMINGS, Cluster, check_all, new_node, wait_until_done
from tests.eventually import PATIENCE
from tests.postgres_server import PostgresServer, own_server
from tests.seed import new_seed
from tests.store.postgres_proxy import Proxy, proxy_of

LEASE = float(TIMINGS["store.lease"])
TALKERS = 3


class Server:
    """The server of a cluster, the network before it, and what can happen to both."""

    def __init__(self, server: PostgresServer, proxy: Proxy, loop: asyncio.AbstractEventLoop) -> None:
        self._server, self._proxy, self._loop = server, proxy, loop
        self.faults: dict[str, Callable[[], None]] = {
            "crash": lambda: self._restart(signal.SIGQUIT),
            "restart": lambda: self._restart(signal.SIGINT),
            "cut": self._cut,
            "silence": self._fall_silent,
            "freeze": self._freeze,
        }

    def _restart(self, how: signal.Signals) -> None:
        self._server.stop(how)
        self._server.start()

    def _cut(self) -> None:
        asyncio.run_coroutine_threadsafe(self._proxy.cut(), self._loop).result(PATIENCE)

    def _fall_silent(self) -> None:
        self._loop.call_soon_threadsafe(self._proxy.silent.set)
        time.sleep(_how_long())
        self._loop.call_soon_threadsafe(self._proxy.silent.clear)

    def _freeze(self) -> None:
        assert self._server.process is not None
        main = self._server.process.pid
        os.kill(main, signal.SIGSTOP)  # from now on it starts no others
        others = [int(pid) for pid in Path(f"/proc/{main}/task/{main}/children").read_text().split()]
        _signal(others, signal.SIGSTOP)
        time.sleep(_how_long())
        _signal([*others, main], signal.SIGCONT)


def _how_long() -> float:
    """Shorter than a lease, or so long that every node has lost its own."""
    return random.choice([0.5, 2 * LEASE])


def _signal(processes: list[int], name: signal.Signals) -> None:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, name)


@contextmanager
def running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        asyncio.run_coroutine_threadsafe(_end_tasks(), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end_tasks() -> None:
    """Let no connection be dropped half-way: its warning would be for the next test."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)


@pytest.fixture
def at_work(tmp_path: Path) -> Iterator[tuple[Cluster, Server]]:
    """Three nodes that reach their server through a proxy, and people who talk all the time."""
    with own_server() as server, running_loop() as loop, ExitStack() as closing:
        between = proxy_of(server)
        proxy = asyncio.run_coroutine_threadsafe(between.__aenter__(), loop).result(PATIENCE)
        closing.callback(
            lambda: asyncio.run_coroutine_threadsafe(between.__aexit__(None, None, None), loop).result(PATIENCE)
        )
        nodes = {name: closing.enter_context(new_node(tmp_path, name, proxy.url())) for name in NAMES}
        cluster = Cluster(server.url(), tmp_path, nodes)
        for name in nodes:
            cluster.start(name)
        yield cluster, Server(server, proxy, loop)


def _wrote(cluster: Cluster, people: list[Future[None]], *, before: int) -> bool:
    for person in people:
        if person.done():
            person.result()  # it says why nobody writes
    return len(cluster.acknowledged) > before + TALKERS


@contextmanager
def log_kept(cluster: Cluster) -> Iterator[None]:
    """If the test fails, the log is beside the homes: the server and its database are gone then."""
    try:
        yield
    except BaseException:
        rows = cluster.rows("SELECT convert_from(data, 'UTF8') FROM events ORDER BY seq")
        (cluster.directory / "log.jsonl").write_text("".join(f"{line}\n" for (line,) in rows))
        raise


def faults_again_and_again(cluster: Cluster, server: Server, times: int) -> None:
    """Every fault so many times, in random order, each while people talk; then everything is done once."""
    random.seed(new_seed())
    faults = [*server.faults] * times
    random.shuffle(faults)
    over = threading.Event()

    def talk() -> None:
        while not over.is_set():
            cluster.talk()
            cluster.add_card()
            cluster.run_command()

    with ThreadPoolExecutor(TALKERS) as people:
        talking = [people.submit(talk) for _ in range(TALKERS)]
        try:
            for fault in faults:
                server.faults[fault]()
                wrote = partial(_wrote, cluster, talking, before=len(cluster.acknowledged))
                until(wrote, f"they write after a {fault}", seconds=PATIENT)
        finally:
            over.set()
        for one in talking:
            one.result(PATIENT)
    wait_until_done(cluster)


def test_promise_1_nothing_is_lost_or_done_twice_when_the_server_fails(at_work: tuple[Cluster, Server]) -> None:
    with log_kept(at_work[0]):
        faults_again_and_again(*at_work, times=1)
        check_all(at_work[0])


@pytest.mark.proof
@pytest.mark.timeout(7200)
def test_promise_1_nothing_is_lost_or_done_twice_in_20_faults_of_each_kind(at_work: tuple[Cluster, Server]) -> None:
    with log_kept(at_work[0]):
        faults_again_and_again(*at_work, times=20)
        print(check_all(at_work[0]), f"{len(at_work[0].acknowledged)} acknowledged")
