"""SQLite's own method: let the N-th write, sync, truncate or unlink fail, for every N."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests.crash.harness import check_posted
from tests.crash.lives import KILL, MESSAGES, ONCE, SESSION, STAY, script
from tests.domain.history import check_ended
from tests.forked_lives import ForkedLives, Life
from tests.runtime.rig import Rig
from tests.store.rebuilt import check_integrity, check_projections

SOURCE = Path(__file__).with_name("fault.c")
AT_ONCE = 4


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleQueue[ForkedLives]]:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc) to build the fault shim with")
    shim = tmp_path_factory.mktemp("shim") / "fault.so"
    flags = ["-shared", "-fPIC", "-O2", "-Wall", "-Werror"]
    subprocess.run([compiler, *flags, "-o", str(shim), str(SOURCE), "-ldl"], check=True)
    free: SimpleQueue[ForkedLives] = SimpleQueue()
    with ExitStack() as all_:
        for _ in range(AT_ONCE):
            free.put(all_.enter_context(ForkedLives("tests.crash.lives", preload=shim)))
        yield free


def endure(pool: SimpleQueue[ForkedLives], home: Path, *, how: int, at: int, opened: bool) -> Life:
    """One life with a fault in it, then one without."""
    home.mkdir()
    forked = pool.get()
    try:
        life = forked.live("endure", home=str(home), how=how, at=at, opened=opened)
    finally:
        pool.put(forked)
    acked = [int(number) for (number,) in life.said("ack")]
    assert acked == list(range(len(acked)))
    if how == KILL:
        assert life.killed
    else:
        [(writable, hits)] = life.said("well")
        assert life.status == 0
        assert int(hits) > 0
        assert len(acked) == MESSAGES, "the fault went away, so everything got in"
        assert writable == "True", "and the store got well by itself"
    asyncio.run(aftermath(home, len(acked)))
    return life


async def aftermath(home: Path, acked: int) -> None:
    """Without the shim: what was not acknowledged is sent again, and then each message is there once."""
    rig = await Rig(home).start()
    await rig.create(session=SESSION)
    for number in range(acked, MESSAGES):
        await rig.say(script(SESSION, number)[0], f"{SESSION}-{number}", session=SESSION)
    records = await rig.rest(session=SESSION)
    await rig.close()
    history = check_ended(records)
    assert list(history.accepted) == [f"{SESSION}-{number}" for number in range(MESSAGES)], "lost or doubled"
    check_posted(records, home)
    check_integrity(home / "holdfast.db")
    check_projections(home / "holdfast.db")


def faults(pool: SimpleQueue[ForkedLives], homes: Path, how: int, points: range, *, opened: bool) -> None:
    """A life for each point; every one of them must be reached."""

    def one(at: int) -> Life:
        try:
            return endure(pool, homes / str(at), how=how, at=at, opened=opened)
        except BaseException as error:
            error.add_note(f"fault {how} at call {at}, {opened=}")
            raise

    with ThreadPoolExecutor(AT_ONCE) as threads:
        lives = list(threads.map(one, points))
    acks, refused = (sum(len(life.said(word)) for life in lives) for word in ("ack", "refused"))
    print(f"\n{len(lives)} faults, {acks} acks, {refused} refusals: 0 lost, 0 doubled, 0 corrupt")


every_how = pytest.mark.parametrize("how", [ONCE, STAY, KILL], ids=["once", "stay", "kill"])
OPENING, WORKING = 60, 250
"""A little less than the calls that there are, so that every point is reached."""


@every_how
def test_promise_1_a_fault_at_the_nth_call_loses_nothing(pool: SimpleQueue[ForkedLives], homes: Path, how: int) -> None:
    faults(pool, homes, how, range(1, WORKING, 11), opened=True)


@every_how
def test_a_fault_while_a_home_is_made_leaves_it_usable(pool: SimpleQueue[ForkedLives], homes: Path, how: int) -> None:
    faults(pool, homes, how, range(1, OPENING, 6), opened=False)


@pytest.mark.proof
@every_how
def test_promise_1_a_fault_at_any_call_loses_nothing(pool: SimpleQueue[ForkedLives], homes: Path, how: int) -> None:
    (homes / "opening").mkdir()
    (homes / "working").mkdir()
    faults(pool, homes / "opening", how, range(1, OPENING), opened=False)
    faults(pool, homes / "working", how, range(1, WORKING), opened=True)
