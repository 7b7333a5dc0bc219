"""The keeper server: what its keepers inherit, what happens when it fails, and that it ends with the gateway."""

from __future__ import annotations

import asyncio
import fcntl
import os
import py_compile
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from holdfast.domain.errors import Unavailable
from holdfast.processes.command import NeverStarted, Running
from holdfast.processes.identity import alive, process, send
from holdfast.processes.launch import KEEPER, KeeperLauncher
from tests.eventually import eventually
from tests.forked_lives import ForkedLives
from tests.processes.late_keeper import stopped_process
from tests.processes.rig import ENV, PYTHON, DirectLauncher, ProcessRig, code, fresh, with_server

WAITED_FOR = sum(1 << number - 1 for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGIO))
"""A keeper blocks all signals; those that it waits for at the moment are not shown as blocked."""
ONCE = "echo ran >> ran; exit 7"
FAULTY = """
import os, signal, sys
exec(compile(open({keeper!r}).read().replace("__main__", "nobody"), {keeper!r}, "exec"))
fork, run, mark = os.fork, main, {mark!r}
def stop(pid):
    os.kill(pid, signal.SIGSTOP)
def kill(pid):
    os.kill(pid, signal.SIGKILL)
def refuse():
    raise BlockingIOError(11, "Resource temporarily unavailable")
def faulty_fork():
    if os.path.exists(mark):
        return fork()
    open(mark, "w").close()
    {before}
    pid = fork()
    if pid:
        {after}
    return pid
def main(directory):
    {keeper_does}
    os.fork = fork
    run(directory)
os.fork = faulty_fork
if __name__ == "__main__":
    main(sys.argv[1])
"""
"""Runs in place of the keeper; the first fork of the server that loads it goes wrong."""
REFUSING = """
import os
allowed, fork = {allowed}, os.fork
def limited_fork():
    global allowed
    if not allowed:
        raise BlockingIOError(11, "Resource temporarily unavailable")
    allowed -= 1
    return fork()
exec(compile(open({keeper!r}).read().replace("os.fork()", "limited_fork()"), {keeper!r}, "exec"))
"""


async def faulty(
    place: Path, *, before: str = "pass", after: str = "pass", keeper_does: str = "pass"
) -> KeeperLauncher:
    """A launcher whose first server fails once, before or after its fork."""
    mark, script = str(place / "failed"), place / "faulty_keeper.py"
    script.write_text(FAULTY.format(keeper=str(KEEPER), mark=mark, before=before, after=after, keeper_does=keeper_does))
    return await with_server(KeeperLauncher(script))


@pytest_asyncio.fixture
async def forked(tmp_path: Path) -> AsyncIterator[ProcessRig]:
    """A rig with a server of its own."""
    (tmp_path / "forked").mkdir()
    rig = ProcessRig(tmp_path / "forked", launcher=await with_server(KeeperLauncher()))
    yield rig
    await rig.close()
    rig.launcher.close()


def server_of(rig: ProcessRig, id: str) -> int:
    """The parent of its keepers."""
    found = process(rig.claim(id).standby.pid)
    assert found is not None
    return found.parent


async def ended(pid: int) -> None:
    async def dead() -> bool:
        found = process(pid)
        return found is None or found.dead

    await eventually(dead)


def surroundings(pid: int) -> dict[str, object]:
    """What a process has from whoever started it."""
    root = Path(f"/proc/{pid}")
    fields = [line.split(":\t") for line in (root / "status").read_text().splitlines()]
    kept = ("Umask", "SigIgn", "SigCgt", "Uid", "Gid", "CapEff", "NoNewPrivs", "Threads")
    session, group = os.getsid(pid), os.getpgid(pid)
    return {
        **{name: value for name, *value in fields if name in kept},
        "blocked": int(next(value for name, value in fields if name == "SigBlk"), 16) | WAITED_FOR,
        "environment": (root / "environ").read_bytes(),
        "descriptors": sorted(_opened(path) for path in (root / "fd").iterdir()),
        "directory": _named(str((root / "cwd").readlink())),
        "program": (root / "exe").readlink(),
        "limits": (root / "limits").read_text(),
        "oom": (root / "oom_score_adj").read_text(),
        "niceness": os.getpriority(os.PRIO_PROCESS, pid),
        "leads": (session == pid, group == session),
    }


