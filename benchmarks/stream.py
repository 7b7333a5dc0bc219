"""Replay to one client beside a raw socket, and a burst to a hundred beside a frame for each event."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import islice

from benchmarks.children import Child, python, upgrade, wait_until_healthy
from benchmarks.measure import Figure, Plan, alternate
from benchmarks.read import pages
from benchmarks.report import Goal, Report
from benchmarks.workload import Workload, fill, opened, rest
from holdfast.config import Home

AREA = "stream"
EVENTS = 10_000
CLIENTS = 100
BURST = 200


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    home, work = Home(plan.scratch / "stream"), Workload(plan.seed)
    told, followed = work.id(8), work.id(8)
    async with opened(home.path) as store:
        stream = await fill(store, told, islice(work.turns(tools=True), EVENTS - 1))
        lines = await pages(store, stream)
        await fill(store, followed, ())
        await rest(store)
    assert len(lines) == EVENTS
    (plan.scratch / "lines").write_bytes(b"".join(line + b"\n" for line in lines))
    with ExitStack() as stack:
        ours = stack.enter_context(python("servers", "gateway", str(home.path)))
        port = int(ours.greeting["port"])
        wait_until_healthy(port)
        token = home.token.read_text().strip()
        await _replay(plan, report, port, upgrade(port, token, f"/v1/sessions/{told}/events?after=0"))
        plain = stack.enter_context(python("servers", "plain"))
        follow = upgrade(port, token, f"/v1/sessions/{followed}/events?after=1")
        await _fan_out(plan, report, ours, follow, plain, f"session/{followed}")


async def _replay(plan: Plan, report: Report, port: int, request: str) -> None:
    with python("reader") as reader, python("servers", "raw", str(plan.scratch / "lines")) as raw:
        last = (plan.scratch / "lines").read_bytes()[-100:].decode()

        def reading(port: int, request: str, until: str) -> Figure:
            async def seconds() -> float:
                return float(reader.ask(replay=port, request=request, until=until)["seconds"])

            return seconds

        ours = reading(port, request, f'"cursor":{EVENTS}}}')
        goal = Goal("≤", 1.5)
        for name, path, wanted in (("one write an event", "/each", goal), ("one write in all", "/bulk", None)):
            limit = reading(int(raw.greeting["port"]), f"GET {path}\r\n\r\n", last)
            pairs = await alternate(ours, limit, plan.rounds(30))
            report.add(pairs.line(AREA, f"replay of {EVENTS:,}, beside a raw socket, {name}", "s", wanted))


async def _fan_out(plan: Plan, report: Report, ours: Child, follow: str, plain: Child, stream: str) -> None:
    with python("reader") as of_ours, python("reader") as of_plain:
        of_ours.ask(open=CLIENTS, port=ours.greeting["port"], request=follow)
        of_plain.ask(open=CLIENTS, port=plain.greeting["port"], request=upgrade(int(plain.greeting["port"]), "", "/"))
        pairs = await alternate(
            bursts(ours, of_ours, stream, begins_at=1), bursts(plain, of_plain, stream, begins_at=0), plan.rounds(12)
        )
        name = f"burst of {BURST} events to {CLIENTS} clients, beside uvicorn with a frame for each"
        report.add(pairs.line(AREA, name, "deliveries/s", Goal("≥", 3)))


def bursts(server: Child, readers: Child, stream: str, *, begins_at: int) -> Figure:
    """Deliveries a second, from the word to the server until the last client has the last event."""
    version = begins_at

    async def burst() -> float:
        nonlocal version
        version += BURST
        readers.tell(**{"await": f'"cursor":{version}}}'})
        started = float(server.ask(burst=BURST, stream=stream)["at"])
        return BURST * CLIENTS / (float(readers.answer()["at"]) - started)

    return burst
