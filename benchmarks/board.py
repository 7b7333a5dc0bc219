"""The board: claims by many at once beside the bare disk and beside peers, and a board of ten thousand cards."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from tests.actors import person

from benchmarks.children import Child
from benchmarks.measure import OURS_SECONDS, Figure, Plan, RawLog, alternate, timed
from benchmarks.peers import Peer, install
from benchmarks.report import Goal, Report
from benchmarks.workload import Workload, now
from holdfast.board.cards import CardChange, Cards
from holdfast.board.dispatcher import Dispatcher
from holdfast.board.workspace import WorkspaceState
from holdfast.clock import SystemClock
from holdfast.config import Home
from holdfast.domain.dispatch import FirstInput, SessionChoice
from holdfast.domain.errors import Conflict
from holdfast.domain.events import board_stream, card_stream
from holdfast.domain.events.card import BoardCreated, BoardPaused, CardCompleted, CardCreated, RunFinished, RunStarted
from holdfast.lifecycle.awake_clock import AwakeClock
from holdfast.lifecycle.running_tasks import RunningTasks
from holdfast.nodes import Nodes
from holdfast.processes.supervisor import Supervisor
from holdfast.profiles import Profiles
from holdfast.sessions import Sessions
from holdfast.store.contract import Append, Write
from holdfast.store.reads import CardFilter
from holdfast.store.sqlite.store import SqliteStore
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.defaults import CommandDefaults
from holdfast.tasks.git_snapshots import GitSnapshots
from holdfast.tasks.log import TaskLog
from holdfast.tasks.queries import TaskQueries

AREA = "board"
CLAIMERS = 16
BOARD = 10_000
A_ROUND = 1_000
"""Cards that are ready before each burst; no burst takes so many."""
PEERS = (
    Peer("hermes", "hermes-agent==0.19.0", "kanban_db.claim_task", ""),
    Peer("huey", "huey==2.5.3", "SqliteHuey.dequeue", ""),
)


class Bench:
    """A store with a dispatcher that nobody wakes."""

    def __init__(self, store: SqliteStore, home: Home, work: Workload) -> None:
        clock, sessions = SystemClock(), Sessions(store, SystemClock())
        profiles = Profiles(home.config)
        tasks = CommandTasks(
            store,
            task_log=TaskLog(store, clock, GitSnapshots(home.tasks), profiles),
            supervisor=Supervisor(home.tasks),
            defaults=CommandDefaults(home.tasks, profiles, 0o077),
            sessions=sessions,
            clock=clock,
        )
        task_queries = TaskQueries(store, tasks=tasks, sessions=sessions, clock=clock, profiles=profiles)
        running = RunningTasks(store, task_queries, tasks, AwakeClock())
        self.store, self.work = store, work
        nodes = Nodes(store, profiles)
        self.cards = Cards(
            store, sessions=sessions, running=running, nodes=nodes, clock=clock, root=home.path / "workspaces"
        )
        self.dispatcher = Dispatcher(store, cards=self.cards, sessions=sessions, profiles=profiles, clock=clock)
        self.ready: list[str] = []
        self.claimed: list[str] = []

    async def fill(self, count: int) -> None:
        """So many more cards that are ready."""
        made = [self.work.id(4) for _ in range(count)]
        for start in range(0, count, 200):
            writes = tuple(
                Write(card_stream(card), (self._card(card),), expect=0) for card in made[start : start + 200]
            )
            await self.store.append(Append(writes, now()))
        self.ready += made

    def _card(self, card: str, board: str = "default") -> CardCreated:
        text = self.work.text()
        return CardCreated(
            card=card, board=board, title=text[:60], body=text, by=person("bench"), status="ready", profile="demo"
        )

    async def claim(self) -> None:
        """What the dispatcher does when it starts a card: the run, its session, its task, its first message."""
        card = await self.cards.get(self.ready.pop())
        found = WorkspaceState(Path("/tmp"), "a scratch directory")
        assert await self.dispatcher.runs.begin(
            card, SessionChoice(), found, FirstInput("You work on a card.", card.body)
        )
        self.claimed.append(card.id)

    async def run_alone(self) -> None:
        """The claim itself, as a worker outside the gateway would make it who has the list: the run and no more."""
        card = self.ready.pop()
        run = RunStarted(
            card=card,
            run=1,
            session=self.work.id(8),
            task=self.work.id(8),
            profile="demo",
            resumed_run=0,
            after_turn=0,
            workspace="/tmp",
            workspace_state="",
        )
        await self.store.append(Append((Write(card_stream(card), (run,), expect=1),), now()))
        self.claimed.append(card)

    async def ready_to_started(self) -> float:
        """Seconds from a card that is written to its run on disk; the dispatcher is awake and finds it by itself."""
        id = self.work.id(4)
        with self.store.subscribe(card_stream(id)) as changes:
            started = time.perf_counter()
            await self.store.append(Append((Write(card_stream(id), (self._card(id, board="now"),), expect=0),), now()))
            while (card := await self.cards.get(id)).run is None:
                await changes.wait()
                changes.drain()
            took = time.perf_counter() - started
        over = RunFinished(card=id, run=1, outcome="done", reason="", failure="", uses_attempt=False)
        done = CardCompleted(card=id, summary="", by=person("bench"), run=1)
        await self.cards.write(CardChange(card, [over, done], person("bench")))
        return took


def claims(bench: Bench, claim: Callable[[], Awaitable[None]]) -> Figure:
    """Claims a second by sixteen who each wait for their own."""

    async def one(until: float) -> int:
        done = 0
        while time.perf_counter() < until and bench.ready:
            await claim()
            done += 1
        return done

    async def burst() -> float:
        await bench.fill(max(0, A_ROUND - len(bench.ready)))
        started = time.perf_counter()
        counts = await asyncio.gather(*(one(started + OURS_SECONDS) for _ in range(CLAIMERS)))
        return sum(counts) / (time.perf_counter() - started)

    return burst


@contextlib.asynccontextmanager
async def opened(place: Path, work: Workload) -> AsyncIterator[Bench]:
    """A board in a home of its own."""
    place.mkdir()
    home = Home(place)
    home.prepare()
    store = SqliteStore(home.database)
    try:
        for name in ("default", "now"):
            made = BoardCreated(board=name, title="Board", by=person("bench"))
            await store.append(Append((Write(board_stream(name), (made,)),), now()))
        yield Bench(store, home, work)
    finally:
        await store.close()


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    work = Workload(plan.seed)
    with contextlib.closing(RawLog(plan.scratch / "board.raw")) as raw:
        async with opened(plan.scratch / "board", work) as bench:
            pairs = await alternate(claims(bench, bench.claim), raw.burst, plan.rounds(40))
            report.add(pairs.line(AREA, f"{CLAIMERS} claimers: run, session, task and first message", "/s"))
            pairs = await alternate(claims(bench, bench.run_alone), raw.burst, plan.rounds(40))
            report.add(pairs.line(AREA, f"{CLAIMERS} claimers: the run alone", "/s", Goal("≥", 4)))
            assert len(bench.claimed) == len(set(bench.claimed)), "a card was claimed twice"
            await _race(report, bench)
            for peer in PEERS:
                await _beside(plan, report, peer, claims(bench, bench.run_alone))
        async with opened(plan.scratch / "large", work) as bench:
            await _start(plan, report, bench, raw, "nothing else is ready")
            paused = BoardPaused(board="default", by=person("bench"))
            await bench.store.append(Append((Write(board_stream("default"), (paused,)),), now()))
            await bench.fill(BOARD)
            await _start(plan, report, bench, raw, f"{BOARD:,} more are ready, on a board that is paused")
            await _open(plan, report, bench)


async def _race(report: Report, bench: Bench) -> None:
    """Everybody wants the same cards: of each, one gets it."""
    await bench.fill(A_ROUND)
    wanted, won = bench.ready[-200:], 0

    async def one(id: str) -> None:
        nonlocal won
        card = await bench.cards.get(id)
        words = FirstInput("You work on a card.", card.body)
        with contextlib.suppress(Conflict):
            got = await bench.dispatcher.runs.begin(card, SessionChoice(), WorkspaceState(Path("/tmp"), ""), words)
            won += got

    for id in wanted:
        await asyncio.gather(*(one(id) for _ in range(CLAIMERS)))
        bench.ready.remove(id)
    report.note(f"board: {CLAIMERS} at each of {len(wanted)} cards: {won} claims, {won - len(wanted)} double.")
    assert won == len(wanted)


async def _beside(plan: Plan, report: Report, peer: Peer, ours: Figure) -> None:
    if (problem := install(peer)) is not None:
        report.note(f"{peer.package} is left out: {problem}")
        return
    home = plan.scratch / f"claims-{peer.name}"
    home.mkdir()
    script = str(Path(__file__).with_name("claimer.py"))
    rounds = plan.rounds(20)
    with Child(str(peer.interpreter), script, peer.name, str(home), HERMES_HOME=str(home)) as child:
        child.ask(fill=400 * (rounds + 2))

        async def theirs() -> float:
            answer = child.ask(claim=OURS_SECONDS)
            return float(answer["count"]) / float(answer["seconds"])

        pairs = await alternate(ours, theirs, rounds)
        report.add(pairs.line(AREA, f"our claims, beside {peer.package} {peer.append}", "/s"))


async def _start(plan: Plan, report: Report, bench: Bench, raw: RawLog, beside: str) -> None:
    """How soon a card is started."""

    async def two() -> None:
        raw.append()
        raw.append()

    await bench.dispatcher.start()
    pairs = await alternate(bench.ready_to_started, lambda: timed(two), plan.rounds(80))
    await bench.dispatcher.stop()
    report.add(pairs.line(AREA, f"a card is ready, its run is on disk; {beside}", "s"))


async def _open(plan: Plan, report: Report, bench: Bench) -> None:
    """What a board asks for when it is opened: all of its cards."""

    async def everything() -> None:
        rows = await bench.store.cards.cards(CardFilter(board="default"), offset=0, limit=BOARD)
        assert len(rows) == BOARD

    async def one() -> None:
        await bench.store.cards.cards(CardFilter(board="default"), offset=0, limit=1)

    pairs = await alternate(lambda: timed(everything), lambda: timed(one), plan.rounds(12))
    report.add(pairs.line(AREA, f"the rows of a board of {BOARD:,} cards, beside one", "s"))
