"""Three nodes on one PostgreSQL: appends and claims of real processes beside raw commits of the same server, how soon a
client of one node sees what another wrote, and how soon the work of a node that is killed goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.postgres_server import PostgresServer, make_server
from websockets.sync.client import ClientConnection, connect

from benchmarks.children import Child, gateway, python, wait_until_ready
from benchmarks.measure import Figure, Plan, alternate
from benchmarks.peers import Peer, install
from benchmarks.postgres import DISK, raw_commits
from benchmarks.report import Goal, Line, Report
from holdfast.config import Home
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.migrate import prepare
from holdfast.timings import USUAL

AREA = "cluster"
NODES = 3
SECONDS = 0.25
"""Of a burst: long enough that three processes begin together."""
APPENDS = {16: Goal("≥", 1.2), 64: Goal("≥", 1.7)}
CLAIMERS = 16
CARDS = 4_000
"""Ready before each burst; no burst takes so many."""
MESSAGES = 300
PATIENCE_SECONDS = 120.0
PEERS = (
    Peer("procrastinate", "procrastinate==3.10.0", "JobManager.fetch_job", also=("psycopg[binary]",)),
    Peer("dbos", "dbos==3.3.0", "start_queued_workflows"),
)


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area. The server syncs to the disk, as it is installed."""
    server = make_server({}, DISK)
    try:
        await _stores(plan, report, server)
        if plan.peers:
            for peer in PEERS:
                await _peer(plan, report, peer, server)
        await asyncio.to_thread(_gateways, plan, report, server)
    finally:
        server.remove()


async def _stores(plan: Plan, report: Report, server: PostgresServer) -> None:
    server.sql("CREATE DATABASE nodes TEMPLATE template0 ENCODING 'UTF8'")
    url = server.url("nodes")
    await prepare(Database(url))
    with ExitStack() as closing:
        nodes = [
            closing.enter_context(python("cluster_node", url, f"node{number}", str(plan.seed + number)))
            for number in range(NODES)
        ]
        raw = closing.enter_context(raw_commits(url))
        _ask_all(nodes, sessions=max(APPENDS))
        for writers, goal in APPENDS.items():
            pairs = await alternate(_together(nodes, "append", writers), raw, plan.rounds(20))
            report.add(pairs.line(AREA, f"appends of {NODES} nodes x {writers} conversations", "/s", goal))
        pairs = await alternate(_together(nodes, "claim", CLAIMERS), raw, plan.rounds(20))
        report.add(pairs.line(AREA, f"claims of sessions, {NODES} nodes x {CLAIMERS}", "/s", Goal("≥", 5)))
        pairs = await alternate(_together(nodes, "start", CLAIMERS, cards=CARDS), raw, plan.rounds(8))
        report.add(pairs.line(AREA, f"claims of cards (the run alone), {NODES} nodes x {CLAIMERS}", "/s"))


def _ask_all(children: list[Child], **message: object) -> list[dict[str, float]]:
    for child in children:
        child.tell(**message)
    return [child.answer() for child in children]


def _together(children: list[Child], what: str, writers: int, *, cards: int = 0) -> Figure:
    """How often a second all of them do it."""

    async def burst() -> float:
        if cards:
            _ask_all(children, cards=cards)
        answers = _ask_all(children, do=what, writers=writers, seconds=SECONDS)
        return sum(answer["count"] for answer in answers) / max(answer["seconds"] for answer in answers)

    return burst


async def _peer(plan: Plan, report: Report, peer: Peer, server: PostgresServer) -> None:
    """Claims of jobs by as many workers, beside the same raw commits."""
    if (problem := install(peer)) is not None:
        report.note(f"{peer.package} is left out: {problem}")
        return
    server.sql(f"CREATE DATABASE {peer.name} TEMPLATE template0 ENCODING 'UTF8'")
    url = server.url(peer.name)
    script = str(Path(__file__).with_name("queue_peer.py"))
    rounds = plan.rounds(12)
    try:
        with ExitStack() as closing:
            started = [str(peer.interpreter), script, peer.name, url]
            workers = [closing.enter_context(Child(*started)) for _ in range(NODES)]
            raw = closing.enter_context(raw_commits(url))
            workers[0].ask(fill=NODES * 600 * (rounds + 1))
            pairs = await alternate(_together(workers, "claim", CLAIMERS), raw, rounds)
    except ChildProcessError as error:
        report.note(f"{peer.package} is left out: {error}")
        return
    report.add(pairs.line(AREA, f"{peer.package} {peer.append}, {NODES} processes x {CLAIMERS}", "/s"))


# --- whole gateways -------------------------------------------------------------------------------


