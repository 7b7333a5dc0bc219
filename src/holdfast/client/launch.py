"""Starting a gateway in the background, and ending one.

Several callers may start at once: one of the gateways gets the lock of the home, the others leave
with `conflict`, and all callers use the one that answers. A gateway that is about to end still holds
the lock; when it is gone starting is tried again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

from holdfast.client.errors import ApiError, GatewayNotRunning, StartFailed, StopFailed
from holdfast.client.http import Address, HttpClient, alive
from holdfast.config import ConfigError, Home, in_task, sendable_environment

START_SECONDS = 60.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.02
LOG_TAIL = 4_000
FULL_BYTES = 1 << 20
"""A disk with less free space than this is full."""
COULD_NOT_START = "the gateway could not start:"
START_FAILED = "The gateway could not be started:"
USAGE_EXIT = 2
CONFLICT_EXIT = 5
"""The exit codes of a gateway that cannot read its settings, and of one whose home another gateway has."""


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """A gateway that answers, and whether it was started just now."""

    address: Address
    is_new: bool


@dataclass(frozen=True, slots=True)
class Restarted:
    """A gateway before and after a restart; there may have been none before."""

    old: Address | None
    new: Address


def ensure(client: HttpClient) -> RunningGateway:
    """The gateway that runs, or a new one in the background."""
    if (healthy := client.healthy()) is not None:
        return RunningGateway(healthy, is_new=False)
    if (address := client.address()) is not None and _owned(client.home):
        client.must_answer(address)  # it holds the home: another one could not start
    return start(client)


def start(client: HttpClient, *, port: int | None = None, seconds: float = START_SECONDS) -> RunningGateway:
    """Start a gateway in the background and wait until one answers."""
    if in_task():
        raise StartFailed(
            "No gateway is running, and a command in a task does not start one: it would end with the task.",
            hint="Start it in a terminal with `holdfast restart`.",
        )
    umask = _prepare(client.home)
    log_from = _log_size(client.home)
    child = _spawn(client.home, port, umask)
    try:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            address = client.healthy()
            if address is not None:
                return RunningGateway(address, is_new=address.pid == child.pid)
            code = child.poll()
            if code == CONFLICT_EXIT and not _owned(client.home):
                child = _spawn(client.home, port, umask)
            elif code not in (None, CONFLICT_EXIT):
                raise _failed(client.home, log_from, f"it ended with exit code {code}", exit_code=code)
            time.sleep(POLL_SECONDS)
        if _owner(client.home) == child.pid:
            raise StartFailed(
                f"The gateway (pid {child.pid}) is still starting after {seconds:.0f} s.",
                hint="The first start of a new version migrates the data; `holdfast logs` shows the progress.",
            )
        raise _failed(client.home, log_from, f"it did not answer within {seconds:.0f} s")
    finally:
        if _owner(client.home) == child.pid:
            threading.Thread(target=child.wait, daemon=True).start()  # while we live, it does not become a zombie
        else:
            _end(child)  # another gateway was quicker, or this one has not even begun: nobody will use it


def stop(client: HttpClient) -> Address:
    """Ask the gateway to end and wait until its process is gone."""
    address = client.address()
    pid = int(client.command("POST", "/v1/shutdown")["pid"])
    deadline = time.monotonic() + STOP_SECONDS
    while alive(pid):
        if time.monotonic() > deadline:
            raise StopFailed(
                f"The gateway (pid {pid}) has not ended within {STOP_SECONDS:.0f} s.",
                hint=f"`holdfast logs` may say why. `kill -9 {pid}` ends it; nothing stored is lost.",
            )
        time.sleep(POLL_SECONDS)
    assert address is not None
    return Address(pid, address.host, address.port)


def restart(client: HttpClient) -> Restarted:
    """Restart the gateway in the same process; start one if none is running."""
    old = client.address()
    if old is None:
        return Restarted(None, start(client).address)
    before, log_from = client.started_at(), _log_size(client.home)
    try:
        client.command("POST", "/v1/restart", {"env": {} if in_task() else sendable_environment()})
    except GatewayNotRunning:  # what a killed one left behind
        return Restarted(None, start(client).address)
    except ApiError as error:
        if error.status not in (404, 405):
            raise
        stop(client)  # an older gateway cannot restart itself
        return Restarted(old, start(client, port=old.port).address)
    deadline = time.monotonic() + STOP_SECONDS + START_SECONDS
    while time.monotonic() < deadline:
        if not alive(old.pid):
            raise _failed(client.home, log_from, "it ended and did not start again")
        if client.started_at() not in (0, before) and (new := client.healthy()) is not None:
            return Restarted(old, new)
        time.sleep(POLL_SECONDS)
    raise StartFailed(
        f"The gateway (pid {old.pid}) is still restarting after {STOP_SECONDS + START_SECONDS:.0f} s.",
        hint="`holdfast logs` shows the progress.",
    )


def _prepare(home: Home) -> int:
    try:
        return home.prepare()
    except ConfigError as error:
        raise StartFailed(str(error), exit_code=USAGE_EXIT) from error


def _spawn(home: Home, port: int | None, umask: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "holdfast", "--home", str(home.path), "serve", "--background"]
    if port is not None:
        command += ["--port", str(port)]
    with home.log.open("ab") as log:
        return subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home.path,
            start_new_session=True,
            umask=umask,
        )


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _owned(home: Home) -> bool:
    """Whether the process that took the lock last is still there: about to answer, or about to end."""
    return _owner(home) is not None


def _owner(home: Home) -> int | None:
    """The process that took the lock of the home last, if it is still there."""
    try:
        pid = int(home.lock.read_text("ascii"))
    except (OSError, ValueError):
        return None
    return pid if alive(pid) else None


def _log_size(home: Home) -> int:
    try:
        return home.log.stat().st_size
    except FileNotFoundError:
        return 0


def _failed(home: Home, log_from: int, what: str, *, exit_code: int | None = None) -> StartFailed:
    """The reason, in the words that the gateway left in its log."""
    with home.log.open("rb") as log:
        log.seek(max(log_from, _log_size(home) - LOG_TAIL))
        lines = log.read().decode("utf-8", "replace").splitlines()
    more = "See `holdfast doctor` and `holdfast logs`."
    for line in reversed(lines):
        message, hint = _entry(line)
        if message.startswith(COULD_NOT_START):
            return StartFailed(message.replace(COULD_NOT_START, START_FAILED), hint=hint or more, exit_code=exit_code)
    said = [line.strip().removeprefix("error: ") for line in lines if line.strip() and not _entry(line)[0]]
    if not said and _disk_is_full(home):  # then the log has no space for the reason
        full = f"{START_FAILED} {what}, and the disk that holds {home.path} is full."
        return StartFailed(full, hint="Free some space, then try again; nothing was lost.", exit_code=exit_code)
    reason = "\n".join(said[-6:]) or f"{what}."
    return StartFailed(f"{START_FAILED} {reason}", hint=more, exit_code=exit_code)


def _disk_is_full(home: Home) -> bool:
    disk = os.statvfs(home.path)
    return disk.f_bavail * disk.f_frsize < FULL_BYTES


def _entry(line: str) -> tuple[str, str]:
    """The message and the hint of a line of the log; nothing where it is plain text."""
    try:
        entry = json.loads(line)
        return str(entry["message"]), str(entry.get("hint", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", ""
