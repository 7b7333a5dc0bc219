"""`kill -9` of a store and its runner at random moments, while clients write whose acks are kept outside."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from holdfast.domain.events import Record
from tests.crash.harness import check_posted
from tests.domain.history import check_ended
from tests.forked_lives import ForkedLives, Since
from tests.runtime.rig import Rig
from tests.store.rebuilt import check_integrity, check_projections

SESSIONS = [letter * 16 for letter in "abcd"]
SEED = int(os.environ.get("HOLDFAST_SEED", random.randrange(10**6)))
SINCE: tuple[Since, Since] = ("birth", "first word")


def kill_loop(home: Path, kills: int) -> None:
    dice = random.Random(SEED)
    acked = dict.fromkeys(SESSIONS, 0)
    killed = silent = 0
    with ForkedLives("tests.crash.lives") as forked:
        while killed < kills:
            after, since = (dice.uniform(0, 0.1), SINCE[dice.random() < 0.7])
            life = forked.live("feed", kill_after=after, since=since, home=str(home), start=acked, last=10**9)
            assert life.killed, f"it ended by itself with {life.status}"
            for session, number in life.said("ack"):
                assert int(number) == acked[session]
                acked[session] += 1
            killed += 1
            silent += not life.said("ack")
        last = max(acked.values()) + 1
        assert forked.live("feed", home=str(home), start=acked, last=last).status == 0
    found = asyncio.run(everything(home))
    resumes = cuts = 0
    for session, records in found.items():
        history = check_ended(records)
        assert list(history.accepted) == [f"{session}-{number}" for number in range(last)], "lost, doubled, reordered"
        resumes += history.resumes
        cuts += history.interruptions
    check_posted([record for records in found.values() for record in records], home)
    check_projections(home / "holdfast.db")
    check_integrity(home / "holdfast.db")
    print(
        f"\n{killed} kills ({silent} before the first ack of a life), {sum(acked.values())} acks: "
        f"0 lost, 0 doubled, 0 reordered; {resumes} turns resumed, {cuts} answers cut; "
        f"{sum(map(len, found.values()))} events; HOLDFAST_SEED={SEED}"
    )


async def everything(home: Path) -> dict[str, list[Record]]:
    rig = Rig(home)
    found = {session: await rig.records(session) for session in SESSIONS}
    await rig.close()
    return found


def test_promise_1_kill_9_at_40_random_moments(tmp_path: Path) -> None:
    kill_loop(tmp_path, 40)


@pytest.mark.proof
def test_promise_1_kill_9_at_1000_random_moments(tmp_path: Path) -> None:
    kill_loop(tmp_path, 1_000)
