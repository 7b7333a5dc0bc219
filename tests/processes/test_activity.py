"""The activity of a command: the rule by itself, and how it changes. Real cases: activity_cases.py."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace

import pytest

from holdfast.processes.activity import (
    Activity,
    ActivityMeter,
    ActivityWord,
    Detail,
    NotYet,
    Sample,
    _Track,
    classify,
    over_window,
)
from holdfast.timings import ProcessTimings
from tests.eventually import eventually
from tests.processes.rig import PYTHON, ProcessRig

TIMINGS = ProcessTimings(window=2.0, recent=0.5)
"""A minute that is over in two seconds."""
ENDLESS = ProcessTimings(window=3600.0, recent=600.0)
"""One that is not over in a test, however slow the machine is."""
LONGER = ProcessTimings(window=20.0, recent=3.0)
"""One in which a slow machine can look three times."""
QUIET = Sample(at=100.0, processes=frozenset({1}), cpu=5.0, io=1000, output=10)


@pytest.mark.parametrize(
    ("change", "word", "detail"),
    [
        ({}, "idle", ""),
        ({"cpu": 5.09}, "idle", ""),
        ({"cpu": 5.11}, "working", ""),
        ({"io": 1000 + 70_000 * 5}, "working", ""),
        ({"output": 11}, "working", ""),
        ({"output": 0}, "working", ""),
        ({"processes": frozenset({1, 2})}, "idle", ""),
        ({"written": 3_000 * 5}, "idle", ""),
        ({"written": 5_000 * 5}, "working", ""),
        ({"peers": 1}, "waiting", "on net"),
        ({"on_input": True}, "waiting", "on input"),
        ({"on_input": True, "cpu": 6.0}, "working", ""),
        ({"ports": (80,)}, "serving", "not in use"),
        ({"ports": (80,), "cpu": 5.15}, "serving", "not in use"),
        ({"ports": (80,), "output": 1000}, "serving", "not in use"),
        ({"ports": (80,), "uses": 1}, "serving", "in use"),
        ({"ports": (80,), "cpu": 5.25}, "serving", "in use"),
        ({"unix_listeners": 1}, "serving", "not in use"),
        ({"unix_listeners": 1, "peers": 1}, "serving", "not in use"),
        ({"unix_listeners": 1, "uses": 1}, "serving", "in use"),
        ({"unix_listeners": 1, "cpu": 5.11}, "working", ""),
    ],
    ids=str,
)
def test_the_rule(change: dict[str, object], word: ActivityWord, detail: Detail) -> None:
    activity = classify(QUIET, replace(QUIET, at=105.0, **change))  # type: ignore[arg-type]
    assert (activity.word, activity.detail) == (word, detail)


def test_the_evidence_is_what_was_seen() -> None:
    now = replace(QUIET, at=102.0, cpu=6.0, io=5000, output=30, ports=(8080,), uses=2, peers=1)
    seen = classify(QUIET, now).evidence
    assert (seen.seconds, seen.cpu, seen.io, seen.output, seen.ports, seen.uses) == (2.0, 0.5, 2000.0, 20, (8080,), 2)


def test_a_sample_without_elapsed_time_does_not_divide_by_zero() -> None:
    assert classify(QUIET, QUIET).word == "idle"


SERVER = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
held = [server.accept() for _ in range(int(sys.argv[1]))]
time.sleep(1000)
"""
CLIENT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).recv(1)"


async def port_of(rig: ProcessRig, id: str) -> int:
    async def said() -> bytes:
        return rig.supervisor.output(id).read(0, 100).data

    return int(await eventually(said))


async def settled(rig: ProcessRig, id: str, word: ActivityWord, detail: Detail = "") -> Activity:
    """Look until it is said; what is still starting up is working, for a while."""

    async def look() -> Activity | None:
        await asyncio.sleep(0.2)
        found = (await rig.supervisor.activities())[id]
        return found if isinstance(found, Activity) and (found.word, found.detail) == (word, detail) else None

    found = await eventually(look)
    assert found is not None
    return found


