"""A client that does not read: it costs little, harms nobody, is cut, and comes back with its cursor."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.followers import FORMS, Form, collect, ends_with, page, records, stream
from tests.e2e.gateway import GatewayProcess, until
from tests.e2e.wire import UPGRADE, head, is_closed

UNREAD_SECONDS = 3
GROWTH = 30_000_000
BIG = "say " + "x" * 200_000
BIG_TURNS = 30


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    constants = {"holdfast.gateway.server.UNREAD_SECONDS": UNREAD_SECONDS}
    with GatewayProcess(tmp_path_factory.mktemp("gateway") / "home", constants=constants) as process:
        yield process.start()


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


def followers(gateway: GatewayProcess) -> int:
    lines = gateway.request("GET", "/metrics").text.splitlines()
    return int(float(next(line for line in lines if line.startswith("holdfast_followers ")).split()[1]))


async def test_promise_4_clients_that_do_not_read_cost_little_and_are_cut(
    gateway: GatewayProcess, big_session: str
) -> None:
    everything = page(gateway, path_of(big_session), limit=2000)
    assert sum(map(len, everything)) > 11_000_000
    enough = ends_with("TurnFinished", count=BIG_TURNS)
    for form in FORMS:
        await collect(stream(form, gateway, path_of(big_session)), enough)
    before = most = gateway.rss()
    with ExitStack() as stack:
        silent = [
            stack.enter_context(deaf(gateway, form, path))
            for form in FORMS
            for path in (path_of(big_session), path_of(big_session), "/v1/events")
        ]
        assert await asyncio.to_thread(until, lambda: followers(gateway) == len(silent), "all of them follow")
        for form in FORMS:  # the others are unharmed meanwhile
            async with asyncio.timeout(UNREAD_SECONDS):
                seen = await collect(stream(form, gateway, path_of(big_session)), enough)
            assert records(seen) == everything
            most = max(most, gateway.rss())
        small = await asyncio.to_thread(gateway.create, "say quick")
        await asyncio.to_thread(gateway.until_rest, small, seconds=UNREAD_SECONDS)
        most = max(most, gateway.rss())
        print(f"{len(silent)} clients that do not read: {(most - before) / 1e6:.1f} MB")
        assert most - before < GROWTH
        await asyncio.to_thread(until, lambda: followers(gateway) == 0, "they are cut", seconds=4 * UNREAD_SECONDS)
        assert all(is_closed(one, seconds=5) for one in silent)
    assert not [line for line in gateway.log if line["level"] != "info"], gateway.log


@pytest.mark.parametrize("form", FORMS)
async def test_promise_4_who_reads_slowly_gets_everything(
    gateway: GatewayProcess, big_session: str, form: Form
) -> None:
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


def test_a_client_that_does_not_read_does_not_delay_a_goodbye(gateway: GatewayProcess, big_session: str) -> None:
    with deaf(gateway, "sse", path_of(big_session)), deaf(gateway, "ws", path_of(big_session)):
        until(lambda: followers(gateway) == 2, "both follow")
        code, seconds = gateway.terminate()
    gateway.start()
    print(f"goodbye with two clients that do not read: {seconds:.2f} s")
    assert code == 0
    assert seconds < 6


def test_a_request_that_is_never_finished_is_nobodys_problem(gateway: GatewayProcess) -> None:
    """With its credential shown it may take its time; the others do not wait for it."""
    headers = [("Host", f"127.0.0.1:{gateway.port}"), ("Authorization", f"Bearer {gateway.token}")]
    with ExitStack() as stack:
        for _ in range(30):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port)))
            connection.sendall(head("POST", "/v1/sessions", [*headers, ("Content-Length", "1000")]) + b'{"text": "sa')
            until(lambda: gateway.get("/v1/status")["pid"] == gateway.pid, "it answers")
    gateway.until_rest(gateway.create("say well"))
