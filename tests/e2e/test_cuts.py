"""TCP cut at random bytes: a client that comes back with its cursor has no gap and nothing twice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.followers import FORMS, Follower, Form, page
from tests.e2e.gateway import GatewayProcess, Json, of_kind
from tests.e2e.proxy import CuttingProxy
from tests.seed import new_seed

CUTS = 60
MANY_CUTS = 1000
WORDS = " ".join(f"wort{n}" for n in range(60))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("gateway") / "home") as process:
        yield process.start()


async def follow_through_cuts(gateway: GatewayProcess, form: Form, *, cuts: int, cwd: Path) -> None:
    """One round: a session that talks all the time, followed from its first event through a cutting proxy."""
    rng = random.Random(new_seed())
    done = rounds = events = 0
    async with CuttingProxy(gateway.port, rng, most=40_000) as proxy:
        while done < cuts:
            session = await asyncio.to_thread(gateway.create, None, cwd=cwd)
            follower = Follower(form, gateway, f"/v1/sessions/{session}/events", via=proxy.port)
            following = asyncio.create_task(follower.follow(is_last))
            await asyncio.to_thread(talk, gateway, session, rng)
            await following
            check(follower, page(gateway, follower.path, limit=2000))
            done = proxy.cuts
            rounds += 1
            events += len(follower.log)
    print(f"{form}: {done} cuts, {rounds} rounds, {events} events: 0 gaps, 0 duplicates")


def talk(gateway: GatewayProcess, session: str, rng: random.Random) -> None:
    gateway.send(session, f"slow 0.3 {WORDS}")
    for number in range(12):
        gateway.send(session, f"say {'x' * rng.randint(0, 500)}\nwrite f{number} ü\nread f{number}")
    gateway.send(session, f"slow 0.2 {WORDS}")
    gateway.send(session, "say the end")


def is_last(record: dict[str, Any]) -> bool:
    event = record["event"]
    return (event["kind"], event.get("turn")) == ("TurnFinished", 15)


def check(follower: Follower, stored: list[bytes]) -> None:
    """What came through is what is stored, to the byte; what was spoken always fits to what was answered."""
    assert follower.log == stored, "a gap or a duplicate"
    responded = of_kind([json_of(line) for line in stored], "ModelResponded")
    answers = {(event["turn"], event["step"]): event["text"] for event in responded}
    heard: dict[tuple[int, int, int], str] = {}
    for delta in follower.spoken:
        key = (delta["attached"], delta["turn"], delta["step"])
        assert delta["offset"] == len(heard.get(key, "")), "each connection hears the text from its beginning"
        heard[key] = heard.get(key, "") + delta["text"]
    for (_, turn, step), text in heard.items():
        assert answers[turn, step].startswith(text)


def json_of(line: bytes) -> Json:
    import msgspec

    found: Json = msgspec.json.decode(line)
    return found


@pytest.mark.parametrize("form", FORMS)
async def test_promise_4_cut_at_random_bytes(gateway: GatewayProcess, form: Form, tmp_path: Path) -> None:
    await follow_through_cuts(gateway, form, cuts=CUTS, cwd=tmp_path)


@pytest.mark.proof
@pytest.mark.parametrize("form", FORMS)
async def test_promise_4_cut_at_random_bytes_a_thousand_times(
    gateway: GatewayProcess, form: Form, tmp_path: Path
) -> None:
    await follow_through_cuts(gateway, form, cuts=MANY_CUTS, cwd=tmp_path)
