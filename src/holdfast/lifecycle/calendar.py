"""The daily hour, exactly once a day, also when daylight saving time begins or ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo


def daily_hour(now: int, at_hour: int, timezone: str) -> tuple[int, int]:
    """Return the last daily hour that has passed, and the next, in milliseconds.

    An hour that a night leaves out comes when the clock has passed it; one that comes twice counts the first time.
    """
    zone: tzinfo | None = ZoneInfo(timezone) if timezone else None
    here = datetime.fromtimestamp(now / 1000, UTC).astimezone(zone)
    days = [here.date() + timedelta(days=days) for days in (-2, -1, 0, 1, 2)]
    hours = [_at(datetime(day.year, day.month, day.day, at_hour), zone) for day in days]  # noqa: DTZ001
    return max(hour for hour in hours if hour <= now), min(hour for hour in hours if hour > now)


def _at(local: datetime, zone: tzinfo | None) -> int:
    """A naive local time without a zone is the machine's own."""
    return int((local.replace(tzinfo=zone) if zone is not None else local).timestamp() * 1000)