class Follower:
    """A client that follows a session."""

    def __init__(self, stream: ClientConnection) -> None:
        self._stream = stream
        self._received: list[dict[str, Any]] = []

    def receive(self, kind: str, input: str = "") -> None:
        """Return when an event of this kind has arrived, and one about this input if it is given."""
        while True:
            while not self._received:
                frame = json.loads(self._stream.recv(PATIENCE_SECONDS))
                self._received = [record["event"] for record in frame.get("events") or []]
            event = self._received.pop(0)
            if event["kind"] == kind and input in ("", event.get("input")):
                return


@dataclass(frozen=True, slots=True)
class Gateway:
    """One that runs, and a client of it."""

    pid: int
    port: int
    token: str

    def post(self, path: str, body: dict[str, object]) -> dict[str, str]:
        """Send a command; its answer."""
        key = {"Authorization": f"Bearer {self.token}", "Idempotency-Key": secrets.token_hex(12)}
        answer = httpx.post(f"http://127.0.0.1:{self.port}{path}", json=body, headers=key, timeout=PATIENCE_SECONDS)
        answer.raise_for_status()
        return dict(answer.json())

    @contextlib.contextmanager
    def follow(self, session: str) -> Iterator[Follower]:
        """Follow a session from its beginning."""
        url = f"ws://127.0.0.1:{self.port}/v1/sessions/{session}/events?after=0"
        headers = {"Authorization": f"Bearer {self.token}"}
        with connect(url, additional_headers=headers, proxy=None, open_timeout=PATIENCE_SECONDS) as stream:
            yield Follower(stream)


@contextlib.contextmanager
def _started(directory: Path, name: str, url: str) -> Iterator[Gateway]:
    home = Home(directory / name)
    home.prepare()
    home.config.write_text(f'[store]\nurl = "{url}"\n[node]\nname = "{name}"\n[cluster]\nshared = ["{directory}"]\n')
    with gateway(home) as (pid, port):
        yield Gateway(pid, port, wait_until_ready(home))


def _gateways(plan: Plan, report: Report, server: PostgresServer) -> None:
    server.sql("CREATE DATABASE gateways TEMPLATE template0 ENCODING 'UTF8'")
    directory = plan.scratch / "cluster"
    directory.mkdir()
    with _started(directory, "b", server.url("gateways")) as other:
        with _started(directory, "a", server.url("gateways")) as node:
            _seen_elsewhere(plan, report, node, other, directory)
        _takeover(plan, report, server, other, directory)


def _seen_elsewhere(plan: Plan, report: Report, node: Gateway, other: Gateway, directory: Path) -> None:
    """From the acknowledgement of one node to the frame at a client of the other."""
    begun = node.post("/v1/sessions", {"text": "say hello", "cwd": str(directory), "profile": "demo"})
    session, late = begun["session"], list[float]()
    with other.follow(session) as stream:
        for _ in range(MESSAGES // 3 if plan.quick else MESSAGES):
            input = node.post(f"/v1/sessions/{session}/messages", {"text": "say hello"})["input"]
            acknowledged = time.perf_counter()
            stream.receive("InputReceived", input)
            late.append(max(0.0, time.perf_counter() - acknowledged))
            stream.receive("TurnFinished")
    middle, worst = statistics.median(late) * 1000, statistics.quantiles(late, n=100)[98] * 1000
    shown = f"p50 {middle:.1f} ms, p99 {worst:.1f} ms"
    name = "a message to one node is seen by a client of another"
    report.add(Line(AREA, name, shown, "its acknowledgement", worst, " ms", Goal("≤", 25, " ms")))


def _takeover(plan: Plan, report: Report, server: PostgresServer, other: Gateway, directory: Path) -> None:
    """From the kill of a node to the event by which another goes on with its turn."""
    took: list[float] = []
    for number in range(3 if plan.quick else 6):
        with _started(directory, f"victim{number}", server.url("gateways")) as victim:
            body = {"text": "hang", "cwd": str(directory), "profile": "demo"}
            session = victim.post("/v1/sessions", {**body})["session"]
            with other.follow(session) as stream:
                stream.receive("ModelRequested")
                os.kill(victim.pid, signal.SIGKILL)
                killed = time.perf_counter()
                stream.receive("TurnResumed")
                took.append(time.perf_counter() - killed)
    lease, middle = USUAL.store.lease, statistics.median(took)
    shown = f"{middle:.1f} s ({min(took):.1f} … {max(took):.1f})"
    report.add(Line(AREA, "takeover after kill -9", shown, f"{lease:g} s, a lease", middle / lease, goal=Goal("≤", 1)))
