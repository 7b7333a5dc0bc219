"""A keeper that is killed at its N-th system call, for every N: the points are found, not listed.

The script wraps each function of `os`, `fcntl` and `_signal` that the keeper's source names, counts the
calls in one of the three processes (standby, keeper, command before its exec), and is killed before the
N-th of them: alone, or together with its parent. It runs in place of the keeper, whose source is unchanged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast.processes.launch import KEEPER

Role = Literal["standby", "keeper", "command"]
Company = Literal["alone", "with its parent"]
CALL = re.compile(r"\b(os|os\.path|fcntl|_signal)\.([a-z_]+)\(")
NOT_CALLS = {"valid_signals", "signal"}
"""One changes nothing, the other is called 62 times in a row for 62 signals."""

SCRIPT = """
import _signal, fcntl, os, sys
role, count, kill, getpid, getppid, mark = "standby", 0, os.kill, os.getpid, os.getppid, os.open
BELOW = {{"standby": "keeper", "keeper": "command"}}
def wrapped(name, real):
    def call(*args, **more):
        global role, count
        count += 1
        if role == {role!r} and count == {at}:
            mark({hit!r}, os.O_CREAT | os.O_WRONLY, 0o600)
            if {company!r} != "alone":
                kill(getppid(), 9)
            kill(getpid(), 9)
        result = real(*args, **more)
        if name == "fork" and result == 0:
            role, count = BELOW[role], 0
        return result
    return call
for module, name in {calls!r}:
    place = {{"os": os, "os.path": os.path, "fcntl": fcntl, "_signal": _signal}}[module]
    setattr(place, name, wrapped(name, getattr(place, name)))
exec(compile(open({keeper!r}).read(), {keeper!r}, "exec"))
"""


@dataclass(frozen=True, slots=True)
class Point:
    role: Role
    at: int
    company: Company = "alone"

    def script(self, directory: Path) -> Path:
        """A keeper that dies here."""
        source = KEEPER.read_text()
        calls = sorted({found for found in CALL.findall(source) if found[1] not in NOT_CALLS})
        path = directory / "mortal_keeper.py"
        path.write_text(
            SCRIPT.format(
                role=self.role,
                at=self.at,
                company=self.company,
                hit=str(directory / "hit"),
                calls=calls,
                keeper=str(KEEPER),
            )
        )
        return path