def descriptors(pid: int) -> list[int]:
    return sorted(int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir())


def _opened(path: Path) -> tuple[int, str, str]:
    flags = (Path(f"/proc/{path.parts[2]}/fdinfo") / path.name).read_text()
    flags = next(line for line in flags.splitlines() if line.startswith("flags:"))
    return int(path.name), _named(str(path.readlink())), flags


def _named(path: str) -> str:
    """Without the id of the command, and the number of a pipe."""
    return path if path == os.devnull else path.split("[", maxsplit=1)[0].rsplit("/", 1)[-1][-4:] if "." in path else ""


async def test_a_forked_keeper_has_what_a_started_one_has(tmp_path: Path) -> None:
    """Whatever this process was started with, and whatever the server has served before."""
    leaked = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(leaked, True)
    found = []
    for launcher in (DirectLauncher(), await with_server(KeeperLauncher())):
        place = tmp_path / type(launcher).__name__
        place.mkdir()
        rig = ProcessRig(place, launcher=launcher)
        for _ in range(3):
            await rig.run("true", env=ENV | {"EARLIER": "command"}, umask=0o077)
        running = await rig.start(("sh", "-c", "echo ready; read go"), env={"PATH": ENV["PATH"]}, stdin="pipe")
        async for _ in rig.supervisor.follow(running.id, 0):
            break  # it has loaded its libraries, for which it opens files
        claim = rig.claim(running.id)
        facts = [surroundings(one.pid) for one in (claim.command, claim.keeper, claim.standby)]
        facts[0].pop("environment")  # holds the id
        assert str(rig.spool(running.id).path) in Path(f"/proc/{claim.keeper.pid}/cmdline").read_text()
        assert descriptors(claim.command.pid) == [0, 1, 2]
        found.append(facts)
        if not isinstance(launcher, DirectLauncher):
            assert descriptors(server_of(rig, running.id)) == [0, 1, 2, 3], "the fourth is the socket"
        await rig.close()
        launcher.close()
    os.close(leaked)
    assert found[0] == found[1]


async def test_a_command_sees_only_its_own_environment_and_three_descriptors(forked: ProcessRig) -> None:
    await forked.run("true", env=ENV | {"EARLIER": "secret"})
    script = "import os; print(*[n for n in range(99) if os.path.exists(f'/dev/fd/{n}')], 'EARLIER' in os.environ)"
    _, output = await forked.run((PYTHON, "-I", "-c", script))
    assert output == b"0 1 2 False\n"
    running = await forked.start(("sleep", "100"))
    assert b"keeper_server" in Path(f"/proc/{server_of(forked, running.id)}/cmdline").read_bytes()


async def test_keepers_leave_no_zombie_and_survive_their_server(forked: ProcessRig) -> None:
    ended = await forked.start("true")
    running = await forked.start(("sleep", "100"))
    await forked.supervisor.wait(ended.id)
    await forked.keepers_gone(ended.id)
    assert process(forked.claim(ended.id).standby.pid) is None
    server = server_of(forked, running.id)
    os.kill(server, signal.SIGKILL)
    os.kill(running.pid, signal.SIGTERM)
    outcome = await forked.supervisor.wait(running.id)
    assert not isinstance(outcome, NeverStarted) and forked.spool(running.id).end() == outcome


async def test_promise_3_the_server_is_killed_and_the_next_command_starts_without_it(forked: ProcessRig) -> None:
    server = server_of(forked, (await forked.start(("sleep", "100"))).id)
    os.kill(server, signal.SIGKILL)
    for _ in range(2):
        outcome, _ = await forked.run(ONCE)
        assert code(outcome) == 7
    assert (forked.cwd / "ran").read_text() == "ran\n" * 2
    await with_server(forked.launcher)
    assert server_of(forked, (await forked.start(("sleep", "100"))).id) not in (server, os.getpid())


