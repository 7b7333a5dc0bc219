"""The daily hour, in nights that are an hour too long or too short, and in zones that shift by half an hour."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from holdfast.lifecycle.reset_scheduler import daily_hour

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia"]
HOUR = 3_600_000


def ms(text: str, zone: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def boundaries(zone: str, at_hour: int, start: datetime, days: int) -> list[int]:
    """Every daily hour that somebody notices who looks each quarter of an hour."""
    found: list[int] = []
    now, end = int(start.timestamp() * 1000), int((start + timedelta(days=days)).timestamp() * 1000)
    while now < end:
        passed, coming = daily_hour(now, at_hour, zone)
        assert passed <= now < coming
        if not found or passed != found[-1]:
            assert not found or passed > found[-1], "it never goes back"
            found.append(passed)
        now += HOUR // 4
    return found


@pytest.mark.parametrize("at_hour", [0, 2, 3])
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("month", [3, 4, 10, 11])
def test_exactly_one_a_day_whatever_the_clocks_do(zone: str, at_hour: int, month: int) -> None:
    found = boundaries(zone, at_hour, datetime(2026, month, 1, tzinfo=UTC), 31)
    days = [datetime.fromtimestamp(one / 1000, ZoneInfo(zone)).date() for one in found]
    assert days == [days[0] + timedelta(days=n) for n in range(len(days))], "one for each day, none twice"
    for one in found:
        local = datetime.fromtimestamp(one / 1000, ZoneInfo(zone))
        on_time = (local.hour, local.minute) == (at_hour, 0)
        skipped = (local - timedelta(hours=1)).utcoffset() != local.utcoffset()
        assert on_time or skipped, f"{local} is not {at_hour}:00, and no clock was put forward"


@pytest.mark.parametrize(
    ("zone", "at_hour", "day", "comes"),
    [
        ("Europe/Berlin", 2, "2026-03-29", "2026-03-29T01:00:00+00:00"),  # 2:00 is left out: at 3:00, the same instant
        ("Europe/Berlin", 3, "2026-03-29", "2026-03-29T01:00:00+00:00"),
        ("Europe/Berlin", 2, "2026-10-25", "2026-10-25T00:00:00+00:00"),  # comes twice: the first one
        ("Europe/Berlin", 3, "2026-10-25", "2026-10-25T02:00:00+00:00"),
        ("America/New_York", 2, "2026-03-08", "2026-03-08T07:00:00+00:00"),
        ("America/New_York", 1, "2026-11-01", "2026-11-01T05:00:00+00:00"),
        ("Australia/Lord_Howe", 2, "2026-10-04", "2026-10-03T15:30:00+00:00"),  # 2:00 becomes 2:30
        ("Australia/Lord_Howe", 2, "2026-04-05", "2026-04-04T15:30:00+00:00"),  # 2:00 becomes 1:30
    ],
)
def test_nights_that_are_put_forward_and_back(zone: str, at_hour: int, day: str, comes: str) -> None:
    expected = int(datetime.fromisoformat(comes).timestamp() * 1000)
    passed, _ = daily_hour(ms(f"{day}T12:00", zone), at_hour, zone)
    assert passed == expected
    assert daily_hour(expected, at_hour, zone)[0] == expected, "it has passed in this very moment"
    assert daily_hour(expected - 1, at_hour, zone)[1] == expected


@pytest.fixture
def local_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", "Australia/Lord_Howe")
    time.tzset()
    yield "Australia/Lord_Howe"
    monkeypatch.undo()
    time.tzset()


def test_without_a_zone_it_is_the_machine_s_own(local_zone: str) -> None:
    start = int(datetime(2026, 10, 1, tzinfo=UTC).timestamp() * 1000)
    for now in range(start, start + 6 * 24 * HOUR, HOUR // 2):
        for at_hour in (1, 2, 3):
            assert daily_hour(now, at_hour, "") == daily_hour(now, at_hour, local_zone)
