"""The reset clock on a real store, with a clock that the test moves: sleep, jumps, downtime, zones, faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.domain.commands import SetResetPolicy, UndoReset
from holdfast.domain.errors import Unavailable
from holdfast.domain.events.chapter import ChapterOpened, ResetPolicy
from holdfast.domain.reset import NotDue, ResetRules, RunningTask
from holdfast.profiles import Profiles
from holdfast.store.rows import ResettableSession
from tests.eventually import PATIENCE
from tests.lifecycle.house import DAY, HOUR, MINUTE, House
from tests.rig import StoppedClock
from tests.runtime.rig import ID, only

NOON = int(datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp() * 1000)
IDLE = ResetRules(mode="idle", idle_ms=HOUR, hand_over_note=False)
DAILY = ResetRules(mode="daily", at_hour=4, timezone="UTC", hand_over_note=False)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = await House(tmp_path, clock=StoppedClock(NOON)).start()
    try:
        async with asyncio.timeout(PATIENCE):
            await house.create("say hello")
            await house.rest()
            await house.reset_scheduler.run_once()
            yield house
    finally:
        await house.close()


async def restarted(house: House, *, after: int) -> House:
    """The next gateway of the same home, so much later."""
    await house.close()
    return await House(house.home, clock=StoppedClock(house.clock.now() + after)).start()


async def chapters(house: House) -> list[tuple[str, int]]:
    """Which rule opened them, and when it was due, in hours since the beginning."""
    opened = only(await house.records(), ChapterOpened)
    return [(one.rule, ((one.due_at or 0) - NOON) // HOUR) for one in opened if isinstance(one, ChapterOpened)]


async def test_a_silence_is_reset_once_and_on_time(house: House) -> None:
    house.profiles.rules = IDLE
    await house.wait(59 * MINUTE)
    assert await chapters(house) == []
    assert house.reset_scheduler.outlook(await house.sessions.get(ID)) == NotDue("idle", NOON + HOUR)
    await house.wait(2 * MINUTE)
    assert await chapters(house) == [("idle", 1)]
    await house.wait(3 * DAY, every=10 * MINUTE)
    assert await chapters(house) == [("idle", 1)], "nobody was here since"


async def test_after_an_undo_the_silence_begins_anew(house: House) -> None:
    house.profiles.rules = IDLE
    await house.wait(61 * MINUTE)
    await house.tell(UndoReset(), "u1")
    await house.wait(50 * MINUTE)
    assert len(await chapters(house)) == 1
    await house.wait(20 * MINUTE)
    assert len(await chapters(house)) == 2


async def test_a_closed_lid_makes_nobody_idle(house: House) -> None:
    house.profiles.rules = IDLE
    await house.wait(30 * MINUTE)
    house.passes(10 * HOUR, awake=False)
    await house.wait(20 * MINUTE)
    assert await chapters(house) == []
    await house.wait(11 * MINUTE)
    assert len(await chapters(house)) == 1


@pytest.mark.parametrize("jump", [DAY, -DAY])
async def test_a_clock_that_is_set_makes_nobody_idle(house: House, jump: int) -> None:
    house.profiles.rules = IDLE
    await house.wait(30 * MINUTE)
    assert isinstance(house.clock, StoppedClock)
    house.clock.move(jump)
    await house.wait(29 * MINUTE)
    assert await chapters(house) == []
    await house.wait(2 * MINUTE)
    assert len(await chapters(house)) == 1


async def test_a_gateway_that_was_down_catches_up_once(house: House) -> None:
    house = await restarted(house, after=3 * DAY)
    house.profiles.rules = DAILY
    await house.reset_scheduler.run_once()
    assert await chapters(house) == [("daily", 64)], "the last hour that passed, not each of them"
    await house.wait(2 * DAY, every=10 * MINUTE)
    assert len(await chapters(house)) == 1
    await house.say("say again", "m2")
    await house.rest()
    house = await restarted(house, after=DAY)
    house.profiles.rules = DAILY
    await house.reset_scheduler.run_once()
    assert len(await chapters(house)) == 2
    await house.tell(UndoReset(), "u1")
    house = await restarted(house, after=MINUTE)
    house.profiles.rules = DAILY
    await house.reset_scheduler.run_once()
    assert len(await chapters(house)) == 2, "what was undone is not done again for the same hour"
    await house.close()


async def test_somebody_who_looks_while_the_gateway_starts_does_not_make_anybody_younger(house: House) -> None:
    house = await restarted(house, after=3 * HOUR)
    house.profiles.rules = IDLE
    assert house.reset_scheduler.outlook(await house.sessions.get(ID)) == NotDue("idle", NOON + HOUR)
    await house.reset_scheduler.run_once()
    assert len(await chapters(house)) == 1
    await house.close()


async def test_another_timezone_is_not_a_second_reset_for_the_same_hour(house: House) -> None:
    house.profiles.rules = DAILY
    await house.wait(17 * HOUR, every=10 * MINUTE)  # 5:00 UTC
    assert len(await chapters(house)) == 1
    await house.say("say good morning", "m2")
    await house.rest()
    house.profiles.rules = ResetRules(mode="daily", at_hour=4, timezone="Asia/Kolkata", hand_over_note=False)
    await house.wait(17 * HOUR, every=10 * MINUTE)  # 22:00 UTC, 3:30 there
    assert len(await chapters(house)) == 1
    await house.wait(HOUR, every=10 * MINUTE)
    assert len(await chapters(house)) == 2


async def test_mode_none_is_never_reset(house: House) -> None:
    await house.wait(10 * DAY, every=HOUR)
    assert await chapters(house) == []


async def test_with_mode_none_only_sessions_with_a_policy_of_their_own_are_read(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rules(profile: str, policy: ResetPolicy) -> ResetRules:
        return Profiles.reset_rules(house.profiles, profile, policy)

    read, sizes = house.store.resettable_sessions, list[int]()

    async def reading(*, own_policy: bool) -> list[ResettableSession]:
        found = await read(own_policy=own_policy)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(house.profiles, "reset_rules", rules)
    monkeypatch.setattr(house.store, "resettable_sessions", reading)
    await house.reset_scheduler.run_once()
    assert sizes == [0]
    await house.tell(SetResetPolicy(policy=ResetPolicy(mode="idle", idle_minutes=60, hand_over_note=False)), "p1")
    await house.wait(HOUR, every=HOUR // 6)
    assert len(await chapters(house)) == 1


async def test_a_look_that_failed_forgets_nobody(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.profiles.rules = IDLE
    await house.wait(50 * MINUTE)

    async def sick(*, own_policy: bool) -> list[ResettableSession]:
        raise Unavailable("The disk does not answer.")

    with monkeypatch.context() as broken:
        broken.setattr(house.store, "resettable_sessions", sick)
        for _ in range(2):
            house.passes(10_000)
            with pytest.raises(Unavailable):
                await house.reset_scheduler.run_once()
    await house.wait(10 * MINUTE)
    assert len(await chapters(house)) == 1


async def test_promise_5_a_bug_in_one_session_does_not_stop_the_clock_of_the_others(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, of_session = "fedcba9876543210", house.running_tasks.of_session
    await house.create("say hello", session=other)
    await house.rest()
    await house.rest(session=other)

    async def broken(session: str) -> list[RunningTask]:
        if session == ID:
            raise RuntimeError("a bug")
        return await of_session(session)

    monkeypatch.setattr(house.running_tasks, "of_session", broken)
    house.profiles.rules = ResetRules(mode="idle", idle_ms=HOUR)
    await house.wait(61 * MINUTE)
    assert await chapters(house) == []
    assert (await house.sessions.get(other)).chapter.number == 2


async def test_a_bug_in_the_model_of_a_note_becomes_a_digest_and_the_reset_comes(house: House) -> None:
    await house.say("summary bug", "m2")
    await house.rest()
    house.profiles.rules = ResetRules(mode="idle", idle_ms=HOUR)
    await house.wait(61 * MINUTE)
    opened = (await house.sessions.get(ID)).chapter.opened
    assert opened is not None and opened.hand_over_from == "digest"


async def test_a_note_that_hangs_becomes_a_digest_and_the_reset_comes(house: House) -> None:
    house.agents.summary_seconds = 0.05
    await house.say("summary hang", "m2")
    await house.rest()
    house.profiles.rules = ResetRules(mode="idle", idle_ms=HOUR)
    await house.wait(61 * MINUTE)
    opened = (await house.sessions.get(ID)).chapter.opened
    assert opened is not None and opened.hand_over_from == "digest"
    assert "The user said: say hello" in opened.hand_over


async def test_a_message_while_the_note_is_written_comes_first(house: House) -> None:
    await house.say("summary hang", "m2")
    await house.rest()
    house.profiles.rules = ResetRules(mode="idle", idle_ms=HOUR)
    house.passes(61 * MINUTE)
    looking = asyncio.create_task(house.reset_scheduler.run_once())
    await house.model.hangs.wait()
    await house.say("say I am back", "m3")
    await house.rest()
    house.model.go.set()
    await looking
    assert await chapters(house) == []
    assert (await house.sessions.get(ID)).chapter.number == 1
