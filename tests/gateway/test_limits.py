"""Limits of connections: few and short without a credential, bounded heads, bounded numbers."""

from __future__ import annotations

import resource
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from holdfast.gateway import connections
from holdfast.gateway.connections import ConnectionLimits
from holdfast.timings import USUAL
from tests.e2e.gateway import GatewayProcess, until
from tests.e2e.wire import UPGRADE, connect, exchange, head, is_closed, read_answer
from tests.eventually import PATIENCE

STRANGERS = 16
MANY = 40


def a_gateway(home: Path, *, seconds: float) -> GatewayProcess:
    """Strangers have so many seconds there, and few files may be open."""
    open_files = connections.RESERVED_FILES + MANY
    return GatewayProcess(home, timings={"gateway.unauthenticated": seconds}, open_files=open_files)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Patient: whoever is cut here is cut for something else than its time."""
    with a_gateway(tmp_path_factory.mktemp("gateway") / "home", seconds=3600.0) as process:
        yield process.start()


@pytest.fixture(autouse=True)
def nobody_left(gateway: GatewayProcess) -> Iterator[None]:
    """Strangers of one test do not stand in the way of the next."""
    yield
    until(lambda: exchange(gateway.port, healthz(gateway)).status == 200, "the door is free again")


def healthz(gateway: GatewayProcess) -> bytes:
    return head("GET", "/healthz", [("Host", f"127.0.0.1:{gateway.port}")])


def status(gateway: GatewayProcess, *, token: str | None = None) -> bytes:
    bearer = ("Authorization", f"Bearer {token or gateway.token}")
    return head("GET", "/v1/status", [("Host", f"127.0.0.1:{gateway.port}"), bearer])


def strangers(gateway: GatewayProcess, stack: ExitStack, count: int) -> list[socket.socket]:
    return [stack.enter_context(connect(gateway.port)) for _ in range(count)]


def test_the_limits_are_those_of_the_design() -> None:
    assert (connections.MAX_CONNECTIONS, connections.MAX_UNAUTHENTICATED) == (1200, 16)
    assert USUAL.gateway.unauthenticated == 5.0


def test_the_17th_stranger_is_turned_away_and_friends_stay(gateway: GatewayProcess) -> None:
    with ExitStack() as stack:
        friend = stack.enter_context(connect(gateway.port))
        friend.sendall(status(gateway))
        assert read_answer(friend).status == 200
        silent = strangers(gateway, stack, STRANGERS)
        one_more = stack.enter_context(connect(gateway.port))
        refused = read_answer(one_more)
        assert refused.status == 503
        assert refused.headers["retry-after"] == "1"
        assert refused.headers["x-content-type-options"] == "nosniff"
        friend.sendall(status(gateway))
        assert read_answer(friend).status == 200
        for stranger in silent:
            stranger.close()
        until(lambda: exchange(gateway.port, status(gateway)).status == 200, "they left their places")


def test_many_friends_may_come_at_once(gateway: GatewayProcess) -> None:
    """Each is unknown until its head is read; that alone makes none of them a stranger."""
    with ExitStack() as stack:
        friends = strangers(gateway, stack, 2 * STRANGERS)
        for friend in friends:
            friend.sendall(status(gateway))
        assert {read_answer(friend).status for friend in friends} == {200}


def test_a_silent_connection_is_cut_and_one_that_showed_its_credential_is_not(tmp_path: Path) -> None:
    with a_gateway(tmp_path / "home", seconds=5.0) as gateway, ExitStack() as stack:
        gateway.start()
        friend, silent, slow, public = strangers(gateway, stack, 4)
        friend.sendall(status(gateway))
        assert read_answer(friend).status == 200
        public.sendall(healthz(gateway))
        assert read_answer(public).status == 200
        slow.sendall(b"GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1")
        assert is_closed(silent) and is_closed(slow)
        assert is_closed(public), "the public paths are no credential"
        friend.sendall(status(gateway))
        assert read_answer(friend).status == 200


@pytest.mark.parametrize("more", [[], UPGRADE], ids=["request", "upgrade"])
def test_a_refused_connection_frees_its_place(gateway: GatewayProcess, more: list[tuple[str, str]]) -> None:
    """Else a foreign page could shut the owner out with a handful of sockets."""
    foreign = [("Host", f"127.0.0.1:{gateway.port}"), ("Origin", "https://evil.example"), *more]
    for _ in range(3 * STRANGERS):
        assert exchange(gateway.port, head("GET", "/v1/events", foreign)).status == 403
    assert exchange(gateway.port, status(gateway)).status == 200


def test_a_broken_handshake_leaves_its_place(gateway: GatewayProcess) -> None:
    own = [("Host", f"127.0.0.1:{gateway.port}"), ("Authorization", f"Bearer {gateway.token}"), *UPGRADE[:2]]
    for _ in range(2 * STRANGERS):
        assert exchange(gateway.port, head("GET", "/v1/events", own)).status == 400
    assert exchange(gateway.port, status(gateway)).status == 200


def test_a_stranger_with_a_wrong_token_is_closed_at_once(gateway: GatewayProcess) -> None:
    with connect(gateway.port) as stranger:
        stranger.sendall(status(gateway, token="x" * 43))
        assert read_answer(stranger).status == 401
        assert is_closed(stranger)


@pytest.mark.parametrize(
    "endless",
    [b"GET /" + b"x" * 200_000, b"GET / HTTP/1.1\r\n" + b"x-header: value\r\n" * 20_000],
    ids=["address", "headers"],
)
def test_a_head_without_an_end_is_cut(gateway: GatewayProcess, endless: bytes) -> None:
    with connect(gateway.port) as stranger:
        try:
            stranger.sendall(endless)
        except (BrokenPipeError, ConnectionResetError):
            return
        assert read_answer(stranger).status in (431, 0)  # 0: reset while we were still sending


def test_connections_are_counted(gateway: GatewayProcess) -> None:
    """40 here, 1,200 in the wild."""
    with ExitStack() as stack:
        friends = []
        for _ in range(60):
            friend = stack.enter_context(connect(gateway.port))
            try:
                friend.sendall(status(gateway))
            except (BrokenPipeError, ConnectionResetError):
                break
            if read_answer(friend).status != 200:
                break
            friends.append(friend)
        assert 38 <= len(friends) <= 40
        friends[0].sendall(status(gateway))
        assert read_answer(friends[0]).status == 200


def test_an_answer_does_not_wait_for_an_acknowledgement(gateway: GatewayProcess) -> None:
    """Nagle's algorithm would hold the answers on a kept connection back for 40 ms each."""

    def seconds() -> float:
        began = time.perf_counter()
        gateway.get("/v1/status")
        return time.perf_counter() - began

    for _ in range(20):
        seconds()
    until(lambda: statistics.median(seconds() for _ in range(40)) < 0.03, "a quiet moment, which Nagle would not have")


