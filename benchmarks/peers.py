"""The same message through hermes-agent and openai-agents, in turn with ours and with the bare disk.

Each peer has a venv of its own under `.peers`, made by pip at the first run; without it the run goes on and says why.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from benchmarks.append import bursts, saying
from benchmarks.children import Child
from benchmarks.measure import OURS_SECONDS, Figure, Plan, RawLog, alternate, timed
from benchmarks.report import Report
from benchmarks.workload import Workload, fill, opened, rest
from holdfast.domain.session import Session
from holdfast.domain.session_fold import fold
from holdfast.store.sqlite.store import SqliteStore

AREA = "peers"
VENVS = Path(__file__).parent / ".peers"
INSTALL_SECONDS = 600
MESSAGES, FEWER = 10_000, 2_000
"""How long the conversation is that is loaded; filling the peers' takes half a minute."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Who, in which version, and what is called."""

    name: str
    package: str
    append: str = ""
    load: str = ""
    also: tuple[str, ...] = ()
    """What is installed with it."""

    @property
    def interpreter(self) -> Path:
        """Of its own venv."""
        return VENVS / self.package / "bin" / "python"


PEERS = (
    Peer("hermes", "hermes-agent==0.19.0", "SessionDB.append_message", "get_messages_as_conversation"),
    Peer("openai", "openai-agents==0.24.0", "SQLiteSession.add_items", "get_items"),
)


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    work, messages = Workload(plan.seed), FEWER if plan.quick else MESSAGES
    async with opened(plan.scratch / "peers") as store:
        stream = await fill(store, work.id(8), islice(work.turns(tools=False), 100))
        ours = bursts(saying(store, work, stream))
        filled = work.id(8)
        await fill(store, filled, islice(work.turns(tools=False), messages // 2 * 5))
        await rest(store)
        with contextlib.closing(RawLog(plan.scratch / "peers.raw")) as raw:
            for peer in PEERS:
                if (problem := install(peer)) is not None:
                    report.note(f"{peer.package} is left out: {problem}")
                    continue
                home = plan.scratch / peer.name
                home.mkdir()
                script = str(Path(__file__).with_name("peer.py"))
                with Child(str(peer.interpreter), script, peer.name, str(home), HERMES_HOME=str(home)) as child:
                    child.ask(texts=[work.text() for _ in range(200)])
                    await _append(plan, report, peer, child, ours, raw)
                    child.ask(fill=messages)
                    await _load(plan, report, peer, child, messages, loading(store, filled, messages))


def install(peer: Peer) -> str | None:
    """Make its venv unless it is there; what went wrong, if something did."""
    ready = VENVS / peer.package / "ready"
    if ready.exists():
        return None
    print(f"installing {peer.package} into {ready.parent} …", flush=True)
    pip = [str(peer.interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(ready.parent)],
        [*pip, peer.package, *peer.also],
    ):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"installing took more than {INSTALL_SECONDS} s"
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["pip failed without a word"])[-1]
    ready.touch()
    return None


async def _append(plan: Plan, report: Report, peer: Peer, child: Child, ours: Figure, raw: RawLog) -> None:
    async def theirs() -> float:
        answer = child.ask(append=OURS_SECONDS)
        return float(answer["count"]) / float(answer["seconds"])

    pairs = await alternate(theirs, raw.burst, plan.rounds(40))
    report.add(pairs.line(AREA, f"{peer.package} {peer.append}, beside the bare disk", "/s"))
    pairs = await alternate(ours, theirs, plan.rounds(40))
    report.add(pairs.line(AREA, f"our append, beside {peer.package}", "/s"))


def loading(store: SqliteStore, session: str, messages: int) -> Figure:
    """Our side of a load: read, check, decode and fold the whole conversation."""

    async def load() -> None:
        state = fold(Session(session), await store.load(f"session/{session}", after=0))
        assert len(state.messages) == messages

    async def seconds() -> float:
        return await timed(load)

    return seconds


async def _load(plan: Plan, report: Report, peer: Peer, child: Child, messages: int, ours: Figure) -> None:
    async def theirs() -> float:
        answer = child.ask(load=True)
        assert answer["count"] == messages
        return float(answer["seconds"])

    pairs = await alternate(ours, theirs, plan.rounds(20))
    name = f"our load of {messages:,} messages and all their events, beside {peer.package} {peer.load}"
    report.add(pairs.line(AREA, name, "s"))
