"""A client that does not read: it costs little, is disconnected, and comes back with its cursor."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from holdfast.gateway.streams import STALLED_BYTES
from tests.e2e.followers import FORMS, Form, collect, ends_with, page, records, stream
from tests.e2e.gateway import GatewayProcess, until
from tests.e2e.wire import UPGRADE, head, is_closed

UNREAD = "gateway.unread"
UNREAD_SECONDS = 3
GROWTH = 30_000_000
BIG = "say " + "x" * 200_000
BIG_TURNS = 30
MANY = 100


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("gateway") / "home") as process:
        process.timings[UNREAD] = UNREAD_SECONDS
        yield process.start()


@contextmanager
def patient(gateway: GatewayProcess) -> Iterator[None]:
    """Whoever does not read is left alone meanwhile."""
    gateway.kill9()
    gateway.timings[UNREAD] = 3600
    gateway.start()
    try:
        yield
    finally:
        gateway.close()
        gateway.timings[UNREAD] = UNREAD_SECONDS
        gateway.start()


@pytest.fixture(scope="module")
def big_session(gateway: GatewayProcess) -> str:
    """12 MB of events."""
    session = gateway.create()
    for _ in range(BIG_TURNS):
        gateway.send(session, BIG)
    gateway.until_rest(session)
    return session


def path_of(session: str) -> str:
    return f"/v1/sessions/{session}/events"


def deaf(gateway: GatewayProcess, form: Form, path: str) -> socket.socket:
    """Asks for everything and never reads."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", gateway.port))
    headers = [("Host", f"127.0.0.1:{gateway.port}"), ("Authorization", f"Bearer {gateway.token}")]
    headers += UPGRADE if form == "ws" else [("Accept", "text/event-stream")]
    connection.sendall(head("GET", path, headers))
    return connection


def deaf_ones(gateway: GatewayProcess, session: str, stack: ExitStack) -> list[socket.socket]:
    """Some of each form, once all of them follow."""
    paths = (path_of(session), path_of(session), "/v1/events")
    silent = [stack.enter_context(deaf(gateway, form, path)) for form in FORMS for path in paths]
    until(lambda: gateway.followers() == len(silent), "all of them follow")
    return silent


def test_clients_that_do_not_read_are_cut(gateway: GatewayProcess, big_session: str) -> None:
    with ExitStack() as stack:
        silent = deaf_ones(gateway, big_session, stack)
        until(lambda: gateway.followers() == 0, "they are cut")
        assert all(map(is_closed, silent))
    assert not [line for line in gateway.log if line["level"] != "info"], gateway.log


async def test_promise_4_clients_that_do_not_read_cost_little_and_harm_nobody(
    gateway: GatewayProcess, big_session: str
) -> None:
    with patient(gateway):
        await others_are_unharmed(gateway, big_session)


async def others_are_unharmed(gateway: GatewayProcess, big_session: str) -> None:
    everything = page(gateway, path_of(big_session), limit=2000)
    assert sum(map(len, everything)) > 11_000_000
    enough = ends_with("TurnFinished", count=BIG_TURNS)
    for form in FORMS:
        await collect(stream(form, gateway, path_of(big_session)), enough)
    before = most = gateway.rss()
    with ExitStack() as stack:
        silent = deaf_ones(gateway, big_session, stack)
        for form in FORMS:
            assert records(await collect(stream(form, gateway, path_of(big_session)), enough)) == everything
            most = max(most, gateway.rss())
        small = await asyncio.to_thread(gateway.create, "say quick")
        await asyncio.to_thread(gateway.until_rest, small)
        most = max(most, gateway.rss())
        print(f"{len(silent)} clients that do not read: {(most - before) / 1e6:.1f} MB")
        assert most - before < GROWTH
        assert gateway.followers() == len(silent), "they were there all the time"


def test_stalled_clients_cost_at_most_256_kib_each(tmp_path: Path) -> None:
    """Whoever has taken nothing for long while more than that waits for it is cut."""
    timings = {"gateway.stalled": 0.5, UNREAD: 3600}
    with GatewayProcess(tmp_path / "home", timings=timings) as gateway, ExitStack() as stack:
        session = gateway.start().create()
        for _ in range(30):
            gateway.send(session, "say " + "x" * 20_000)
        versions = len(gateway.until_rest(session))
        large = gateway.create("say " + "x" * 900_000)
        gateway.until_rest(large)
        before, first = 0, 20  # these also cost what all clients share
        for count in range(1, first + MANY + 1):
            path = f"{path_of(session)}?after={count % (versions // 2)}"
            stack.enter_context(deaf(gateway, FORMS[count % 2], path))
            if count % 10 == 0:  # a rush of all of them would be measured too, and depend on the machine
                until(lambda count=count: gateway.followers() == count, "they follow")  # type: ignore[misc]
            if count == first:
                before = gateway.rss()
        each = (gateway.rss() - before) / MANY
        print(f"{MANY} clients that do not read: {each / 1024:.0f} KiB each")
        assert each < STALLED_BYTES
        with deaf(gateway, "ws", path_of(large)) as too_much:
            until(lambda: gateway.followers() == first + MANY + 1, "it follows, too")
            until(lambda: gateway.followers() == first + MANY, "the one for which a large event waits is cut")
            assert is_closed(too_much)
        assert gateway.followers() == first + MANY, "the others are not"


@pytest.mark.parametrize("form", FORMS)
async def test_promise_4_a_slow_reader_gets_everything(gateway: GatewayProcess, big_session: str, form: Form) -> None:
    """Slower than the deadline in all, but never silent for so long."""
    paused = 0.0
    seen = []
    async for one in stream(form, gateway, path_of(big_session)):
        seen.append(one)
        if paused < 1.5 * UNREAD_SECONDS and len(seen) % 20 == 0:
            await asyncio.sleep(0.5)
            paused += 0.5
        if ends_with("TurnFinished", count=BIG_TURNS)(seen):
            break
    assert records(seen) == page(gateway, path_of(big_session), limit=2000)


def test_a_client_that_does_not_read_does_not_delay_a_shutdown(gateway: GatewayProcess, big_session: str) -> None:
    with patient(gateway), ExitStack() as stack:
        deaf_ones(gateway, big_session, stack)
        assert gateway.terminate() == 0


def test_a_request_that_is_never_finished_is_nobodys_problem(gateway: GatewayProcess) -> None:
    """With its credential shown it may take its time; the others do not wait for it."""
    headers = [("Host", f"127.0.0.1:{gateway.port}"), ("Authorization", f"Bearer {gateway.token}")]
    with ExitStack() as stack:
        for _ in range(30):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port)))
            connection.sendall(head("POST", "/v1/sessions", [*headers, ("Content-Length", "1000")]) + b'{"text": "sa')
            until(lambda: gateway.get("/v1/status")["pid"] == gateway.pid, "it answers")
    gateway.until_rest(gateway.create("say well"))
