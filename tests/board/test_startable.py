"""Which cards are started: the query agrees with `not_startable_reason`, and limits hold in a batch."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from holdfast.domain.card import Card
from holdfast.domain.events import board_stream, card_stream
from holdfast.domain.events.card import (
    BoardArchived,
    BoardCreated,
    BoardEvent,
    BoardPaused,
    CardCreated,
    CardEvent,
    CardMoved,
    CardStatus,
    RunFinished,
    RunStarted,
)
from holdfast.store.contract import Append, Write
from tests.actors import person
from tests.board.rig import BoardRig
from tests.rig import StoppedClock

CARDS = 150
CONFIGS = (
    "max_running = 1000",
    "max_running = 6",
    "max_running = 8\nmax_per_board = 4",
    "max_running = 1000\nmax_per_profile = 3",
    "max_running = 0",
)
PROFILES = '[profiles.other]\nmodel = "demo"\n'


async def random_cards(rig: BoardRig, dice: random.Random, now: int) -> list[str]:
    """Boards and cards in any state, written as events."""
    boards: dict[str, tuple[BoardEvent, ...]] = {
        "default": (),
        "paused": (BoardPaused(board="paused", by=person("ann")),),
        "gone": (BoardArchived(board="gone", by=person("ann")),),
    }
    for name, more in boards.items():
        made = BoardCreated(board=name, title=name, by=person("ann"))
        await rig.store.append(Append((Write(board_stream(name), (made, *more)),), now - 10_000))
    ids: list[str] = []
    writes: dict[int, list[Write]] = {-5000: [], 500: []}  # the last one: the clock was set back since
    for number in range(CARDS):
        card = f"{number:08x}"
        status: CardStatus = dice.choice(["ready", "ready", "ready", "todo", "scheduled", "triage", "done", "done"])
        created = CardCreated(
            card=card,
            board=dice.choice(["default"] * 6 + ["paused", "gone"]),
            title=card,
            body="",
            by=person("ann"),
            status=status,
            profile=dice.choice(["demo", "demo", "demo", "other", "", "unknown"]),
            priority=dice.randrange(3),
            parents=dice.sample(ids, dice.choice([0, 0, 1, 1])) if ids else [],
        )
        events: list[CardEvent] = [created]
        if status == "scheduled":
            at = now + dice.choice([-1000, 0, 1000])
            events.append(CardMoved(card=card, status="scheduled", reason="", by=person("ann"), at=at))
        if status in ("done", "triage") and dice.random() < 0.5:
            events.append(CardMoved(card=card, status="archived", reason="", by=person("ann")))
        if status == "ready" and dice.random() < 0.5:
            events.append(_run(card))
            if dice.random() < 0.6:
                again = dice.choice([None, now, now + 5000, now + 5000])
                over = RunFinished(
                    card=card,
                    run=1,
                    outcome="failed",
                    reason="x",
                    failure="network",
                    uses_attempt=False,
                    retry_at=again,
                )
                events.append(over)
        writes[dice.choice(list(writes))].append(Write(card_stream(card), tuple(events)))
        ids.append(card)
    for moved, together in writes.items():
        await rig.store.append(Append(tuple(together), now + moved))
    return ids


def is_done(card: Card) -> bool:
    """In the archive, too, if it was done when it came there."""
    made = card.created
    return card.status == "done" or (card.status == "archived" and made is not None and made.status == "done")


def _run(card: str) -> RunStarted:
    return RunStarted(
        card=card,
        run=1,
        session=f"of{card}",
        task=f"task{card}",
        profile="demo",
        resumed_run=0,
        after_turn=0,
        workspace="/",
        workspace_state="",
    )


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("seed", range(4))
async def test_the_query_and_the_rule_agree(tmp_path: Path, config: str, seed: int) -> None:
    clock = StoppedClock(1_800_000_000_000)
    rig = BoardRig(tmp_path / "home", clock=clock, config=f"[board]\n{config}\n{PROFILES}")
    try:
        ids = await random_cards(rig, random.Random(seed), clock.now())
        cards = [await rig.card(id) for id in ids]
        startable = {
            card.id for card in cards if card.status == "ready" and not await rig.dispatcher.startable.why_not(card)
        }
        room = await rig.dispatcher.startable.capacity()
        wanted = room.wanted(exclude=[])
        found = [] if wanted is None else await rig.store.cards.to_start(wanted, now=clock.now())
        assert {row.id for row in found} <= startable
        assert len(found) == (0 if wanted is None else min(len(startable), wanted.limit))
        due = set(await rig.store.cards.to_promote(clock.now()))
        done = {card.id for card in cards if is_done(card)}
        for card in cards:
            waits = not done.issuperset(card.parents)
            time = card.status == "scheduled" and (card.scheduled_at or 0) <= clock.now()
            assert (card.id in due) == (time or (card.status == "todo" and not waits)), card
    finally:
        await rig.close()


@pytest.mark.parametrize("config", CONFIGS)
async def test_one_look_starts_all_that_fit_and_no_more(tmp_path: Path, config: str) -> None:
    rig = BoardRig(tmp_path / "home", config=f"[board]\n{config}\n{PROFILES}")
    try:
        for number in range(24):
            await rig.create(f"{number:08x}", "hang", profile="other" if number % 3 else "demo", priority=number)
        await rig.look()
        running = await rig.store.cards.open_runs()
        rules = rig.profiles.settings.board
        most = min(24, rules.max_running, rules.max_per_board or 24, 2 * rules.max_per_profile or 24)
        assert len(running) == most
        assert not rules.max_per_profile or set(Counter(row.profile for row in running).values()) == {3}
        if rules.max_running < 24 and not rules.max_per_profile:
            assert {row.card for row in running} == {f"{23 - n:08x}" for n in range(most)}, "the most urgent ones"
        await rig.look()
        assert len(await rig.store.cards.open_runs()) == most
    finally:
        await rig.close()


async def test_what_waits_for_room_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = BoardRig(tmp_path / "home", config="[board]\nmax_running = 2\n")
    try:
        for number in range(30):
            await rig.create(f"{number:08x}", "hang")
        await rig.look()
        looked: list[str] = []
        get = rig.cards.get

        async def counted(card: str) -> Card:
            looked.append(card)
            return await get(card)

        monkeypatch.setattr(rig.cards, "get", counted)
        await rig.look()
        assert set(looked) == {"00000000", "00000001"}, "only those that run"
    finally:
        await rig.close()
