"""Reports of a worker reach the card, its task and followers without the values of keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.domain.events.card import CardCreated
from holdfast.store.reads import CardFilter
from tests.board.rig import BoardRig

CARD = "c0ffee01"
KEY = "tracker-key-value"
CONFIG = """
[mcp.tracker]
command = ["true"]
env = ["TRACKER_KEY"]

[profiles.worker]
model = "demo"
"""


def called(tool: str, **arguments: object) -> str:
    return f"call {tool} {json.dumps(arguments)}"


@pytest.mark.parametrize("end", ["complete", "block"])
async def test_a_secret_is_masked_in_what_a_worker_says(home: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    monkeypatch.setenv("TRACKER_KEY", KEY)
    rig = await BoardRig(home, config=CONFIG).start()
    last = {
        "complete": called("kanban_complete", summary=f"used {KEY}", metadata={"key": KEY}),
        "block": called("kanban_block", reason=f"is {KEY} right?"),
    }
    lines = [
        called("kanban_heartbeat", note=f"with {KEY}"),
        called("kanban_create", title=f"also {KEY}", body=f"use {KEY}"),
        last[end],
        f"say {KEY}",
    ]
    await rig.create(CARD, "\n".join(lines), profile="worker")
    card = await rig.until(CARD, lambda card: card.status in ("done", "blocked") and card.run is None)
    await rig.rest(card.runs[0].started.session)
    said = [event for event in await rig.events(CARD) if not isinstance(event, CardCreated)]
    rows = await rig.store.cards.cards(CardFilter(), offset=0, limit=10)
    [created] = [await rig.events(row.id) for row in rows if row.id != CARD]
    task = await rig.store.task(card.runs[0].started.task)
    assert KEY not in str((said, created, task.summary, task.preview, task.reason))
    assert str(said).count("[hidden: the value of TRACKER_KEY]") >= 3
    await rig.close()
