"""Scenarios, and how they are lived through with a fault at any of their writes.

A scenario is what a client does. A client that gets no answer does it again with the same ids, so all
acts can be repeated: words carry their command id, and conditions look at the log, which only grows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import assert_never

from holdfast.domain.command import InputMode
from holdfast.domain.commands import CompactSession, SessionCommand, UndoReset
from holdfast.domain.context_limits import CompactionRules
from holdfast.domain.errors import Conflict, Unavailable
from holdfast.domain.events import Record
from holdfast.domain.events.chapter import SummaryWritten
from holdfast.domain.events.session import ModelInterrupted, ModelRequested, ToolCallFinished
from holdfast.domain.history import UserMessage
from holdfast.domain.next_step import TurnLimits
from holdfast.domain.session import Session
from holdfast.domain.session_fold import fold
from tests.domain.chapters import check_context
from tests.domain.history import History, check_ended
from tests.lifecycle.rig import LifecycleRig
from tests.rig import QUICK_DISK
from tests.runtime.mortal import Fault, How, Killed, mortal_store
from tests.runtime.rig import ID, STREAM, Rig, call, seen
from tests.seed import new_seed
from tests.store.rebuilt import check_integrity, check_projections

# --- what a client does ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Create:
    text: str


@dataclass(frozen=True, slots=True)
class Say:
    id: str
    text: str
    mode: InputMode = "queue"


@dataclass(frozen=True, slots=True)
class Stop:
    id: str


@dataclass(frozen=True, slots=True)
class Until:
    enough: Callable[[Sequence[Record]], bool]


@dataclass(frozen=True, slots=True)
class Go:
    """The model may finish what it holds."""


@dataclass(frozen=True, slots=True)
class AtRest:
    """Wait until nothing is left to do."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Open a chapter, as often as something is in the way; the agent writes a note first."""

    id: str


@dataclass(frozen=True, slots=True)
class SendCommand:
    id: str
    command: SessionCommand


@dataclass(frozen=True, slots=True)
class Together:
    """All at once: whichever the store takes first."""

    acts: tuple[Act, ...]


Act = Create | Say | Stop | Until | Go | AtRest | Reset | SendCommand | Together


@dataclass(frozen=True, slots=True)
class Scenario:
    """Acts, life by life: between two lives the gateway says goodbye. In the end there is rest."""

    name: str
    lives: tuple[tuple[Act, ...], ...]
    expect: Callable[[History, Path], None]
    left: Callable[[Session], None] = lambda session: None
    """What must be true of the session in the end."""
    limits: TurnLimits | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def inputs(self) -> list[str]:
        """The ids of all that is said, in order."""
        acts = [act for life in self.lives for act in life]
        acts = [one for act in acts for one in (act.acts if isinstance(act, Together) else (act,))]
        return [f"create {ID}"] + [act.id for act in acts if isinstance(act, Say)]


async def _perform(rig: LifecycleRig, act: Act) -> None:
    match act:
        case Create(text):
            await _insist(lambda: rig.create(text))
        case Say(id, text, mode):
            await _insist(lambda: rig.say(text, id, mode))
        case Stop(id):
            await _insist(lambda: rig.stop_turn(id))
        case Until(enough):
            await rig.until(enough)
        case Go():
            rig.model.go.set()
        case AtRest():
            await rig.rest()
        case Reset(id):
            await _insist(lambda: _reset(rig, id))
        case SendCommand(id, command):
            await _insist(lambda: rig.tell(command, id))
        case Together(acts):
            await asyncio.gather(*(_perform(rig, one) for one in acts))
        case _ as never:
            assert_never(never)


async def _reset(rig: LifecycleRig, id: str) -> None:
    """Refused while a turn is open; then it comes after that."""
    while True:
        try:
            await rig.reset(id, note=True)
        except Conflict:
            await rig.rest()
        else:
            return


async def _insist(tell: Callable[[], Awaitable[object]]) -> None:
    """What a client does with a 507: the same again, under the same id."""
    while True:
        try:
            await tell()
        except Unavailable:
            await asyncio.sleep(0.05)
        else:
            return


# --- life and death -------------------------------------------------------------------------------


