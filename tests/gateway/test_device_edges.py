"""Browsers at the edges: signing in again, strangers in the way, cookies of long ago, what was deleted."""

from __future__ import annotations

import json
import sqlite3
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET

import httpx
import pytest

from holdfast.gateway.connections import MAX_UNAUTHENTICATED
from holdfast.gateway.devices import YEAR_MS
from tests.e2e.browser import Browser
from tests.e2e.gateway import GatewayProcess, until
from tests.e2e.wire import UPGRADE, connect, head, read_answer
from tests.eventually import PATIENCE

TIMINGS = {"gateway.device_seen": 0.0}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home", timings=TIMINGS) as process:
        yield process.start()


def come_again(gateway: GatewayProcess, browser: Browser) -> httpx.Response:
    code = gateway.command("POST", "/v1/codes")["code"]
    headers = {"cookie": browser.cookie, "origin": gateway.url}
    return httpx.post(gateway.url + "/v1/login", json={"code": code, "name": "the same"}, headers=headers)


def test_a_browser_that_signs_in_again_is_the_same_device(own: GatewayProcess) -> None:
    """`holdfast open` does that every time; what it has not read must not be forgotten with it."""
    browser, other = Browser(own), Browser(own)
    session = own.create("say one")
    own.until_rest(session)
    browser.see(session, 3)
    old = browser.cookie
    with browser.socket() as socket:
        socket.recv(PATIENCE)
        answer = come_again(own, browser)
        assert answer.status_code == 202 and answer.json() == {
            "device": browser.id,
            "name": "A browser",
        }  # as it was named first
        browser.cookie = answer.headers["set-cookie"].partition(";")[0]
        own.create()
        assert "SessionCreated" in str(socket.recv(PATIENCE))  # another tab of it goes on
    assert {row["id"] for row in own.get("/v1/devices")["devices"]} == {browser.id, other.id}
    assert httpx.get(own.url + "/v1/status", headers={"cookie": old}).status_code == 401
    port = own.port
    own.kill9()
    own.start(port)
    assert browser.get("/v1/devices/me")["cursors"] == {session: 3}
    assert httpx.get(own.url + "/v1/status", headers={"cookie": old}).status_code == 401


def test_a_device_that_was_revoked_while_it_signed_in_again_is_signed_out(own: GatewayProcess) -> None:
    for _ in range(10):
        browser = Browser(own)
        with ThreadPoolExecutor(2) as pool:
            again = pool.submit(come_again, own, browser)
            own.command("DELETE", f"/v1/devices/{browser.id}")
            answer = again.result()
        if "set-cookie" not in answer.headers:
            assert answer.status_code == 401 and browser.request("GET", "/v1/status").status_code == 401
            continue
        browser.cookie = answer.headers["set-cookie"].partition(";")[0]
        came_as = answer.json()["device"]
        listed = came_as in {row["id"] for row in own.get("/v1/devices")["devices"]}
        assert (browser.request("GET", "/v1/status").status_code == 200) is listed
        assert listed is (came_as != browser.id)  # another device: it had been revoked before it came


def test_right_code_is_accepted_while_strangers_take_all_their_places(tmp_path: Path) -> None:
    """Whoever showed a right code is no stranger any more; the next one who says nothing is turned away."""
    with GatewayProcess(tmp_path / "home", timings={"gateway.uncounted": 0.05}) as own, ExitStack() as stack:
        given = own.start().command("POST", "/v1/codes")["code"]
        for _ in range(MAX_UNAUTHENTICATED):
            stack.enter_context(connect(own.port))
        until(lambda: _is_turned_away(own.port), "all places are taken")
        body = json.dumps({"code": given}).encode()
        headers = [("Host", f"127.0.0.1:{own.port}"), ("Origin", own.url), ("Content-Length", str(len(body)))]
        socket = stack.enter_context(connect(own.port))
        socket.sendall(head("POST", "/v1/login", headers) + body)
        assert read_answer(socket).status == 202
        until(lambda: _is_turned_away(own.port), "another one who came later is turned away")
        socket.sendall(head("GET", "/healthz", headers[:1]))
        assert read_answer(socket).status == 200