@pytest.mark.parametrize(
    "fault",
    [
        {"before": "kill(os.getpid())"},
        {"before": "stop(os.getpid())"},
        {"before": "refuse()"},
        {"after": "kill(os.getpid())"},
        {"after": "stop(os.getpid())"},
    ],
    ids=lambda fault: " ".join(f"{when} the fork {what.split('(')[0]}" for when, what in fault.items()),
)
async def test_promise_3_a_server_that_fails_in_the_middle_of_a_start(tmp_path: Path, fault: dict[str, str]) -> None:
    """Several starts are under way at the time; each command runs once, and the next is forked again."""
    launcher = await faulty(tmp_path, **fault)
    rig = ProcessRig(tmp_path, launcher=launcher)
    outcomes = await asyncio.gather(*(rig.run(ONCE) for _ in range(3)))
    assert [code(outcome) for outcome, _ in outcomes] == [7] * 3
    assert (tmp_path / "failed").exists()
    assert (tmp_path / "ran").read_text() == "ran\n" * 3
    await with_server(launcher)
    assert server_of(rig, (await rig.start(("sleep", "100"))).id) != os.getpid()
    await rig.close()
    launcher.close()


async def test_promise_3_a_keeper_that_was_forked_late_loses(tmp_path: Path) -> None:
    """Its server was killed before it could answer, so that the command was started without it."""
    late = "if __name__ == 'keeper' and not os.path.exists(mark + '.once'): os.mkdir(mark + '.once'); stop(os.getpid())"
    launcher = await faulty(tmp_path, after="kill(os.getpid())", keeper_does=late)
    rig = ProcessRig(tmp_path, launcher=launcher)
    starting = asyncio.create_task(rig.run(ONCE))
    async with stopped_process(str(tmp_path)) as keeper:
        assert code((await starting)[0]) == 7
        send(keeper, signal.SIGCONT)
        await ended(keeper.pid)
    assert (tmp_path / "ran").read_text() == "ran\n"
    await rig.close()
    launcher.close()


@pytest.mark.parametrize("way", ["forked", "direct"])
@pytest.mark.parametrize("allowed", [0, 1], ids=["of the keeper", "of the command"])
async def test_promise_7_a_fork_that_is_refused_is_no_exit_code(tmp_path: Path, way: str, allowed: int) -> None:
    script = tmp_path / "refused_keeper.py"
    script.write_text(REFUSING.format(allowed=allowed, keeper=str(KEEPER)))
    launcher = await with_server(KeeperLauncher(script)) if way == "forked" else DirectLauncher(script)
    rig = ProcessRig(tmp_path, launcher=launcher)
    command = rig.command(ONCE)
    with pytest.raises(Unavailable, match="Resource temporarily unavailable"):
        await rig.supervisor.start(command)
    found = await rig.supervisor.attach(command.id)
    assert isinstance(found, NeverStarted) and found.cancelled
    assert not (tmp_path / "ran").exists()
    await rig.close()
    launcher.close()


async def test_bytecode_of_another_version_of_the_keeper_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Python stores no bytecode, that of an earlier version may be left."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    script = tmp_path / "some_keeper.py"
    script.write_text("raise SystemExit('an old version')")
    old = Path(py_compile.compile(str(script), doraise=True) or "")
    stored = old.read_bytes()
    script.write_text(KEEPER.read_text())
    rig = ProcessRig(tmp_path, launcher=DirectLauncher(script))
    for expected in (str(old), str(script)):
        running = await rig.start(("sleep", "100"))
        words = Path(f"/proc/{rig.claim(running.id).keeper.pid}/cmdline").read_text().split("\0")
        assert words[3] == expected, "the script was compiled anew"
        old.write_bytes(stored)
    await rig.close()


async def test_promise_3_a_killed_gateway_leaves_no_server_and_no_lock(rig: ProcessRig) -> None:
    """Its command and the keepers live on, and hold nothing that belongs to it."""
    id = fresh()
    with ForkedLives("tests.processes.lives") as forked:
        life = forked.live("lock", root=str(rig.root), cwd=str(rig.cwd), id=id, kill_on="locked")
    assert life.killed
    server = int(life.said("server")[0][0])
    await ended(server)
    with (rig.cwd / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert isinstance(await rig.supervisor.attach(id), Running)
    assert all(map(alive, rig.claim(id).keepers))


async def test_a_closed_launcher_leaves_nobody(tmp_path: Path) -> None:
    launcher = KeeperLauncher()
    rig = ProcessRig(tmp_path, launcher=launcher)
    await rig.run("true")
    await with_server(launcher)
    server = server_of(rig, (await rig.start(("sleep", "100"))).id)
    await rig.close()
    launcher.close()
    assert process(server) is None
