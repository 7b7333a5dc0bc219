"""Whole turns: a message, the model, a `read` call, the model, the answer; beside runtimes that also store every step.

The model is scripted and answers at once, so that what is measured is the runtime. Ours is a real gateway: each
conversation has a client of its own on plain sockets that sends its messages over HTTP and follows its session. The
peers run in their own process, without HTTP and without followers. Each burst has new conversations, so that none
grows long; their first turn does not count.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from benchmarks.children import Child, gateway, python, wait_until_ready
from benchmarks.measure import Figure, Pairs, Plan, RawLog, alternate, in_turn
from benchmarks.peers import Peer, install, loading
from benchmarks.report import Goal, Line, Report
from benchmarks.turn_client import NOTES
from benchmarks.workload import Workload, fill, opened, rest
from holdfast.config import Home

AREA = "turns"
SECONDS, QUICK_SECONDS = 1.0, 0.6
"""How long a burst is."""
ROUNDS = 7
FEW, LONG, LONGER = 10, 2_000, 10_000
"""Earlier messages in a conversation."""
GROWTH_GOALS = {LONG: 1.2, LONGER: 1.5}
"""How many times as long a turn may take with so many earlier messages as with ten."""
PEER_GOALS = {1: 1.5, 16: 3.0, 64: 4.0}
"""Conversations at once, and how many times as fast as the best peer ours should be."""
CPU_GOAL = Goal("≤", 2.5, " ms")
RAW_SECONDS = 0.05
SETTINGS = "[compaction]\nthreshold = 0\n"
"""A long conversation stays as long as it is."""
LANGGRAPH = Peer("langgraph", "langgraph==1.2.20", also=("langgraph-checkpoint-sqlite==3.1.2",))
DBOS = Peer("dbos", "dbos==3.3.0")
Sessions = list[tuple[str, int]]
"""Conversations of one burst: their ids, and how many events each has."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A home with conversations."""

    home: Home
    bursts: list[Sessions]


@dataclass(frozen=True, slots=True)
class Burst:
    """What one burst of turns took."""

    turns: int
    seconds: float
    gateway_cpu: float
    client_cpu: float
    commits: int


@dataclass(slots=True)
class Gateway:
    """A running gateway and the clients of its conversations."""

    pid: int
    port: int
    token: str
    client: Child
    waiting: list[Sessions]
    """Conversations of later bursts; the last ones are used for all bursts that follow."""
    taken: list[Burst] = field(default_factory=list)

    def burst(self, seconds: float) -> Burst:
        """Turns of the next conversations for so long."""
        self.begin()
        return self.measure(seconds)

    def begin(self) -> None:
        """Connect the clients of the next conversations, and let each make its first turn."""
        if self.waiting:
            sessions = self.waiting.pop(0)
            self.client.ask(sessions=sessions, port=self.port, token=self.token, pid=self.pid)
            self.client.ask(seconds=0)

    def measure(self, seconds: float) -> Burst:
        """Turns of the conversations that have begun, for so long."""
        before = self.commits()
        answer = self.client.ask(seconds=seconds)
        self.taken.append(Burst(**answer, commits=self.commits() - before))
        return self.taken[-1]

    def commits(self) -> int:
        """Transactions so far, from the gateway's own figures."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        with contextlib.closing(connection):
            connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {self.token}"})
            found = re.search(rb"^holdfast_commits_total (\S+)", connection.getresponse().read(), re.MULTILINE)
        assert found is not None
        return round(float(found[1]))

    def a_turn(self, what: str) -> float:
        """Commits, or milliseconds of a processor, for each turn; the first burst warms up and does not count."""
        counted = self.taken[1:] or self.taken
        total = sum(float(getattr(burst, what)) for burst in counted) / sum(burst.turns for burst in counted)
        return total if what == "commits" else 1000 * total

    def turns_a_second(self, seconds: float) -> Figure:
        """As a figure for rounds."""

        async def figure() -> float:
            burst = await asyncio.to_thread(self.burst, seconds)
            return burst.turns / burst.seconds

        return figure

    def seconds_a_turn(self, seconds: float) -> Figure:
        """As a figure for rounds."""

        async def figure() -> float:
            burst = await asyncio.to_thread(self.burst, seconds)
            return burst.seconds / burst.turns

        return figure


@dataclass(frozen=True, slots=True)
class Runtime:
    """A peer at work."""

    peer: Peer
    child: Child
    conversations: int

    def turns_a_second(self, seconds: float) -> Figure:
        """As a figure for rounds. DBOS stores no conversations, so none of its bursts needs new ones."""
        number = 0

        async def figure() -> float:
            nonlocal number
            number += 1
            if number == 1 or self.peer is not DBOS:
                sessions = [f"{number}-{conversation}" for conversation in range(self.conversations)]
                self.child.ask(sessions=sessions, earlier=FEW)
                self.child.ask(seconds=0)
            answer = self.child.ask(seconds=seconds)
            return float(answer["count"]) / float(answer["seconds"])

        return figure


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    place = plan.scratch / "turns"
    place.mkdir()
    (place / "notes.txt").write_text(NOTES)
    peers = [peer for peer in (LANGGRAPH, DBOS) if plan.peers and _installed(peer, report)]
    with contextlib.closing(RawLog(place / "turns.raw")) as raw:
        for conversations in PEER_GOALS:
            await _beside_peers(plan, report, place, conversations, peers, raw)
    await _growth(plan, report, place)
    if LANGGRAPH in peers:
        await _loading(plan, report, place)


async def _beside_peers(
    plan: Plan, report: Report, place: Path, conversations: int, peers: list[Peer], raw: RawLog
) -> None:
    seconds, rounds = _seconds(plan), plan.rounds(ROUNDS)
    filled = await fill_home(place, plan.seed, conversations=conversations, bursts=rounds + 1)
    with ExitStack() as stack:
        ours = stack.enter_context(started(filled))
        others = [stack.enter_context(_peer(place, peer, conversations)) for peer in peers]

        async def syncs() -> float:
            return raw.rate(RAW_SECONDS)

        figures = [ours.turns_a_second(seconds), *(other.turns_a_second(seconds) for other in others), syncs]
        our_rates, *their_rates, sync_rates = await in_turn(*figures, rounds=rounds)
    name, commits = plural(conversations), ours.a_turn("commits")
    for peer, rates in zip(peers, their_rates, strict=True):
        goal = Goal("≥", PEER_GOALS[conversations])
        report.add(Pairs(our_rates, rates).line(AREA, f"{name}, beside {peer.package}", "turns/s", goal))
    limit = [rate / commits for rate in sync_rates]
    commits_name = f"{name}, beside one fdatasync for each of its {commits:.1f} commits"
    report.add(Pairs(our_rates, limit).line(AREA, commits_name, "turns/s"))
    _processor(report, ours, name, CPU_GOAL if conversations == max(PEER_GOALS) else None)


def _processor(report: Report, ours: Gateway, name: str, goal: Goal | None = None) -> None:
    """The processor time of both sides; the client's says whether the client was what was measured."""
    for what, of_whom, its_goal in (("gateway_cpu", "gateway", goal), ("client_cpu", "client", None)):
        value = ours.a_turn(what)
        report.add(Line(AREA, f"{name}, CPU of the {of_whom}", f"{value:.2f} ms", "", value, " ms", its_goal))