def _is_turned_away(port: int) -> bool:
    with connect(port) as socket:
        return b"503" in socket.recv(100)


def test_anybody_may_send_only_a_small_body(own: GatewayProcess) -> None:
    body = json.dumps({"code": "x", "name": "n" * 5000}).encode()
    for sent in (body, iter([body])):
        answer = httpx.post(own.url + "/v1/login", content=sent, headers={"origin": own.url})
        assert answer.status_code == 413


def test_a_cookie_that_was_not_used_for_a_year_is_invalid(own: GatewayProcess) -> None:
    old, kept = Browser(own), Browser(own)
    port = own.port
    own.kill9()
    with closing(sqlite3.connect(own.home / "holdfast.db")) as db, db:
        db.execute("UPDATE devices SET seen_at = seen_at - ? WHERE id = ?", (YEAR_MS + 1, old.id))
        db.execute("UPDATE devices SET created_at = created_at - ? WHERE id = ?", (YEAR_MS + 1, kept.id))
    own.start(port)
    assert old.request("GET", "/v1/status").status_code == 401
    assert kept.request("GET", "/v1/status").status_code == 200


def test_a_device_is_seen_until_the_end_of_its_stream(own: GatewayProcess) -> None:
    browser = Browser(own)

    def seen_at() -> int:
        (row,) = own.get("/v1/devices")["devices"]
        return int(row["seen_at"])

    with browser.socket() as socket:
        socket.recv(PATIENCE)
        came = seen_at()
        time.sleep(0.05)
        left = int(time.time() * 1000)
    until(lambda: seen_at() >= left > came, "its leaving is known")


def test_what_was_deleted_is_in_no_shared_page(own: GatewayProcess) -> None:
    browser = Browser(own)
    session = own.create()
    own.send(session, "say a secret word")
    own.until_rest(session)

    def replay() -> str:
        with browser.socket("/v1/events?after=0") as socket:
            return str(socket.recv(PATIENCE))

    assert "a secret word" in replay()
    own.command("DELETE", f"/v1/sessions/{session}")
    assert "a secret word" not in replay()


def test_a_socket_that_left_before_it_was_refused_is_no_error(own: GatewayProcess) -> None:
    headers = [("Host", f"127.0.0.1:{own.port}"), ("Authorization", f"Bearer {own.token}"), *UPGRADE]
    for _ in range(30):
        with connect(own.port) as socket:
            socket.sendall(head("GET", "/v1/sessions/0123456789abcdef/events", headers))
    for _ in range(20):
        browser = Browser(own)
        given = [("Host", f"127.0.0.1:{own.port}"), ("Cookie", browser.cookie), ("Origin", own.url), *UPGRADE]
        with connect(own.port) as socket:
            socket.sendall(head("GET", "/v1/events", given))
            assert b"101" in socket.recv(100)
            socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        own.command("DELETE", f"/v1/devices/{browser.id}")
    assert own.get("/healthz")["status"] == "ok"
    log = (own.home / "logs" / "gateway.log").read_text()
    assert "Traceback" not in log and "Exception" not in log, log


def test_a_browser_restarts_the_gateway_only_as_it_is(gateway: GatewayProcess) -> None:
    """Variables such as PATH decide what the gateway runs; whoever has the token of the home may set them."""
    browser = Browser(gateway)
    refused = browser.request("POST", "/v1/restart", json={"env": {"PATH": "/tmp/evil"}})
    assert refused.status_code == 400 and "cannot change the environment" in refused.text
    for name, value in (("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")):
        strange = gateway.request("POST", "/v1/restart", json={"env": {name: value}})
        assert strange.status_code == 400 and "env: names and values" in strange.text
    assert gateway.get("/v1/status")["pid"] == gateway.pid