async def test_promise_7_what_did_nothing_so_far_is_unknown_until_it_was_watched_for_long_enough(
    rig: ProcessRig,
) -> None:
    await rig.restart(ENDLESS)
    running = await rig.start(("sleep", "100"))
    found = (await rig.supervisor.activities())[running.id]
    assert isinstance(found, NotYet)
    assert found.sample.processes == {running.pid}
    supervisor = await rig.restart(ENDLESS)
    await supervisor.attach(running.id)
    looks = [(await supervisor.activities())[running.id] for _ in range(3)]
    assert all(isinstance(one, NotYet) for one in looks), "a minute of watching begins anew"
    await (await rig.restart()).attach(running.id)
    await settled(rig, running.id, "idle")


def at(seconds: float, **change: object) -> Sample:
    return replace(QUIET, at=100.0 + seconds, **change)  # type: ignore[arg-type]


def test_a_command_that_prints_now_and_then_is_at_work_between_two_lines() -> None:
    meter, track = ActivityMeter(), _Track([replace(QUIET, cpu=0.0, io=0, output=0)], from_start=True)
    words = [meter._judge(track, at(second, output=10 + int(second) // 20)) for second in range(5, 300, 5)]
    assert {one.word for one in words if isinstance(one, Activity)} == {"working"}


def test_idle_is_said_of_a_whole_minute_and_counted_look_by_look() -> None:
    meter, track = ActivityMeter(), _Track([QUIET], from_start=False)
    early = [meter._judge(track, at(second)) for second in (0.5, 5, 30, 59)]
    assert all(isinstance(one, NotYet) for one in early)
    found = [meter._judge(track, at(second)) for second in (61, 62, 70, 80)]
    assert [(one.word, one.quiet_looks) for one in found if isinstance(one, Activity)] == [
        ("idle", 1),
        ("idle", 1),
        ("idle", 2),
        ("idle", 3),
    ]
    assert isinstance(found[-1], Activity) and found[-1].quiet_seconds == 80
    spoke = meter._judge(track, at(90, output=11))
    assert isinstance(spoke, Activity) and (spoke.word, spoke.quiet_looks) == ("working", 0)


def test_a_visit_within_the_last_minute_is_use() -> None:
    samples = [at(0), at(20, ports=(80,), uses=1), at(40, ports=(80,))]
    found = over_window(samples, at(60, ports=(80,)), whole=True)
    assert isinstance(found, Activity) and (found.word, found.detail) == ("serving", "in use")


async def test_serving_and_waiting_on_net(rig: ProcessRig) -> None:
    server = await rig.start((PYTHON, "-c", SERVER, "2"))
    port = await port_of(rig, server.id)
    assert (await settled(rig, server.id, "serving", "not in use")).evidence.ports == (port,)
    client = await rig.start((PYTHON, "-c", CLIENT, str(port)))
    await settled(rig, client.id, "waiting", "on net")
    await settled(rig, server.id, "serving", "in use")
    with socket.create_connection(("127.0.0.1", port)):
        assert (await settled(rig, server.id, "serving", "in use")).evidence.uses >= 2


async def test_a_burst_is_not_forgotten_at_the_next_look(rig: ProcessRig) -> None:
    await rig.restart(LONGER)
    running = await rig.start("read go; echo went; read go", stdin="pipe")
    await settled(rig, running.id, "waiting", "on input")
    await rig.supervisor.write(running.id, b"go\n")

    async def went() -> bool:
        return rig.everything(running.id) == b"went\n"

    await eventually(went)
    looks = [(await rig.supervisor.activities())[running.id] for _ in range(3)]
    assert [one.word for one in looks if isinstance(one, Activity)] == ["working"] * 3
    await settled(rig, running.id, "waiting", "on input")
