"""A disk that takes no writes for a while: nothing is acknowledged, reads work, and then everything continues."""

from __future__ import annotations

from pathlib import Path

from tests.domain.history import check_ended
from tests.forked_lives import ForkedLives
from tests.runtime.rig import Rig
from tests.store.rebuilt import check_integrity, check_projections


async def test_promise_1_a_full_disk_refuses_serves_reads_and_recovers_by_itself(tmp_path: Path) -> None:
    with ForkedLives("tests.crash.lives") as forked:
        life = forked.live("fill_up", home=str(tmp_path))
    assert life.status == 0
    assert life.lines == [
        *[["refused", "5"]] * 3,
        ["sick", "False", "True"],
        ["reads", "True", "1"],
        ["searches", "0"],
        ["well"],
        ["ended"],
    ]
    rig = Rig(tmp_path)
    history = check_ended(await rig.records())
    assert [turn.text for turn in history.turns] == ["one", "two"]
    await rig.close()
    check_integrity(tmp_path / "holdfast.db")
    check_projections(tmp_path / "holdfast.db")
