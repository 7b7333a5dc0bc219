"""A gateway that cannot start says why and what to do, and leaves everything as it was."""

from __future__ import annotations

import hashlib
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.gateway import GatewayProcess, until
from tests.eventually import PATIENCE


@pytest.fixture
def gateway(tmp_path: Path) -> GatewayProcess:
    """Not started; nobody has been in its home."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return GatewayProcess(home)


def refused(gateway: GatewayProcess, port: int = 0) -> tuple[int, str]:
    """The exit code and the words of a gateway that does not come up."""
    before = gateway.stderr if gateway.stderr_file.exists() else ""
    process = gateway.spawn(port)
    code = process.wait(PATIENCE)
    return code, gateway.stderr.removeprefix(before)


def is_clear(words: str) -> None:
    """An error and a hint, no traceback."""
    assert words.startswith("error: ")
    assert "Traceback" not in words


def test_wrong_settings(gateway: GatewayProcess) -> None:
    (gateway.home / "config.toml").write_text("[gateway]\nprot = 1\n")
    code, words = refused(gateway)
    is_clear(words)
    assert code == 2
    assert f"{gateway.home}/config.toml:2: gateway.prot is not a setting" in words
    assert not (gateway.home / "holdfast.db").exists()


def test_open_home(gateway: GatewayProcess) -> None:
    gateway.home.chmod(0o777)
    code, words = refused(gateway)
    is_clear(words)
    assert code == 2
    assert f"chmod 700 {gateway.home}" in words


def test_newer_database(gateway: GatewayProcess) -> None:
    database = gateway.home / "holdfast.db"
    with closing(sqlite3.connect(database)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE future (x)")
        db.execute("PRAGMA user_version=9999")
    code, words = refused(gateway)
    is_clear(words)
    assert code == 1
    assert "written by a newer Holdfast (schema 9999" in words
    assert "Upgrade Holdfast; nothing was changed." in words
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("future",)]


@pytest.mark.parametrize("size", [100, 5000])
def test_garbage_instead_of_a_database(gateway: GatewayProcess, size: int) -> None:
    database = gateway.home / "holdfast.db"
    database.write_bytes(b"this is no database" * size)
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    code, words = refused(gateway)
    is_clear(words)
    assert code == 1
    assert "is damaged: file is not a database" in words
    assert "restore a backup" in words
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before


def test_garbage_instead_of_a_search_index_is_rebuilt(gateway: GatewayProcess) -> None:
    (gateway.home / "search.db").write_bytes(b"this is no database" * 1000)
    with gateway.start():
        session = gateway.create("say needle in a haystack")
        until(
            lambda: [hit["session"] for hit in gateway.get("/v1/search", q="needle")["hits"]] == [session] * 2,
            "the search finds it",
        )


def test_port_taken(gateway: GatewayProcess) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, words = refused(gateway, port)
    is_clear(words)
    assert code == 1
    assert f"port {port}" in words.lower() and "in use" in words
    assert "--port" in words
    assert not (gateway.home / "run" / "gateway.json").exists()


def test_port_bound_by_somebody_who_does_not_listen_yet(gateway: GatewayProcess) -> None:
    """Two gateways that start at the same moment must not both believe that the port is theirs."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        with gateway.start(other.getsockname()[1]), pytest.raises(OSError, match="in use"):
            other.listen()


def test_lock_that_is_a_link(gateway: GatewayProcess) -> None:
    run = gateway.home / "run"
    run.mkdir(mode=0o700)
    (run / "lock").symlink_to("/dev/null")
    code, words = refused(gateway)
    is_clear(words)
    assert code == 1
    assert str(run / "lock") in words
    assert "--port" not in words


def test_a_second_gateway_is_refused_and_names_the_first(gateway: GatewayProcess) -> None:
    with gateway.start():
        code, words = refused(gateway)
        is_clear(words)
        assert code == 5
        assert f"(pid {gateway.pid}) is already running in {gateway.home}" in words
        assert "holdfast shutdown" in words
        assert gateway.address["pid"] == gateway.pid, "it did not touch the address of the first"
        assert gateway.get("/v1/status")["pid"] == gateway.pid


def test_what_a_killed_gateway_left_behind_does_not_matter(gateway: GatewayProcess) -> None:
    gateway.start()
    first = gateway.address
    gateway.kill9()
    assert gateway.address == first, "a killed gateway cannot take its address away"
    with gateway.start():
        assert gateway.address["pid"] == gateway.pid != first["pid"]
        assert gateway.get("/v1/status")["pid"] == gateway.pid
        code = gateway.terminate()
    assert code == 0
    assert gateway.address == {}, "one that says goodbye does"


def test_after_a_crash_the_port_is_the_same_if_it_is_free(gateway: GatewayProcess) -> None:
    first = gateway.start().port
    gateway.kill9()
    assert gateway.start().port == first
    gateway.kill9()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", first))
        other.listen()
        assert gateway.start().port != first
        gateway.kill9()
    for nonsense in ("", "{", '{"url": "http://127.0.0.1:99999"}', '{"url": "http://127.0.0.1:0"}'):
        (gateway.home / "run" / "gateway.json").write_text(nonsense)
        gateway.start()
        gateway.close()


def test_without_a_wish_any_port_will_do(gateway: GatewayProcess) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        gateway.default_port = other.getsockname()[1]
        with gateway.start(port=None):
            assert gateway.port != other.getsockname()[1]
            assert gateway.get("/v1/status")["url"] == gateway.url