async def _growth(plan: Plan, report: Report, place: Path) -> None:
    """A turn of a long conversation beside one of a short one."""
    seconds, rounds = _seconds(plan), plan.rounds(ROUNDS)
    homes = {FEW: await fill_home(place, plan.seed, conversations=1, bursts=rounds + 1)}
    homes |= {earlier: await fill_home(place, plan.seed, conversations=1, earlier=earlier) for earlier in GROWTH_GOALS}
    with ExitStack() as stack:
        gateways = {earlier: stack.enter_context(started(filled)) for earlier, filled in homes.items()}
        figures = [one.seconds_a_turn(seconds) for one in gateways.values()]
        short, *longer = await in_turn(*figures, rounds=rounds)
    for earlier, taken in zip(GROWTH_GOALS, longer, strict=True):
        name = f"one turn at {earlier:,} earlier messages, beside one at {FEW}"
        report.add(Pairs(taken, short).line(AREA, name, "s", Goal("≤", GROWTH_GOALS[earlier])))
        _processor(report, gateways[earlier], f"1 conversation at {earlier:,} earlier messages")


async def _loading(plan: Plan, report: Report, place: Path) -> None:
    """A long conversation from the disk: our events, read, checked and folded, beside LangGraph's last checkpoint."""
    filled = await fill_home(place, plan.seed, conversations=1, earlier=LONG)
    ((session, _),) = filled.bursts[0]
    async with opened(filled.home.path) as store:
        with _peer(place, LANGGRAPH, 1) as other:
            other.child.ask(sessions=["long"], earlier=LONG)

            async def theirs() -> float:
                answer = other.child.ask(load="long")
                assert answer["count"] == LONG
                return float(answer["seconds"])

            pairs = await alternate(loading(store, session, LONG), theirs, plan.rounds(20))
    name = f"our load of {LONG:,} messages and all their events, beside {LANGGRAPH.package} aget_state"
    report.add(pairs.line(AREA, name, "s", Goal("≤", 1)))


async def fill_home(place: Path, seed: int, *, conversations: int, bursts: int = 1, earlier: int = FEW) -> Filled:
    """A new home with the conversations of so many bursts, each with so many messages already."""
    home, work = Home(Path(tempfile.mkdtemp(dir=place)) / "home"), Workload(seed)
    events = earlier // 2 * 5
    made = [[(work.id(8), 1 + events) for _ in range(conversations)] for _ in range(bursts)]
    async with opened(home.path) as store:
        for session, _ in (one for sessions in made for one in sessions):
            await fill(store, session, islice(work.turns(tools=False), events), cwd=str(place))
        await rest(store)
    home.config.write_text(SETTINGS)
    return Filled(home, made)


@contextmanager
def started(filled: Filled, *program: str) -> Iterator[Gateway]:
    """A gateway on this home, and a process for its clients."""
    with gateway(filled.home, *program) as (pid, port), python("turn_client") as client:
        yield Gateway(pid, port, wait_until_ready(filled.home), client, list(filled.bursts))


@contextmanager
def _peer(place: Path, peer: Peer, conversations: int) -> Iterator[Runtime]:
    home, script = tempfile.mkdtemp(dir=place), str(Path(__file__).with_name("turn_peer.py"))
    with Child(str(peer.interpreter), "-P", script, peer.name, home, str(place / "notes.txt")) as child:
        yield Runtime(peer, child, conversations)


def plural(conversations: int) -> str:
    """So many conversations."""
    return f"{conversations} conversations" if conversations > 1 else "1 conversation"


def _seconds(plan: Plan) -> float:
    return QUICK_SECONDS if plan.quick else SECONDS


def _installed(peer: Peer, report: Report) -> bool:
    problem = install(peer)
    if problem is not None:
        report.note(f"{peer.package} is left out: {problem}")
    return problem is None
