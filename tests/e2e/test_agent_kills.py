"""kill -9 of real gateways while an external agent works: turns over turns, permissions open, nobody there.

In the long version the agent itself and its keepers are killed too. The scripted agent writes down outside that it
carried out a prompt. Afterwards: each word is in the log once and in order, each prompt that was not cut was carried
out once, each permission was answered once.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.agents.life import AGENT, command_config
from tests.e2e.gateway import GatewayProcess, Json, check_whole, of_kind
from tests.eventually import PATIENCE
from tests.seed import new_seed

ASK_EVERY = 3
PAUSE = "!pause 0.05"


PROTOCOL = "acp"
"""Any other agent of these tests is a command, by the format of its output."""


@pytest.mark.parametrize(
    ("agent", "turns", "agents_die"),
    [
        (PROTOCOL, 6, False),
        ("codex", 4, False),
        pytest.param(PROTOCOL, 1000, False, marks=pytest.mark.proof),
        pytest.param(PROTOCOL, 100, True, marks=pytest.mark.proof),
        *(pytest.param(format, 150, False, marks=pytest.mark.proof) for format in ("claude", "codex", "text")),
        *(pytest.param(format, 100, True, marks=pytest.mark.proof) for format in ("claude", "codex")),
    ],
)
def test_promise_3_no_word_is_lost_or_doubled_by_kill_9(
    tmp_path: Path, agent: str, turns: int, agents_die: bool
) -> None:
    rng = random.Random(new_seed())
    memory, home = tmp_path / "memory", tmp_path / "home"
    memory.mkdir()
    home.mkdir(mode=0o700)
    argv = [sys.executable, "-I", "-S", str(AGENT), f"memory={memory}"]
    protocol = f"[profiles.scripted]\nargv = {argv!r}\n".replace("'", '"')
    (home / "config.toml").write_text(protocol if agent == PROTOCOL else command_config(agent, f"memory={memory}"))
    (home / "config.toml").chmod(0o600)
    timings = {"runtime.agent_ready": PATIENCE, "runtime.agent_output": 0.005}
    kills = 0
    with GatewayProcess(home, timings=timings) as gateway:
        port = gateway.start().port
        body = {"profile": "scripted", "cwd": str(tmp_path)}
        session = str(gateway.command("POST", "/v1/sessions", body)["session"])
        for turn in range(1, turns + 1):
            gateway.send(session, "\n".join(script(tmp_path, turn, asks=agent == PROTOCOL)), key=f"message-{turn}")
            kills += work(gateway, session, turn, port, rng, agents_die=agents_die)
        records = gateway.events(session)
        for row in gateway.get("/v1/tasks", state="running")["tasks"]:
            gateway.command("POST", f"/v1/tasks/{row['id']}/stop", {"force": True})
            gateway.until_ended(row["id"])
    check(tmp_path, records, turns, agents_die=agents_die)
    print(f"\n{turns} turns, {kills} kills of the gateway, {len(of_kind(records, 'TurnResumed'))} agents resumed")


def script(directory: Path, turn: int, *, asks: bool) -> list[str]:
    lines = [
        f"!touch {directory / f'{turn}.ran'}",
        f"!say {words(turn, 0)}",
        "!call a read x",
        f"!say {words(turn, 1)}",
    ]
    if asks and turn % ASK_EVERY == 0:
        lines.append("!ask b rm x")
    return [*lines, f"!say {words(turn, 2)}"]


def words(turn: int, part: int) -> str:
    return " ".join(f"t{turn}p{part}w{word}" for word in range(5))


def work(gateway: GatewayProcess, session: str, turn: int, port: int, rng: random.Random, *, agents_die: bool) -> int:
    """Kill and start the gateway until the turn is over; answer what it asks. Return how often it was killed."""
    kills = 0
    while True:
        over = threading.Event()
        timer = threading.Timer(rng.uniform(0.01, 0.2), over.set)
        timer.start()
        while not over.is_set():
            if answer(gateway, session, turn):
                timer.cancel()
                return kills
            time.sleep(0.01)
        if agents_die and rng.random() < 0.3:
            kill_an_agent(gateway, rng)
        gateway.kill9()
        kills += 1
        time.sleep(rng.random() * 0.05)
        gateway.start(port)


def answer(gateway: GatewayProcess, session: str, turn: int) -> bool:
    """Answer what waits; return whether the turn is over."""
    row = gateway.session(session)
    if row["turn"] == turn and row["state"] == "idle":
        return True
    for wait in gateway.get("/v1/inbox")["waits"] if row["state"] == "waiting" else []:
        choice = "allow" if wait["purpose"] == "approval" else "go on"
        with contextlib.suppress(httpx.HTTPError):
            body = {"wait": wait["id"], "answer": choice}
            gateway.request("POST", "/v1/answers", json=body, key=f"answer-{wait['id']}")
    return False


def kill_an_agent(gateway: GatewayProcess, rng: random.Random) -> None:
    """Kill the agent, one of its keepers, or both."""
    rows: list[Json] = gateway.get("/v1/tasks", state="running")["tasks"]
    for row in rows:
        claim = gateway.home / "tasks" / row["id"] / "claim"
        if not claim.exists():
            continue
        known = dict(line.split(" ", 1) for line in claim.read_text().splitlines())
        victims = rng.choice([("pid",), ("keeper",), ("standby",), ("keeper", "standby")])
        for name in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(known[name].split()[0]), signal.SIGKILL)


def check(directory: Path, records: list[Json], turns: int, *, agents_die: bool) -> None:
    check_whole(records)
    ends = of_kind(records, "TurnFinished")
    assert [end["outcome"] for end in ends] == ["done"] * turns
    for turn in range(1, turns + 1):
        own = [event for event in of_kind(records, "ModelResponded") if event["turn"] == turn]
        said = " ".join(" ".join(event["text"] for event in own).split())
        cut = [event for event in of_kind(records, "ModelInterrupted") if event["turn"] == turn]
        file = directory / f"{turn}.ran"
        ran = file.read_text().count("x") if file.exists() else 0
        if cut:
            assert agents_die, "nobody killed the agent"
            assert ran <= 1, "it was told to go on, not the whole prompt again"
            continue
        assert said == " ".join(words(turn, part) for part in range(3)), f"turn {turn}"
        assert ran == 1, f"the prompt of turn {turn} was carried out {ran} times"
    waits = of_kind(records, "WaitAnswered")
    assert len({wait["wait"] for wait in waits}) == len(waits)
