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
import time
from dataclasses import dataclass

from holdfast.cli.errors import CONFLICT, FAILED, UNREACHABLE, USAGE, CliError, NotRunning, Refused
from holdfast.cli.gateway import Address, Gateway, alive
from holdfast.config import ConfigError, Home, in_task, sendable_environment

START_SECONDS = 20.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.02
LOG_TAIL = 4_000
FULL_BYTES = 1 << 20
"""A disk with less free space than this is full."""
COULD_NOT_START = "the gateway could not start:"
START_FAILED = "The gateway could not be started:"


@dataclass(frozen=True, slots=True)
class Restarted:
    """A gateway before and after a restart; there may have been none before."""

    old: Address | None
    new: Address


def ensure(gateway: Gateway) -> Address:
    """The gateway that runs, or a new one in the background."""
    if (healthy := gateway.healthy()) is not None:
        return healthy
    if (address := gateway.address()) is not None and _owned(gateway.home):
        gateway.must_answer(address)  # it holds the home: another one could not start
    return start(gateway)


def start(gateway: Gateway, *, port: int | None = None) -> Address:
    """Start a gateway in the background and wait until one answers."""
    if in_task():
        raise CliError(
            "No gateway is running, and a command of a task does not start one: it would end with the task.",
            hint="start it from outside with `holdfast serve`.",
            code=UNREACHABLE,
        )
    umask = _prepare(gateway.home)
    log_from = _log_size(gateway.home)
    child = _spawn(gateway.home, port, umask)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        address = gateway.healthy()
        if address is not None:
            _told(address, child)
            return address
        code = child.poll()
        if code == CONFLICT and not _owned(gateway.home):
            child = _spawn(gateway.home, port, umask)
        elif code not in (None, CONFLICT):
            worth = code if code in (FAILED, USAGE) else UNREACHABLE
            raise _failed(gateway.home, log_from, f"it ended with exit code {code}", worth)
        time.sleep(POLL_SECONDS)
    raise _failed(gateway.home, log_from, f"it did not answer within {START_SECONDS:.0f} s", UNREACHABLE)


def stop(gateway: Gateway) -> Address:
    """Ask the gateway to end and wait until its process is gone."""
    address = gateway.address()
    pid = int(gateway.command("POST", "/v1/shutdown")["pid"])
    deadline = time.monotonic() + STOP_SECONDS
    while alive(pid):
        if time.monotonic() > deadline:
            raise CliError(
                f"The gateway (pid {pid}) has not ended within {STOP_SECONDS:.0f} s.",
                hint=f"`holdfast logs` may say why; `kill -9 {pid}` ends it, and nothing stored is lost.",
            )
        time.sleep(POLL_SECONDS)
    assert address is not None
    return Address(pid, address.host, address.port)


def restart(gateway: Gateway) -> Restarted:
    """Let the gateway start itself again as the same process; start one where none runs."""
    old = gateway.address()
    if old is None:
        return Restarted(None, start(gateway))
    before, log_from = gateway.started_at(), _log_size(gateway.home)
    try:
        gateway.command("POST", "/v1/restart", {"env": {} if in_task() else sendable_environment()})
    except NotRunning:  # what a killed one left behind
        return Restarted(None, start(gateway))
    except Refused as error:
        if error.status not in (404, 405):
            raise
        stop(gateway)  # an older gateway cannot restart itself
        return Restarted(old, start(gateway, port=old.port))
    deadline = time.monotonic() + STOP_SECONDS + START_SECONDS
    while time.monotonic() < deadline:
        if not alive(old.pid):
            raise _failed(gateway.home, log_from, "it ended and did not start again", UNREACHABLE)
        if gateway.started_at() not in (0, before) and (new := gateway.healthy()) is not None:
            return Restarted(old, new)
        time.sleep(POLL_SECONDS)
    raise _failed(gateway.home, log_from, f"pid {old.pid} does not answer again", UNREACHABLE)


def _prepare(home: Home) -> int:
    try:
        return home.prepare()
    except ConfigError as error:
        raise CliError(str(error), code=USAGE) from error


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


def _told(address: Address, child: subprocess.Popen[bytes]) -> None:
    """Say that we started it; or, if somebody else was quicker, leave nobody behind who waits for the lock."""
    if address.pid == child.pid:
        print(f"started a gateway (pid {address.pid})", file=sys.stderr)
    else:
        child.terminate()
        child.wait()


def _owned(home: Home) -> bool:
    """Whether the process that took the lock last is still there: about to answer, or about to end."""
    try:
        return alive(int(home.lock.read_text("ascii")))
    except (OSError, ValueError):
        return False


def _log_size(home: Home) -> int:
    try:
        return home.log.stat().st_size
    except FileNotFoundError:
        return 0


def _failed(home: Home, log_from: int, what: str, code: int) -> CliError:
    """The reason, in the words that the gateway left in its log."""
    with home.log.open("rb") as log:
        log.seek(max(log_from, _log_size(home) - LOG_TAIL))
        lines = log.read().decode("utf-8", "replace").splitlines()
    more = "`holdfast logs` and `holdfast doctor` say more."
    for line in reversed(lines):
        message, hint = _entry(line)
        if message.startswith(COULD_NOT_START):
            return CliError(message.replace(COULD_NOT_START, START_FAILED), hint=hint or more, code=code)
    said = [line.strip().removeprefix("error: ") for line in lines if line.strip() and not _entry(line)[0]]
    if not said and _disk_is_full(home):  # then the log has no space for the reason
        full = f"{START_FAILED} {what}, and the disk that holds {home.path} is full."
        return CliError(full, hint="free some space, then try again; nothing was lost.", code=code)
    reason = "\n".join(said[-6:]) or f"{what}."
    return CliError(f"{START_FAILED} {reason}", hint=more, code=code)


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
