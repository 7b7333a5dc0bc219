"""Whether a session is still open in the agent's own terminal, as far as can be known from outside.

Claude Code has a file for each of its processes, with the session that it works in. Codex has the file of a session
open, or its background server has: that may go on when the terminal is closed, so then its processes are looked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.processes.identity import Identity, Process, alive, table
from holdfast.runtime.external.adoption.files import SessionFile, agent_home
from holdfast.runtime.external.command.items import json_object, number, text

REGISTER = "sessions"
REGISTER_BYTES = 65_536
BACKGROUND = b"app-server"
"""An argument of the command line of a background server."""


def used_by(agent: str, file: SessionFile, cwd: str) -> str:
    """Return which process has the session open, in words; empty if none is known."""
    register = agent_home(agent) / REGISTER
    if agent == "claude" and register.is_dir():
        return _registered(register, file.id)
    path = os.path.realpath(file.path)
    holders = [one for one in _processes() if _has_open(one.pid, path)]
    for one in holders:
        if BACKGROUND not in _command_line(one.pid):
            return f"process {one.pid} ({one.name}) has its file open"
    if holders or agent == "claude":
        return _at_work_in(agent, cwd)
    return ""


def _registered(register: Path, session: str) -> str:
    for entry in register.glob("*.json"):
        try:
            if entry.is_symlink() or entry.stat().st_size > REGISTER_BYTES:
                continue
            known = json_object(entry.read_bytes())
        except OSError:  # its process has just ended
            continue
        if text(known, "sessionId") != session or not text(known, "procStart").isdigit():
            continue
        pid = number(known, "pid")
        if alive(Identity(pid, int(text(known, "procStart")))):
            return f"process {pid} (claude) works in it"
    return ""


def _at_work_in(agent: str, cwd: str) -> str:
    """Return a process of the agent in the session's directory: most likely it has the session open."""
    for one in _processes():
        if one.name == agent and BACKGROUND not in _command_line(one.pid) and _directory(one.pid) == cwd:
            return f"process {one.pid} ({one.name}) runs in its directory"
    return ""


def _processes() -> Iterator[Process]:
    """Yield all other living processes; the files of those of other users cannot be seen."""
    for one in table().values():
        if not one.dead and one.pid != os.getpid():
            yield one


def _has_open(pid: int, path: str) -> bool:
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            return any(_target(entry.path) == path for entry in entries)
    except OSError:  # of another user, or it has ended
        return False


def _target(link: str) -> str:
    try:
        return str(Path(link).readlink())
    except OSError:
        return ""


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _directory(pid: int) -> str:
    return _target(f"/proc/{pid}/cwd")