class Survivor:
    """Takes a home through a scenario, with one fault after the other, and judges what is left."""

    def __init__(self, scenario: Scenario, home: Path) -> None:
        home.mkdir()
        self._scenario = scenario
        self._home = home
        self._planned = 0
        self.writes = 0
        """How many there were since the last fault."""
        self._cuts: list[tuple[int, str]] = []

    async def survive(self, *faults: Fault) -> bool:
        """Whether every fault was reached; if not, the scenario was over before."""
        left = list(faults)
        while self._planned < len(self._scenario.lives):
            if await self._life(left):
                left.pop(0)
        await self._judge()
        return not left

    async def _life(self, faults: list[Fault]) -> bool:
        store = mortal_store(self._home / "holdfast.db", faults[0] if faults else None)
        rig = LifecycleRig(self._home, store=store, limits=self._scenario.limits, timings=QUICK_DISK)
        await self._expect_cut(rig)
        client = asyncio.create_task(self._client(rig))
        death = asyncio.create_task(store.died.wait())
        await asyncio.wait({client, death}, return_when=asyncio.FIRST_COMPLETED)
        if not store.died.is_set():
            await client
        client.cancel()
        death.cancel()
        await asyncio.gather(client, death, return_exceptions=True)
        await rig.close()
        if not store.died.is_set():
            self._planned += 1
        if store.struck:
            self.writes = 0
            return True
        self.writes += store.writes
        if faults:
            faults[0] = replace(faults[0], at=faults[0].at - store.writes)
        return False

    async def _client(self, rig: LifecycleRig) -> None:
        try:
            await rig.start()
            for act in self._scenario.lives[self._planned]:
                await _perform(rig, act)
            if self._planned == len(self._scenario.lives) - 1:
                await rig.rest()
        except Killed:
            pass

    async def _expect_cut(self, rig: Rig) -> None:
        """If a life begins with an open answer, the text so far must become the next cut."""
        state = await rig.sessions.get(ID)
        if state.turn is not None and state.turn.asked:
            partial = await rig.store.partial(STREAM)
            self._cuts.append((state.version, partial.text if partial is not None else ""))

    async def _judge(self) -> None:
        rig = Rig(self._home)
        records = await rig.records()
        await rig.close()
        history = check_ended(records)
        assert list(history.accepted) == self._scenario.inputs, "each message once, in order"
        for version, text in self._cuts:
            cuts = [record.event for record in records[version:] if isinstance(record.event, ModelInterrupted)]
            assert cuts[0].text == text, "the text so far is what was saved of it"
        check_context(records)
        self._scenario.expect(history, self._home)
        self._scenario.left(fold(Session(ID), records))
        check_posted(records, self._home)
        check_projections(self._home / "holdfast.db")
        check_integrity(self._home / "holdfast.db")


def check_posted(records: Sequence[Record], home: Path) -> None:
    """What cannot be taken back was done at most once, and exactly once if we say that it was done."""
    box = home / "posted"
    letters = box.read_text().splitlines() if box.exists() else []
    outcomes = [e.outcome for record in records if isinstance(e := record.event, ToolCallFinished) and e.tool == "post"]
    assert len(set(letters)) == len(letters), "posted twice"
    assert outcomes.count("done") <= len(letters) <= outcomes.count("done") + outcomes.count("unknown")


async def at_every_write(scenario: Scenario, how: How, homes: Path, *earlier: Fault, every: int = 1) -> int:
    """Count the writes of an undisturbed run, then disturb each of them; how many that were.

    With `every` only each second one, say: the others with another seed.
    """
    undisturbed = Survivor(scenario, homes / "undisturbed")
    await undisturbed.survive(*earlier)
    begin = 1 + new_seed() % every
    faults = [Fault(at, how) for at in range(begin, undisturbed.writes + 1, every)]
    lives = [Survivor(scenario, homes / str(fault.at)).survive(*earlier, fault) for fault in faults]
    return sum(await asyncio.gather(*lives))


# --- the scenarios --------------------------------------------------------------------------------


def texts(*expected: str) -> Callable[[History, Path], None]:
    """Every turn was done and said just this."""

    def expect(history: History, home: Path) -> None:
        assert [(turn.outcome, turn.text) for turn in history.turns] == [("done", text) for text in expected]

    return expect


def outcomes(*expected: str) -> Callable[[History, Path], None]:
    def expect(history: History, home: Path) -> None:
        assert [turn.outcome for turn in history.turns] == list(expected)

    return expect


def _tools(history: History, home: Path) -> None:
    assert [turn.outcome for turn in history.turns] == ["done"]
    assert history.turns[0].text == "done"
    assert (home / "a.txt").read_text() == "hello"
    assert len(history.turns[0].calls) == 4


