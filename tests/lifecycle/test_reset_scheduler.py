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
from tests.lifecycle.rig import DAY, HOUR, MINUTE, LifecycleRig
from tests.rig import StoppedClock
from tests.runtime.rig import ID, only

NOON = int(datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp() * 1000)
IDLE = ResetRules(mode="idle", idle_ms=HOUR, hand_over_note=False)
DAILY = ResetRules(mode="daily", at_hour=4, timezone="UTC", hand_over_note=False)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[LifecycleRig]:
    rig = await LifecycleRig(tmp_path, clock=StoppedClock(NOON)).start()
    try:
        async with asyncio.timeout(PATIENCE):
            await rig.create("say hello")
            await rig.rest()
            await rig.reset_scheduler.run_once()
            yield rig
    finally:
        await rig.close()


async def restarted(rig: LifecycleRig, *, after: int) -> LifecycleRig:
    """The next gateway of the same home, so much later."""
    await rig.close()
    return await LifecycleRig(rig.home, clock=StoppedClock(rig.clock.now() + after)).start()


async def chapters(rig: LifecycleRig) -> list[tuple[str, int]]:
    """Which rule opened them, and when it was due, in hours since the beginning."""
    opened = only(await rig.records(), ChapterOpened)
    return [(one.rule, ((one.due_at or 0) - NOON) // HOUR) for one in opened if isinstance(one, ChapterOpened)]


async def test_a_silence_is_reset_once_and_on_time(rig: LifecycleRig) -> None:
    rig.profiles.rules = IDLE
    await rig.wait(59 * MINUTE)
    assert await chapters(rig) == []
    assert rig.reset_scheduler.outlook(await rig.sessions.get(ID)) == NotDue("idle", NOON + HOUR)
    await rig.wait(2 * MINUTE)
    assert await chapters(rig) == [("idle", 1)]
    await rig.wait(3 * DAY, every=10 * MINUTE)
    assert await chapters(rig) == [("idle", 1)], "nobody was here since"


async def test_after_an_undo_the_idle_time_starts_again(rig: LifecycleRig) -> None:
    rig.profiles.rules = IDLE
    await rig.wait(61 * MINUTE)
    await rig.tell(UndoReset(), "u1")
    await rig.wait(50 * MINUTE)
    assert len(await chapters(rig)) == 1
    await rig.wait(20 * MINUTE)
    assert len(await chapters(rig)) == 2


async def test_time_asleep_does_not_count_as_idle(rig: LifecycleRig) -> None:
    rig.profiles.rules = IDLE
    await rig.wait(30 * MINUTE)
    rig.passes(10 * HOUR, awake=False)
    await rig.wait(20 * MINUTE)
    assert await chapters(rig) == []
    await rig.wait(11 * MINUTE)
    assert len(await chapters(rig)) == 1


@pytest.mark.parametrize("jump", [DAY, -DAY])
async def test_a_clock_that_is_set_makes_nobody_idle(rig: LifecycleRig, jump: int) -> None:
    rig.profiles.rules = IDLE
    await rig.wait(30 * MINUTE)
    assert isinstance(rig.clock, StoppedClock)
    rig.clock.move(jump)
    await rig.wait(29 * MINUTE)
    assert await chapters(rig) == []
    await rig.wait(2 * MINUTE)
    assert len(await chapters(rig)) == 1


async def test_a_gateway_that_was_down_catches_up_once(rig: LifecycleRig) -> None:
    rig = await restarted(rig, after=3 * DAY)
    rig.profiles.rules = DAILY
    await rig.reset_scheduler.run_once()
    assert await chapters(rig) == [("daily", 64)], "the last hour that passed, not each of them"
    await rig.wait(2 * DAY, every=10 * MINUTE)
    assert len(await chapters(rig)) == 1
    await rig.say("say again", "m2")
    await rig.rest()
    rig = await restarted(rig, after=DAY)
    rig.profiles.rules = DAILY
    await rig.reset_scheduler.run_once()
    assert len(await chapters(rig)) == 2
    await rig.tell(UndoReset(), "u1")
    rig = await restarted(rig, after=MINUTE)
    rig.profiles.rules = DAILY
    await rig.reset_scheduler.run_once()
    assert len(await chapters(rig)) == 2, "what was undone is not done again for the same hour"
    await rig.close()


async def test_reading_the_outlook_during_the_start_does_not_reset_the_idle_time(rig: LifecycleRig) -> None:
    rig = await restarted(rig, after=3 * HOUR)
    rig.profiles.rules = IDLE
    assert rig.reset_scheduler.outlook(await rig.sessions.get(ID)) == NotDue("idle", NOON + HOUR)
    await rig.reset_scheduler.run_once()
    assert len(await chapters(rig)) == 1
    await rig.close()


async def test_another_timezone_is_not_a_second_reset_for_the_same_hour(rig: LifecycleRig) -> None:
    rig.profiles.rules = DAILY
    await rig.wait(17 * HOUR, every=10 * MINUTE)  # 5:00 UTC
    assert len(await chapters(rig)) == 1
    await rig.say("say good morning", "m2")
    await rig.rest()
    rig.profiles.rules = ResetRules(mode="daily", at_hour=4, timezone="Asia/Kolkata", hand_over_note=False)
    await rig.wait(17 * HOUR, every=10 * MINUTE)  # 22:00 UTC, 3:30 there
    assert len(await chapters(rig)) == 1
    await rig.wait(HOUR, every=10 * MINUTE)
    assert len(await chapters(rig)) == 2


async def test_mode_none_is_never_reset(rig: LifecycleRig) -> None:
    await rig.wait(10 * DAY, every=HOUR)
    assert await chapters(rig) == []


async def test_with_mode_none_only_sessions_with_a_policy_of_their_own_are_read(
    rig: LifecycleRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rules(profile: str, policy: ResetPolicy) -> ResetRules:
        return Profiles.reset_rules(rig.profiles, profile, policy)

    read, sizes = rig.store.resettable_sessions, list[int]()

    async def reading(*, own_policy: bool) -> list[ResettableSession]:
        found = await read(own_policy=own_policy)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(rig.profiles, "reset_rules", rules)
    monkeypatch.setattr(rig.store, "resettable_sessions", reading)
    await rig.reset_scheduler.run_once()
    assert sizes == [0]
    await rig.tell(SetResetPolicy(policy=ResetPolicy(mode="idle", idle_minutes=60, hand_over_note=False)), "p1")
    await rig.wait(HOUR, every=HOUR // 6)
    assert len(await chapters(rig)) == 1


async def test_a_failed_check_forgets_no_session(rig: LifecycleRig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.profiles.rules = IDLE
    await rig.wait(50 * MINUTE)

    async def sick(*, own_policy: bool) -> list[ResettableSession]:
        raise Unavailable("The disk does not answer.")

    with monkeypatch.context() as broken:
        broken.setattr(rig.store, "resettable_sessions", sick)
        for _ in range(2):
            rig.passes(10_000)
            with pytest.raises(Unavailable):
                await rig.reset_scheduler.run_once()
    await rig.wait(10 * MINUTE)
    assert len(await chapters(rig)) == 1


async def test_promise_5_a_bug_in_one_session_does_not_stop_the_clock_of_the_others(
    rig: LifecycleRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, of_session = "fedcba9876543210", rig.running_tasks.of_session
    await rig.create("say hello", session=other)
    await rig.rest()
    await rig.rest(session=other)

    async def broken(session: str) -> list[RunningTask]:
        if session == ID:
            raise RuntimeError("a bug")
        return await of_session(session)

    monkeypatch.setattr(rig.running_tasks, "of_session", broken)
    rig.profiles.rules = ResetRules(mode="idle", idle_ms=HOUR)
    await rig.wait(61 * MINUTE)
    assert await chapters(rig) == []
    assert (await rig.sessions.get(other)).chapter.number == 2


async def test_a_bug_in_the_model_of_a_note_becomes_a_digest_and_the_reset_comes(rig: LifecycleRig) -> None:
    await rig.say("summary bug", "m2")
    await rig.rest()
    rig.profiles.rules = ResetRules(mode="idle", idle_ms=HOUR)
    await rig.wait(61 * MINUTE)
    opened = (await rig.sessions.get(ID)).chapter.opened
    assert opened is not None and opened.hand_over_from == "digest"


async def test_a_note_that_hangs_becomes_a_digest_and_the_reset_comes(rig: LifecycleRig) -> None:
    rig.agents.summary_seconds = 0.05
    await rig.say("summary hang", "m2")
    await rig.rest()
    rig.profiles.rules = ResetRules(mode="idle", idle_ms=HOUR)
    await rig.wait(61 * MINUTE)
    opened = (await rig.sessions.get(ID)).chapter.opened
    assert opened is not None and opened.hand_over_from == "digest"
    assert "The user said: say hello" in opened.hand_over


async def test_a_message_while_the_note_is_written_comes_first(rig: LifecycleRig) -> None:
    await rig.say("summary hang", "m2")
    await rig.rest()
    rig.profiles.rules = ResetRules(mode="idle", idle_ms=HOUR)
    rig.passes(61 * MINUTE)
    looking = asyncio.create_task(rig.reset_scheduler.run_once())
    await rig.model.hangs.wait()
    await rig.say("say I am back", "m3")
    await rig.rest()
    rig.model.go.set()
    await looking
    assert await chapters(rig) == []
    assert (await rig.sessions.get(ID)).chapter.number == 1
