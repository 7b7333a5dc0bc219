"""A network file system whose server does not answer keeps neither the event loop nor other cards waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from holdfast.network_mounts import NetworkMounts
from holdfast.tasks.git_snapshots import GitSnapshots
from tests.board.rig import BoardRig

T = TypeVar("T")
CARD, OTHER = "c0ffee01", "c0ffee02"


class HungMounts(NetworkMounts):
    """Every call waits until `answers` is set. Where there is a time limit, it has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()

    async def run(self, work: Callable[[], T]) -> T:
        await self.answers.wait()
        return work()

    async def run_within(self, seconds: float | None, work: Callable[[], T]) -> T:
        if seconds is not None and not self.answers.is_set():
            raise TimeoutError
        return await self.run(work)


async def test_artifacts_of_a_completed_card_are_looked_up_through_the_mounts(rig: BoardRig) -> None:
    await rig.create(CARD)
    await rig.look()
    hand, mounts = await rig.worker(CARD), HungMounts()
    await hand.begin()
    (Path(hand.run.workspace) / "made.txt").write_text("x")
    call = await hand.wants("kanban_complete", summary="done", artifacts=["made.txt"])
    state = await hand.state()
    agent = await rig.agents.of(state)
    context = replace(agent.tool_context(state, call.call), mounts=mounts)
    completing = asyncio.create_task((await agent.tools())["kanban_complete"].call(context, call.arguments))
    await rig.create(OTHER)
    assert not completing.done() and (await rig.card(CARD)).status == "running"
    mounts.answers.set()
    assert (await completing).outcome == "done" and (await rig.card(CARD)).status == "done"


async def test_workspace_that_does_not_answer_when_a_card_is_created(rig: BoardRig, tmp_path: Path) -> None:
    rig.cards.mounts = mounts = HungMounts()
    creating = asyncio.create_task(rig.create(CARD, workspace=f"dir:{tmp_path}"))
    await rig.new_session("ab12ab12ab12ab12")
    assert not creating.done()
    mounts.answers.set()
    await creating
    assert (await rig.card(CARD)).workspace == f"dir:{tmp_path}"


async def test_workspace_that_does_not_answer_blocks_its_card(rig: BoardRig) -> None:
    await rig.create(CARD)
    rig.cards.mounts = HungMounts()
    await rig.look()
    card = await rig.card(CARD)
    assert (card.status, card.reason) == ("blocked", "its workspace did not answer within 300 s")


async def test_command_starts_without_a_snapshot_of_a_directory_that_does_not_answer(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    changes = GitSnapshots(tmp_path)
    changes.mounts = HungMounts()
    await changes.take("ab12", tmp_path)
    assert changes.remembered() == set()
    assert await changes.changes_since("ab12", tmp_path) is None
