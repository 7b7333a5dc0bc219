"""External agents: how soon a client sees what one says, what an attached one weighs, how soon 50 are attached again.

The agent is the scripted one of the tests; it prints the time beside each line that is measured.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.children import ROOT, gateway, megabytes
from benchmarks.measure import Plan, alternate
from benchmarks.report import Goal, Line, Report
from holdfast.client import Client, EventReceived
from holdfast.config import Home
from holdfast.domain.events.session import ModelResponded, TurnFinished

AREA = "agents"
AGENT = [sys.executable, "-I", "-S", str(ROOT / "tests" / "agents" / "scripted_agent.py")]
LINES = 20
"""In one burst."""
AGENTS = 50
SETTLE_SECONDS = 1.5


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    await _lines(plan, report)
    _memory(plan, report)
    await _attach(plan, report)


def _home(plan: Plan, name: str) -> Home:
    home = Home(plan.scratch / name)
    home.prepare()
    memory = plan.scratch / f"{name}-memory"
    memory.mkdir()
    argv = json.dumps([*AGENT, f"memory={memory}"])
    home.config.write_text(f"[profiles.bench]\nargv = {argv}\n")
    return home


# --- a line ---------------------------------------------------------------------------------------


async def _lines(plan: Plan, report: Report) -> None:
    """From the moment in which the agent prints a line to the event at a client; to who reads its pipe."""
    home = _home(plan, "agents-lines")
    with gateway(home), subprocess.Popen(AGENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bare:
        client = Client(home.path)
        session = client.run("!say ready", profile="bench", cwd=str(home.path)).session

        async def ours() -> float:
            return await asyncio.to_thread(_event_delay, client, session)

        async def limit() -> float:
            return await asyncio.to_thread(_pipe_delay, bare)

        pairs = await alternate(ours, limit, plan.rounds(24))
        assert bare.stdin is not None
        bare.stdin.close()
        _end(client)
    report.add(pairs.line(AREA, "a line of the agent becomes an event at a client", "s"))


def _event_delay(client: Client, session: str) -> float:
    sent = client.sessions.send(session, f"!tick {LINES}")
    delays: list[float] = []
    for item in client.follow(session, after=sent.version):
        now = time.perf_counter_ns()
        if not isinstance(item, EventReceived):
            continue
        if isinstance(item.event, TurnFinished):
            return statistics.median(delays)
        if isinstance(item.event, ModelResponded):
            delays += [(now - int(json.loads(call.arguments)["command"])) / 1e9 for call in item.event.calls]
    raise AssertionError("it never ended")


def _pipe_delay(agent: subprocess.Popen[bytes]) -> float:
    assert agent.stdin is not None
    assert agent.stdout is not None
    prompt = {"sessionId": "bench", "prompt": [{"type": "text", "text": f"!tick {LINES}"}]}
    agent.stdin.write(json.dumps({"id": 1, "method": "session/prompt", "params": prompt}).encode() + b"\n")
    agent.stdin.flush()
    delays: list[float] = []
    for line in agent.stdout:
        now, said = time.perf_counter_ns(), json.loads(line)
        if "result" in said:
            break
        made = said["params"]["update"].get("rawInput")
        delays += [(now - int(made["command"])) / 1e9] if made else []
    return statistics.median(delays)


# --- memory ---------------------------------------------------------------------------------------


def _memory(plan: Plan, report: Report) -> None:
    """Of the gateway, for each agent that is at work; the agent itself and its keepers are other processes."""
    home, count = _home(plan, "agents-memory"), 12 if plan.quick else AGENTS
    go = plan.scratch / "agents-memory-go"
    with gateway(home) as (pid, _):
        client = Client(home.path)
        client.run("!say ready", profile="bench", cwd=str(home.path))  # what the first one costs belongs to the gateway
        time.sleep(SETTLE_SECONDS)
        before = megabytes(pid)
        sessions = _at_work(client, home, go, count)
        time.sleep(SETTLE_SECONDS)
        each = (megabytes(pid) - before) / count
        go.touch()
        _until_done(client, sessions)
        _end(client)
    name = f"memory of the gateway for each of {count} agents at work"
    report.add(Line(AREA, name, f"{each:.2f} MB", "", each, " MB", Goal("≤", 2, " MB")))


def _at_work(client: Client, home: Home, go: Path, count: int) -> list[str]:
    """Have so many agents say something and wait for a file."""
    lines = f"!say at work\n!call a read x\n!wait {go}\n!say done"
    sent = [client.sessions.create(lines, profile="bench", cwd=str(home.path)) for _ in range(count)]
    for one in sent:
        for item in client.follow(one.session):
            if isinstance(item, EventReceived) and isinstance(item.event, ModelResponded):
                break
    return [one.session for one in sent]


def _until_done(client: Client, sessions: list[str]) -> None:
    for session in sessions:
        for item in client.follow(session):
            if isinstance(item, EventReceived) and isinstance(item.event, TurnFinished):
                break


def _end(client: Client) -> None:
    """End the agents, which would go on without a gateway."""
    for task in client.tasks.list(state="running", limit=200).tasks:
        client.tasks.stop(task.id, force=True)
        client.tasks.wait(task.id)


# --- after a restart --------------------------------------------------------------------------------


async def _attach(plan: Plan, report: Report) -> None:
    """From the start of a gateway until the turns of 50 agents are over, whose words came while none was there."""
    taken, starts = list[float](), list[float]()
    for number in range(plan.rounds(4)):
        home, go = _home(plan, f"agents-attach-{number}"), plan.scratch / f"agents-attach-{number}-go"
        with gateway(home) as (pid, _):
            sessions = _at_work(Client(home.path), home, go, AGENTS)
            os.kill(pid, signal.SIGKILL)
        go.touch()
        await asyncio.sleep(SETTLE_SECONDS)
        begun = time.perf_counter()
        with gateway(home):
            starts.append(time.perf_counter() - begun)
            _until_done(Client(home.path), sessions)
            taken.append(time.perf_counter() - begun)
            _end(Client(home.path))
    middle, spread = statistics.median(taken), f"{min(taken):.2f} … {max(taken):.2f}"
    name = f"{AGENTS} agents attached after kill -9, and all that they said read"
    answered = statistics.median(starts)
    limit = f"{answered * 1000:.0f} ms to the first answer"
    report.add(Line(AREA, name, f"{middle:.2f} s", limit, middle / answered, "x", None, spread))
