"""Starting a keeper: the order goes through memory, never through a file, and is whole before anybody reads it."""

from __future__ import annotations

import marshal
import os
import secrets
import sys
from pathlib import Path

from holdfast.domain.errors import Conflict
from holdfast.processes.command import TASK_VARIABLE, Command
from holdfast.processes.keeper import DIRECTORY
from holdfast.processes.open_files import INHERITED
from holdfast.processes.spool import Spool

KEEPER = Path(__file__).with_name("keeper.py")
REPORT_BYTES = 65_536


def launch(spool: Spool, command: Command, keeper: Path) -> tuple[int, str]:
    """Start it; its pid and its complaint. Returns when the command has begun or will not: the report is closed."""
    directory = _directory(spool)
    order = _order(command)
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as report:
        try:
            pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", str(keeper), str(spool.path)],
                {},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, file, at)
                    for file, at in ((order, 0), (writer, 1), (writer, 2), (directory, DIRECTORY))
                ],
                setsid=True,
            )
        finally:
            os.close(directory)
            os.close(order)
            os.close(writer)
        complaint = report.read(REPORT_BYTES)
    return pid, complaint.decode("utf-8", "replace").strip()


def _directory(spool: Spool) -> int:
    """A new directory, opened. One of a start that was cancelled before anything ran is put away."""
    try:
        spool.path.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if not spool.cancel():
            raise Conflict(f"The task {spool.id} was started before.") from None
        spool.remove()
        spool.path.mkdir(mode=0o700, parents=True)
    return os.open(spool.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def own_keepers() -> set[int]:
    """The keepers that are children of this process already: after a restart it is the same process."""
    try:
        pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return {int(pid) for pid in pids if os.fsencode(KEEPER) in Path(f"/proc/{pid}/cmdline").read_bytes()}
    except OSError:  # one ended meanwhile, or this kernel has no such list
        return set()


def reap(children: set[int]) -> None:
    """Take leave of the keepers that are through; whoever is not our child is somebody else's to reap."""
    for pid in list(children):
        try:
            gone, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            gone = pid
        if gone:
            children.discard(pid)


def _order(command: Command) -> int:
    task = f"{command.id}.{secrets.token_hex(8)}"
    order = {
        "argv": command.argv,
        "cwd": str(command.cwd),
        "env": {**command.env, TASK_VARIABLE: task},
        "head": command.head,
        "open_files": INHERITED,
        "sandbox": list(command.sandbox),
        "stderr": command.stderr,
        "stdin": command.stdin,
        "tail": command.tail if command.tail is not None else -1,
        "task": task,
        "umask": command.umask,
    }
    memory = os.memfd_create("order")
    with os.fdopen(memory, "wb", closefd=False) as file:
        marshal.dump(order, file)
    os.lseek(memory, 0, os.SEEK_SET)
    return memory
