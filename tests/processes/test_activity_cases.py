"""All real cases at once under one supervisor. The activity is the same at every check."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from holdfast.processes.activity import Activity, NotYet
from holdfast.timings import ProcessTimings
from tests.eventually import eventually
from tests.processes.activity_cases import BLIND, CASES, Case
from tests.processes.rig import ENV, ProcessRig

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Seen = dict[str, list[Activity]]
APART = 0.5
LOOKS = 1200
SETTLE_SECONDS = 20.0
"""A command may still start up when it is looked at first; afterwards it has to stay what it is."""


async def _accept_and_say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while await reader.read(4096):
            pass
    writer.close()


async def _drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while True:
            writer.write(b"x" * 4096)
            await writer.drain()
            await asyncio.sleep(0.1)
    writer.close()


@asynccontextmanager
async def _server(answer: Answer) -> AsyncIterator[int]:
    """A server that is gone, with all that it answers, when it is left."""
    answering = set[asyncio.Task[None]]()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answering.add(asyncio.ensure_future(answer(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*answering)  # the commands are gone by now, and with them their ends


async def _steady(address: str) -> None:
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address))
        writer.write(b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await reader.read()
        writer.close()
        await writer.wait_closed()
        await asyncio.sleep(0.05)


async def _silent(address: str) -> None:
    if address.isdigit():
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address))
    else:  # by way of its directory, since the path of a socket has 107 bytes at most
        door = Path(address)
        directory = os.open(door.parent, os.O_PATH)
        reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{directory}/{door.name}")
        os.close(directory)
    await reader.read()
    writer.close()


async def _visit(rig: ProcessRig, case: Case, id: str) -> None:
    async def address() -> str:  # a line may come in pieces
        found = re.search(r"(?:port|door) (\S+)\s", rig.everything(id).decode())
        return found[1] if found is not None else ""

    there = await eventually(address)
    with suppress(ConnectionError):  # the end of the visit is the end of the server
        await (_steady if case.visitor == "steady" else _silent)(there)


def said(activity: Activity | NotYet) -> str:
    if isinstance(activity, NotYet):
        return "not yet"
    return f"{activity.word}, {activity.detail}" if activity.detail else activity.word


async def watch(rig: ProcessRig, *, looks: int) -> Seen:
    """Start everything, let it settle, and look at all of it."""
    seen: Seen = {case.name: [] for case in CASES}
    async with started(rig, CASES) as ids:

        async def settled() -> bool:
            await asyncio.sleep(APART)
            found = await rig.supervisor.activities()
            return all(said(found[ids[case.name]]) == case.said for case in CASES)

        with suppress(TimeoutError):  # what did not settle shows below
            await eventually(settled, within=SETTLE_SECONDS)
        for _ in range(looks):
            await asyncio.sleep(APART)
            found = await rig.supervisor.activities()
            for case in CASES:
                activity = found[ids[case.name]]
                assert isinstance(activity, Activity)
                seen[case.name].append(activity)
    return seen


@asynccontextmanager
async def started(rig: ProcessRig, cases: Sequence[Case]) -> AsyncIterator[dict[str, str]]:
    """The cases with their visitors, and the ids of their commands; at the end all of them are gone."""
    async with _server(_accept_and_say_nothing) as silent, _server(_drip) as drip:
        env = {**ENV, "SILENT": str(silent), "DRIP": str(drip)}
        starts = (rig.start(case.run, env=env, stdin=case.stdin) for case in cases)
        running = await asyncio.gather(*starts)
        ids = {case.name: one.id for case, one in zip(cases, running, strict=True)}

        async def ready() -> bool:
            return all(case.ready.encode() in rig.everything(ids[case.name]) for case in cases)

        visits = list[asyncio.Task[None]]()
        try:
            await eventually(ready)
            visits += [
                asyncio.create_task(_visit(rig, case, ids[case.name])) for case in cases if case.visitor != "nobody"
            ]
            yield ids
        finally:  # or else the servers would wait for their clients for ever
            await asyncio.gather(*(rig.supervisor.kill(id, grace=0) for id in ids.values()))
            await asyncio.gather(*visits)


def table(seen: Seen) -> str:
    rows = [("case", "expected", "found", "evidence", "")]
    for case in CASES:
        counts = Counter(map(said, seen[case.name]))
        found = " · ".join(word if len(counts) == 1 else f"{word} ({n})" for word, n in counts.most_common())
        last = seen[case.name][-1].evidence
        marks = ["blind"] * (case in BLIND) + ["limit: " + case.because] * bool(case.limit)
        evidence = (
            f"cpu {last.cpu:.1%}, io {last.io:,.0f} B/s, written {last.written:,.0f} B/s, output {last.output} B, "
        )
        evidence += (
            f"ports {len(last.ports)}, unix listeners {last.unix_listeners}, uses {last.uses}, peers {last.peers}"
        )
        rows.append((case.name, case.expected, found, evidence, ", ".join(marks)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join("  ".join([*(t.ljust(w) for t, w in zip(row, widths, strict=False)), row[4]]) for row in rows)


IN_A_ROW = 3
TIMINGS = ProcessTimings(window=5.0, recent=1.0)
"""A minute that is over in five seconds."""


async def test_the_activity_is_what_a_person_would_say(rig: ProcessRig) -> None:
    """Three looks in a row, and a case is over. On a busy machine a command may get no processor for seconds, does
    nothing and is called idle: then it takes longer. That no word flickers is seen on a quiet one.
    """
    right = dict.fromkeys((case.name for case in CASES), 0)
    shown: dict[str, str] = {}
    burning = [case for case in CASES if case.said == "working"]  # first: they would starve the others
    for cases in (burning, [case for case in CASES if case not in burning]):
        async with started(rig, cases) as ids:
            for _ in range(LOOKS):
                await asyncio.sleep(APART)
                found = await rig.supervisor.activities()
                for case in [case for case in cases if right[case.name] < IN_A_ROW]:
                    shown[case.name] = said(found[ids[case.name]])
                    right[case.name] = right[case.name] + 1 if shown[case.name] == case.said else 0
                    if right[case.name] == IN_A_ROW:
                        await rig.supervisor.kill(ids[case.name], grace=0)
                if all(right[case.name] == IN_A_ROW for case in cases):
                    break
    wrong = {case.name: (case.said, shown[case.name], case.why) for case in CASES if right[case.name] < IN_A_ROW}
    assert not wrong


@pytest.mark.proof
@pytest.mark.alone
async def test_activity_does_not_flicker(rig: ProcessRig) -> None:
    seen = await watch(rig, looks=60)
    shown = f"60 looks, {APART} s apart\n{table(seen)}"
    print(f"\n{shown}")
    wrong = {case.name: case.why for case in CASES if {said(one) for one in seen[case.name]} != {case.said}}
    assert not wrong, f"{wrong}\n{shown}"