def test_open_files_are_raised_for_the_gateway_and_not_for_its_commands(tmp_path: Path) -> None:
    """The cap of the connections fits what it got."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    program = (
        "import resource, sys, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, (256, int(sys.argv[1]))); "
        "sys.argv[1:] = sys.argv[2:]; runpy.run_module('holdfast', run_name='__main__')"
    )
    home = tmp_path / "home"
    limit = min(hard if hard != resource.RLIM_INFINITY else 4096, 4096)
    command = [sys.executable, "-c", program, str(limit), "--home", str(home), "serve", "--port", "0", "--background"]
    process = subprocess.Popen(command)
    gateway = GatewayProcess(home)
    try:
        until(lambda: gateway.address.get("pid") == process.pid, "it is up")
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[0] == limit > 256
        body = {"shell": "ulimit -n", "cwd": "/"}
        headers = {"authorization": f"Bearer {gateway.token}"}
        task = httpx.post(f"{gateway.url}/v1/tasks", json=body, headers=headers).json()["task"]
        output = home / "tasks" / task / "output.log"
        assert until(lambda: output.exists() and output.read_text(), "it has said its limit") == "256\n"
    finally:
        process.terminate()
        process.wait(PATIENCE)


def test_cap_of_connections_fits_the_open_files() -> None:
    caps = [ConnectionLimits(open_files=files).max_connections for files in (100_000, 1024, 100)]
    assert caps == [1200, 768, 16]
