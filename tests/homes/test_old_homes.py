"""Homes of earlier versions open, and show what their own version showed of them."""

from __future__ import annotations

import json
import sqlite3
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.gateway import GatewayProcess
from tests.homes.shown import shown
from tests.store.rebuilt import check_integrity, check_projections

NEVER_TOO_OLD = "\n[resume]\nmax_age_minutes = 10_000_000\n"
"""The turn that was interrupted when the home was packed goes on, however long ago that was."""
HOMES = sorted(Path(__file__).parent.glob("*.tar.xz"))


def texts(transcript: list[str]) -> Counter[str]:
    """What was said, asked and printed: how an export heads it and in which order it tells it differs by version."""
    return Counter(line for line in transcript if line and not line.startswith(("#", "*")))


def check_numbers(gateway: GatewayProcess) -> list[str]:
    """The cards by their numbers, which count from 1 without a gap; each is found by its number."""
    cards = sorted(gateway.get("/v1/cards", archived="true")["cards"], key=lambda card: int(card["number"]))
    assert [card["number"] for card in cards] == list(range(1, len(cards) + 1))
    for card in cards:
        assert gateway.get(f"/v1/cards/HF-{card['number']}")["card"]["id"] == card["id"]
    return [card["id"] for card in cards]


@pytest.mark.parametrize("archive", HOMES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_promise_1_a_home_of_an_earlier_version_shows_the_same(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        packed.extractall(tmp_path)
    with (tmp_path / "home" / "config.toml").open("a") as config:
        config.write(NEVER_TOO_OLD)
    with GatewayProcess(tmp_path / "home") as gateway:
        found = shown(gateway.start())
        numbers = check_numbers(gateway)
    expected = json.loads(archive.with_name(archive.name.replace(".tar.xz", ".json")).read_text())
    for kind in ("tasks", "cards", "inbox"):
        assert found[kind] == expected[kind], kind
    assert found["sessions"].keys() == expected["sessions"].keys()
    for id, session in expected["sessions"].items():
        now = found["sessions"][id]
        assert (now["title"], now["state"]) == (session["title"], session["state"])
        assert not texts(session["transcript"]) - texts(now["transcript"]), id
    with sqlite3.connect(tmp_path / "home" / "holdfast.db") as db:
        created = db.execute("SELECT stream FROM events WHERE kind = 'CardCreated' ORDER BY seq").fetchall()
    assert [(f"card/{id}",) for id in numbers] == created, "numbered in the order of their creation"
    check_projections(tmp_path / "home" / "holdfast.db")
    check_integrity(tmp_path / "home" / "holdfast.db")
