"""A keeper that is killed at its N-th system call, for every N: the points are found, not listed.

The script wraps each function of `os`, `fcntl` and `_signal` that the keeper's source names, counts the
calls in one of the three processes (standby, keeper, command before its exec), and is killed before the
N-th of them: alone, or together with its parent. It runs in place of the keeper, whose source is unchanged. Which point
it is stands in a file beside the commands, so that one keeper server can fork the keepers of many points.
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
exec(compile(open({keeper!r}).read().replace("__main__", "nobody"), {keeper!r}, "exec"))
role, count, kill, getpid, getppid, mark, run = "standby", 0, os.kill, os.getpid, os.getppid, os.open, main
BELOW = {{"standby": "keeper", "keeper": "command"}}
def wrapped(name, real, victim, at, company, hit):
    def call(*args, **more):
        global role, count
        count += 1
        if role == victim and count == at:
            mark(hit, os.O_CREAT | os.O_WRONLY, 0o600)
            if company != "alone":
                kill(getppid(), 9)
            kill(getpid(), 9)
        result = real(*args, **more)
        if name == "fork" and result == 0:
            role, count = BELOW[role], 0
        return result
    return call
def main(directory):
    place = os.path.dirname(os.path.dirname(directory))
    victim, at, company = open(place + "/point").read().split("|")
    for module, name in {calls!r}:
        owner = {{"os": os, "os.path": os.path, "fcntl": fcntl, "_signal": _signal}}[module]
        setattr(owner, name, wrapped(name, getattr(owner, name), victim, int(at), company, place + "/hit"))
    run(directory)
if __name__ == "__main__":
    main(sys.argv[1])
"""


def mortal_keeper(directory: Path) -> Path:
    """A keeper that dies at the point of each rig."""
    calls = sorted({found for found in CALL.findall(KEEPER.read_text()) if found[1] not in NOT_CALLS})
    path = directory / "mortal_keeper.py"
    path.write_text(SCRIPT.format(calls=calls, keeper=str(KEEPER)))
    return path


@dataclass(frozen=True, slots=True)
class Point:
    role: Role
    at: int
    company: Company = "alone"

    def set(self, place: Path) -> None:
        """The keepers of the rig in this place die here."""
        (place / "point").write_text(f"{self.role}|{self.at}|{self.company}")