def _steered(history: History, home: Path) -> None:
    [turn] = history.turns
    assert turn.inputs == [f"create {ID}", "m2"]
    assert turn.text.startswith("one")


asked = Until(seen(ModelRequested))
WRITE, READ = call("write", path="a.txt", content="hello"), call("read", path="a.txt")
POST, POST_AGAIN = call("post", letter="a"), call("post", letter="b")

SCENARIOS = [
    Scenario("text", ((Create("say hello"),),), texts("hello")),
    Scenario("tools", ((Create(f"call {WRITE} & {READ}\ncall {POST} & {POST_AGAIN}\nsay done"),),), _tools),
    Scenario("unknown tool", ((Create("call dance {}\nsay I see"),),), texts("I see")),
    Scenario("steer", ((Create("hold one"), asked, Say("m2", "say two", "steer"), Go()),), _steered),
    Scenario(
        "interrupt", ((Create("hold one"), asked, Say("m2", "say two", "interrupt")),), outcomes("stopped", "done")
    ),
    Scenario("stop", ((Create("hold one"), asked, Stop("s1"), Say("m2", "say two")),), outcomes("stopped", "done")),
    Scenario("fail", ((Create("fail"), Say("m2", "say better")),), outcomes("failed", "done")),
    Scenario(
        "queue of 3",
        ((Create("hold one"), asked, Say("m2", "say two"), Say("m3", "say three"), Go()),),
        texts("one", "two", "three"),
    ),
    Scenario("partial", ((Create("slow one two three four five"),),), texts("one two three four five")),
    Scenario("goodbye", ((Create("hold one"), asked), (Go(), Say("m2", "say two"))), texts("one", "two")),
]


def _rejoined(session: Session) -> None:
    """One chapter again, with a summary of its oldest turns, and the last words of both."""
    assert (len(session.chapters), session.chapter.number) == (1, 1)
    summary = session.chapter.summary
    assert summary is not None and summary.source == "model" and summary.summary.startswith("in short")
    assert session.chapter.requested is None and session.chapter.in_progress is None
    heard = [message.text for message in session.visible_messages() if isinstance(message, UserMessage)]
    assert heard == ["say three", "say four"]


def _summarised(records: Sequence[Record]) -> bool:
    return any(isinstance(e := record.event, SummaryWritten) and e.purpose == "compaction" for record in records)


LONG_FILE = {"path": "long.txt", "content": "line\n" * 800}
LONG_TURN = "\n".join(
    [f"call {call('write', **LONG_FILE)}", *[f"call {call('read', path='long.txt')}"] * 4, "say done"]
)
"""More than fits."""


def _fits(session: Session) -> None:
    """What it was to do is there, what it read before was trimmed and summarised, and what is left fits."""
    assert session.visible_messages()[-1].turn == 1 and session.size <= 4_500
    assert LONG_TURN in [message.text for message in session.visible_messages() if isinstance(message, UserMessage)]
    assert session.chapter.summary is not None and session.chapter.summary.covers_step > 0
    assert session.compute_visible() == session.visible_history


def _raced(session: Session) -> None:
    """The message is on one side of the boundary, whichever."""
    assert session.chapter.number == 2 and session.chapter.opened is not None
    heard = [message.text for message in session.visible_messages() if isinstance(message, UserMessage)]
    assert heard in (["say two", "say three"], ["say three"])
    assert session.chapter.opened.hand_over.startswith("in short")


SCENARIOS += [
    Scenario(
        "chapters",
        (
            (
                Create("say one"),
                AtRest(),
                Reset("r1"),
                Say("m2", "say two"),
                AtRest(),
                SendCommand("u1", UndoReset()),
                Say("m3", "say three"),
                AtRest(),
                SendCommand("c1", CompactSession(instructions="briefly")),
                Until(_summarised),
                Say("m4", "say four"),
            ),
        ),
        texts("one", "two", "three", "four"),
        _rejoined,
    ),
    Scenario(
        "a long turn",
        ((Create(LONG_TURN),),),
        texts("done"),
        _fits,
        TurnLimits(resume_attempts=100, compaction=CompactionRules(threshold=3_600, limit=4_500)),
    ),
    Scenario(
        "a reset and a message",
        (
            (
                Create("say one"),
                AtRest(),
                Together((Reset("r1"), Say("m2", "say two"))),
                AtRest(),
                Say("m3", "say three"),
            ),
        ),
        texts("one", "two", "three"),
        _raced,
    ),
]
