"""The commands of a worker: they stay with its session over a block and a resume, and end with the card."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from holdfast.domain.commands import ArchiveCard, CompleteCard, StopCard, UnblockCard
from tests.board.rig import BoardRig
from tests.eventually import PATIENCE

CARD = "c0ffee01"


async def with_a_server(home: Path) -> tuple[BoardRig, int]:
    """A real worker that left a command running and asks for something."""
    rig = await BoardRig(home).start()
    await rig.create(CARD, "bg exec sleep 1000\nblock which colour?")
    card = await rig.until(CARD, lambda card: card.status == "blocked")
    await rig.rest(card.runs[0].started.session)
    (row,) = [row for row in await rig.store.running_tasks() if row.kind == "process"]
    assert row.pid is not None and alive(row.pid)
    return rig, row.pid


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may end while its file is read
        return False


async def gone(pid: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while alive(pid):
            await asyncio.sleep(0.02)


async def test_it_stays_over_a_block_and_ends_when_the_card_is_complete(home: Path) -> None:
    rig, pid = await with_a_server(home)
    await rig.tell(CARD, UnblockCard(text="tasks\nblock and now?"))
    card = await rig.until(CARD, lambda card: card.status == "blocked" and len(card.runs) == 2)
    state = await rig.rest(card.runs[1].started.session)
    assert alive(pid), "the next run finds it"
    assert "running" in str(state.messages[-4:])
    await rig.tell(CARD, UnblockCard(text="complete all done"))
    await rig.until(CARD, lambda card: card.status == "done")
    await gone(pid)
    await rig.close()


async def test_it_ends_before_a_fresh_start(home: Path) -> None:
    rig, pid = await with_a_server(home)
    await rig.tell(CARD, UnblockCard(fresh=True))
    await rig.until(CARD, lambda card: len(card.runs) == 2)
    assert not alive(pid), "it was gone before the new worker began"
    card = await rig.until(CARD, lambda card: card.status == "blocked")
    assert card.runs[1].started.session != card.runs[0].started.session
    tasks = [row for row in await rig.store.running_tasks() if row.kind == "process"]
    (row,) = [row for row in tasks if row.pid != pid]
    await rig.tell(CARD, ArchiveCard())
    assert row.pid is not None
    await gone(row.pid)
    await rig.close()


async def test_a_fresh_start_waits_for_a_command_that_does_not_want_to_end(home: Path) -> None:
    rig = await BoardRig(home).start()
    await rig.create(CARD, "bg trap '' TERM; while :; do sleep 0.1; done\nblock which colour?")
    card = await rig.until(CARD, lambda card: card.status == "blocked")
    await rig.rest(card.runs[0].started.session)
    (row,) = [row for row in await rig.store.running_tasks() if row.kind == "process"]
    assert row.pid is not None
    await rig.tell(CARD, UnblockCard(fresh=True))
    async with asyncio.timeout(PATIENCE):
        while not (await rig.store.task(row.id)).stop_by:
            await asyncio.sleep(0.01)
    why = await rig.dispatcher.startable.why_not(await rig.card(CARD))
    if alive(row.pid):  # it is given some seconds before it is killed
        assert f"Its previous worker is still running: its command (task {row.id}) is being stopped." in why
    await rig.until(CARD, lambda card: len(card.runs) == 2)
    assert not alive(row.pid)
    await rig.tell(CARD, ArchiveCard())
    await rig.close()


async def test_it_outlives_the_gateway_and_ends_when_a_person_completes_the_card(home: Path) -> None:
    rig, pid = await with_a_server(home)
    await rig.close()
    rig = await BoardRig(home).start()
    assert alive(pid)
    await rig.tell(CARD, CompleteCard(summary="enough"))
    await gone(pid)
    await rig.close()


async def test_a_command_in_the_foreground_ends_with_the_run_that_is_stopped(home: Path, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    rig = await BoardRig(home).start()
    await rig.create(CARD, f"sh echo $$ > {mark}; exec sleep 1000")
    async with asyncio.timeout(PATIENCE):
        while not mark.exists() or not mark.read_text():
            await asyncio.sleep(0.02)
    pid = int(mark.read_text())
    assert alive(pid) and pid != os.getpid()
    await rig.tell(CARD, StopCard())
    await gone(pid)
    await rig.close()
