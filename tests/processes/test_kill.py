"""Killing a whole process tree, whatever it does against that, and no other process."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.processes.command import Ended
from holdfast.processes.identity import Process, process, table
from holdfast.timings import USUAL
from tests.eventually import PATIENCE, eventually
from tests.processes.rig import PYTHON, ProcessRig


def named(mark: str) -> list[Process]:
    """Everybody with this word in the command line."""
    found = []
    for pid, one in table().items():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in words and not one.dead and pid != os.getpid():
            found.append(one)
    return found


async def ready(rig: ProcessRig, id: str, words: int = 1) -> None:
    async def said() -> bool:
        return rig.supervisor.output(id).read(0, 1 << 20).data.count(b"ready") >= words

    await eventually(said)


async def test_asking_is_enough(rig: ProcessRig) -> None:
    running = await rig.start("trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.01; done")
    await ready(rig, running.id)
    report = await rig.supervisor.kill(running.id)
    assert report.asked >= 1
    assert (report.forced, report.survivors) == (0, ())
    outcome = await rig.supervisor.wait(running.id)
    assert isinstance(outcome, Ended)
    assert outcome.code == 9
    assert rig.everything(running.id).endswith(b"bye\n")


async def test_what_has_ended_is_not_waited_for(rig: ProcessRig) -> None:
    running = await rig.start("trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done")
    await ready(rig, running.id)
    async with asyncio.timeout(PATIENCE):
        report = await rig.supervisor.kill(running.id, grace=PATIENCE * 10)
    assert (report.forced, report.survivors) == (0, ())


async def test_ignoring_term(rig: ProcessRig) -> None:
    running = await rig.start("trap '' TERM; echo ready; while :; do sleep 0.01; done")
    await ready(rig, running.id)
    report = await rig.supervisor.kill(running.id, grace=0.1)
    assert report.forced >= 1
    assert report.survivors == ()
    outcome = await rig.supervisor.wait(running.id)
    assert isinstance(outcome, Ended)
    assert outcome.signal == signal.SIGKILL


@pytest.mark.parametrize("grace", [0, 5])
async def test_a_stopped_command(rig: ProcessRig, grace: float) -> None:
    running = await rig.start(("sleep", "100"))
    os.kill(running.pid, signal.SIGSTOP)

    async def stopped() -> bool:
        one = process(running.pid)
        return one is not None and one.state == "T"

    await eventually(stopped)
    assert (await rig.supervisor.kill(running.id, grace=grace)).survivors == ()
    outcome = await rig.supervisor.wait(running.id)
    assert isinstance(outcome, Ended)
    assert outcome.signal in ((signal.SIGTERM,) if grace else (signal.SIGTERM, signal.SIGKILL))


TREE = """
import os, sys, time
mark, count = sys.argv[1:]
words = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done", mark]
def leaf(clean):
    os.setsid()
    if os.fork():
        os._exit(0)
    if clean:
        null = os.open("/dev/null", os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.execve("/bin/sh", words, {"PATH": os.environ["PATH"]})
    os.execv("/bin/sh", words)
for number in range(int(count)):
    if os.fork() == 0:
        leaf(number % 2)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
print("ready", flush=True)
time.sleep(1000)
"""
"""Daemons, each in a session of its own with a sleeping child; every second one without environment and output."""


@pytest.mark.parametrize("dead", ["nobody", "keeper", "standby"])
async def test_promise_3_no_daemon_gets_away(rig: ProcessRig, dead: str) -> None:
    mark = f"mark-{rig.cwd.name}-{os.getpid()}"
    running = await rig.start((PYTHON, "-c", TREE, mark, "100"))
    await ready(rig, running.id)
    assert len(named(mark)) >= 100
    if dead != "nobody":
        rig.kill_keepers(running.id, dead)
        await rig.keepers_gone(running.id, dead)
    report = await rig.supervisor.kill(running.id, grace=0.05)
    assert report.survivors == ()
    assert report.forced >= 100
    assert named(mark) == []
    assert isinstance(await rig.supervisor.wait(running.id), Ended)


async def test_without_any_keeper_the_mark_finds_daemons(rig: ProcessRig) -> None:
    mark = f"mark-{rig.cwd.name}-{os.getpid()}"
    daemon = f"setsid sh -c 'while :; do sleep 1; done' {mark} & echo ready;"
    bare = f"env -i setsid /bin/sh -c 'while :; do /bin/sleep 1; done' {mark} & echo ready;"
    running = await rig.start(f"{daemon} {bare} sleep 1000")
    await ready(rig, running.id, 2)
    rig.kill_keepers(running.id)
    await rig.keepers_gone(running.id)
    report = await rig.supervisor.kill(running.id, grace=0)
    assert report.survivors == ()
    assert named(mark) == []


STORM = """
import os, time
keeper = os.getppid()  # it becomes the parent of all of them: they can be counted
end = time.monotonic() + 300
while time.monotonic() < end:
    if len(open(f"/proc/{keeper}/task/{keeper}/children").read().split()) < 60 and os.fork() == 0:
        if os.fork():
            os._exit(0)
        os.setsid()
    time.sleep(0.001)
"""


async def test_a_fork_storm(rig: ProcessRig) -> None:
    mark = f"mark-{rig.cwd.name}-{os.getpid()}"
    running = await rig.start((PYTHON, "-c", STORM, mark))

    async def storm() -> bool:
        return len(named(mark)) > 25

    await eventually(storm)
    report = await rig.supervisor.kill(running.id, grace=0)
    assert report.survivors == ()
    assert named(mark) == []


async def test_what_could_not_be_stopped_in_time_is_killed_all_the_same(rig: ProcessRig) -> None:
    """On a busy machine a look at all processes may take a second, and some have been stopped by then."""
    await rig.restart(replace(USUAL.processes, freeze=0.0, force=0.0))
    running = await rig.start("sleep 1000 & sleep 1000")
    report = await rig.supervisor.kill(running.id, grace=0)
    assert report.forced >= 2
    assert isinstance(await rig.supervisor.wait(running.id), Ended)


async def test_neighbours_are_left_alone(rig: ProcessRig) -> None:
    first = await rig.start(("sleep", "100"))
    second = await rig.start(("sleep", "100"))
    await rig.supervisor.kill(first.id, grace=0)
    assert second.id in rig.supervisor.live()
    assert process(second.pid) is not None


async def test_killing_what_has_ended(rig: ProcessRig) -> None:
    running = await rig.start("true")
    await rig.supervisor.wait(running.id)
    report = await rig.supervisor.kill(running.id)
    assert (report.asked, report.forced, report.survivors) == (0, 0, ())
