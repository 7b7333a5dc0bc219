"""`kill -9` of a supervisor at random moments, while commands start and end; what they did is written down outside."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from tests.forked_lives import ForkedLives
from tests.processes.rig import ProcessRig

SEED = int(os.environ.get("HOLDFAST_SEED", random.randrange(10**6)))


async def kill_loop(rig: ProcessRig, kills: int) -> None:
    dice = random.Random(SEED)
    intended, told = dict[str, int](), dict[str, list[str]]()
    root, cwd = str(rig.root), str(rig.cwd)
    started = set[str]()

    def listen(lines: list[list[str]]) -> None:
        for word, id, *rest in lines:
            if word == "intent":
                intended[id] = int(rest[0])
            elif word == "started":
                started.add(id)
            elif word == "outcome":
                assert told.setdefault(id, rest) == rest, f"{id} was {told[id]} and then {rest}"

    with ForkedLives("tests.processes.lives") as forked:
        for number in range(kills):
            open_ = [id for id in intended if id not in told]
            warm = bool(number % 2)
            life = forked.live(
                "work",
                kill_after=dice.uniform(0, 0.15),
                since="first word" if warm else "birth",
                open_=open_,
                seed=SEED + number,
                more=True,
                warm=warm,
                root=root,
                cwd=cwd,
            )
            assert life.status == -9, f"it ended by itself with {life.status}"
            listen(life.lines)
        life = forked.live(
            "work", open_=[id for id in intended if id not in told], seed=0, more=False, root=root, cwd=cwd
        )
        assert life.status == 0
        listen(life.lines)
    outcomes = Counter(check(rig, id, code, told[id]) for id, code in intended.items())
    assert not [id for id in started if told[id][0] == "never"], "said to run, and then never to have begun"
    print(
        f"\n{kills} kills, {len(intended)} commands: {outcomes['ended']} ended with their code and their whole output, "
        f"{outcomes['never']} never began and did nothing; 0 lost, 0 run twice, 0 stuck; HOLDFAST_SEED={SEED}"
    )


def check(rig: ProcessRig, id: str, code: int, verdict: list[str]) -> str:
    marker, copy = rig.cwd / f"{id}.ran", rig.cwd / f"{id}.copy"
    ran = marker.read_text().splitlines() if marker.exists() else []
    if verdict[0] == "never":
        assert ran == [], f"{id} is said never to have begun, and did"
        return "never"
    assert verdict == ["ended", str(code)], f"{id} should have ended with {code}: {verdict}"
    assert ran == ["ran"], f"{id} ran {len(ran)} times"
    assert rig.everything(id) == copy.read_bytes(), f"the output of {id} is not what it wrote"
    return "ended"


async def test_promise_3_kill_9_at_50_random_moments(rig: ProcessRig) -> None:
    await kill_loop(rig, 50)


@pytest.mark.proof
async def test_promise_3_kill_9_at_1000_random_moments(rig: ProcessRig) -> None:
    await kill_loop(rig, 1_000)
